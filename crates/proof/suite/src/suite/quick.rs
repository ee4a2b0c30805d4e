//! The quick suite: a closed loop on `/metrics`, moderate and extreme, side by side.

mod readiness;

use plimsoll_metrics::{Bias, BoundedFigure};
use plimsoll_report::format::{count, digits};

use super::columns::{
    self, AVG, BYTES, Column, ERRORS, GW_CORE, LOAD_CORE, MAX, P99, RPS, SECONDS, THREADS,
};
use super::{length, passes};
use crate::error::SuiteError;
use crate::figures::TimedResponses;
use crate::finding;
use crate::measurement::{Length, Measurement};
use crate::ratio::Ratio;
use crate::report::{Contents, Section, published};
use crate::result::{Figures, MeasurementResult};
use crate::runner::{Pass, SuiteRunner};
use crate::sizing;
use crate::target::Gateway;

const PATH: &str = "/metrics";

pub(super) fn run(runner: &mut SuiteRunner<'_>) -> Result<Contents, SuiteError> {
    let gateway = match runner.target() {
        Some(target) => Gateway::external(target),
        // Its metrics tell of every route that was asked for.
        None => runner.launch("proxy", &[""; 0], None, PATH)?,
    };
    let options = runner.options;
    let loads = [("moderate", 1, length(options, 30)), ("extreme", 2, length(options, 60))];
    let mut results = Vec::new();
    let mut thirds = vec![Vec::new(); loads.len()];
    runner.section = "GET /metrics";
    if runner.serves(&gateway.target, PATH)? {
        runner.probe_limits(&Measurement::get("burst", &gateway.target, PATH))?;
        let measurements =
            loads.map(|(name, times, length)| measurement(runner, &gateway, (name, times), length));
        let mut keep =
            |load: usize, pass: &Pass| thirds[load].push(readiness::thirds(&pass.summary));
        let passes = passes(options, 1, 3);
        results = runner.measure_by(&measurements, passes, TimedResponses::Completed, &mut keep);
    }
    runner.ask_version(&gateway);
    let table = side_by_side(&results, runner.target().is_none());
    let readiness = readiness::section(&results, &thirds);
    let scaling = [finding::saturation(PATH, &results), steps(&results)];
    let times = results.iter().filter_map(finding::sub_millisecond);
    let scaling = scaling.into_iter().chain([finding::degradation(PATH, &results)]).flatten();
    let levels: Vec<_> = results.iter().collect();
    Ok(Contents {
        sections: std::iter::once(table).chain(readiness).collect(),
        findings: scaling.chain(times).collect(),
        sizing: "Instances of the gateway for a rate",
        capacities: vec![sizing::capacity(&format!("gateway, GET {PATH}"), &levels)],
        references: vec![published("Reference: RustyGW")],
        ..Contents::default()
    })
}

const MB_PER_S: Column =
    ("MB/s", |r| columns::beside_rate(r, |f| Some(digits(f.megabytes_per_s?))));
const GBIT_PER_S: Column =
    ("Gbit/s", |r| columns::beside_rate(r, |f| Some(digits(f.megabytes_per_s? * 8.0 / 1e3))));
const TOTAL: Column = ("Total", |r| columns::beside_rate(r, |f| Some(count(f.answers()?))));

/// A load: its name, and the factor of its clients and threads over those of the moderate one.
type Load = (&'static str, u16);

fn measurement(
    runner: &SuiteRunner<'_>,
    gateway: &Gateway,
    load: Load,
    length: Length,
) -> Measurement {
    let clients = runner.options.clients.unwrap_or(100) * u32::from(load.1);
    let threads = runner.options.threads.map(|threads| threads.saturating_mul(load.1));
    let label = format!("{}, {clients} connections", load.0);
    Measurement::get(&label, &gateway.target, PATH).threads(threads).clients_in_parts(
        clients,
        length,
        readiness::PARTS,
    )
}

fn side_by_side(results: &[MeasurementResult], over_loopback: bool) -> Section {
    let columns = &[
        THREADS, RPS, AVG, P99, MAX, MB_PER_S, GBIT_PER_S, BYTES, TOTAL, SECONDS, ERRORS, GW_CORE,
        LOAD_CORE,
    ];
    let table = columns::results("Load", columns, results);
    let none = if over_loopback { "; over loopback there is none" } else { "" };
    Section::new("GET /metrics, as many requests as the connections carry", table)
        .note(format!("times are service times of completed requests; gw core and load core: CPU use of each. MB are 10^6 bytes, heads included: bytes is the size of one answer, and Gbit/s what its network must carry{none}"))
}

/// The effect of more connections on throughput and times.
fn steps(results: &[MeasurementResult]) -> Option<finding::Finding> {
    let [few, many] = results else { return None };
    let ratio = |of: fn(&Figures) -> Option<BoundedFigure>, bias| {
        Ratio::new(many.bounded(of).ok()?, few.bounded(of).ok()?, bias)
    };
    let rates = ratio(|f| f.requests_per_s, Bias::Takes)?;
    let rates = rates.text(|rates| format!("{:+.1}%", (rates - 1.0) * 100.0));
    let times = ratio(|f| f.mean_ms, Bias::Adds)?.text(|times| format!("{times:.2}"));
    let clients = f64::from(many.clients?) / f64::from(few.clients?);
    let text = format!(
        "{clients:.1} times the connections changed throughput by {rates} and made the average response {times} times as long"
    );
    if let Some(why) = many.busy_host().or_else(|| few.busy_host()) {
        return Some(finding::no_conclusion(&text, &why));
    }
    let limit = many.figures()?.busy.sentence();
    Some(finding::Finding::note(format!("{text}; {limit}")))
}
