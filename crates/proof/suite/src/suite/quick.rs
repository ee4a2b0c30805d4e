//! The quick suite: a closed loop on `/metrics`, moderate and extreme, side by side.

mod readiness;

use plimsoll_metrics::{Bias, BoundedFigure};
use plimsoll_report::format::{count, digits, or_dash, time};
use plimsoll_report::table::Table;

use super::{columns, length, passes};
use crate::error::SuiteError;
use crate::figures::TimedResponses;
use crate::finding;
use crate::measurement::{Length, Measurement};
use crate::ratio::Ratio;
use crate::report::{Report, Section};
use crate::result::{Figures, MeasurementResult};
use crate::runner::{Pass, SuiteRunner};
use crate::sizing;
use crate::target::Gateway;

const PATH: &str = "/metrics";

pub(super) fn run(runner: &mut SuiteRunner<'_>) -> Result<Report, SuiteError> {
    let gateway = match runner.target() {
        Some(target) => Gateway::external(target),
        None => runner.fresh_gateway("proxy")?,
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
    let mut report =
        Report::begin("quick", "a closed loop on /metrics, moderate and extreme", runner);
    report.sections.push(side_by_side(&results, runner.target().is_none()));
    report.sections.extend(readiness::section(&results, &thirds));
    report.findings.extend(finding::saturation(PATH, &results));
    report.findings.extend(steps(&results));
    report.findings.extend(finding::degradation(PATH, &results));
    report.findings.extend(results.iter().filter_map(finding::sub_millisecond));
    let levels: Vec<_> = results.iter().collect();
    let capacity = sizing::capacity(&format!("gateway, GET {PATH}"), &levels);
    report.size("Instances of the gateway for a rate", vec![capacity], options.size_for);
    report.references.push(reference());
    Ok(report.conclude())
}

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
    let heads = [
        "Load",
        "Threads",
        "RPS",
        "Avg",
        "p99",
        "Max",
        "MB/s",
        "Gbit/s",
        "bytes",
        "Total",
        "Secs",
        "Errors",
        "gateway CPU",
        "load CPU",
    ];
    let mut table = Table::new(heads);
    for result in results {
        table.row([
            columns::label(result),
            or_dash(result.shown().and_then(|figures| figures.threads), count),
            columns::throughput(result),
            columns::time(result, |f| f.mean_ms),
            columns::time(result, |f| f.p99_ms),
            columns::time(result, |f| f.max_ms),
            columns::beside_rate(result, |f| Some(digits(f.megabytes_per_s?))),
            columns::beside_rate(result, |f| Some(digits(f.megabytes_per_s? * 8.0 / 1e3))),
            columns::answer_bytes(result),
            columns::beside_rate(result, |f| Some(count(f.answers()?))),
            columns::seconds(result),
            columns::errors(result),
            columns::gateway_busy(result),
            columns::load_busy(result),
        ]);
    }
    let none = if over_loopback { "; over loopback there is none" } else { "" };
    Section::new("GET /metrics, as many requests as the connections carry", table)
        .note(format!("times are service times of completed requests; CPU is of one core each. MB are 10^6 bytes, heads included: bytes is the size of one answer, and Gbit/s what its network must carry{none}"))
        .note("threads: those of the load, one for each of its cores unless --threads says otherwise. More threads than cores only take time from each other")
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
    let busy = many.figures()?.busy;
    let limit = finding::bottleneck(&busy).sentence(&busy);
    Some(finding::Finding::note(format!("{text}; {limit}")))
}

/// The figures of the published benchmark.
fn reference() -> Section {
    let mut table = Table::new(["Load", "RPS", "Avg", "Max", "MB/s", "Total"]);
    for (name, rps, avg, max, mb, total) in [
        ("moderate: 4 threads, 100 connections, 30 s", 21_989, 4.59, 41.64, 71.88, 660_057),
        ("extreme: 8 threads, 200 connections, 60 s", 20_550, 9.90, 65.83, 67.42, 1_234_493),
    ] {
        let times = [time(avg), time(max), digits(mb)];
        let [avg, max, mb] = times;
        table.row([name.to_owned(), count(rps), avg, max, mb, count(total)]);
    }
    Section::new("Reference: RustyGW v1.0.1, by wrk, on \"a standard cloud server\" (CPU not given)", table)
        .note("another gateway on other hardware, as its authors published it: not comparable with the rows above; wrk's MB are 2^20 bytes, so that an answer has about 3.4 kB")
}
