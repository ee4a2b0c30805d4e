//! The quick suite: a closed loop on `/metrics`, moderate and extreme, side by side.

use plimsoll_metrics::{Bias, BoundedFigure};
use plimsoll_report::format::{DASH, count, digits, percent, time};
use plimsoll_report::table::Table;

use super::columns::{
    self, AVG, BYTES, Column, ERRORS, GW_CORE, LOAD_CORE, MAX, P99, RPS, SECONDS, THREADS,
};
use super::{length, passes};
use crate::error::SuiteError;
use crate::measurement::Measurement;
use crate::ratio::Ratio;
use crate::report::{Section, published};
use crate::result::{Figures, MeasurementResult};
use crate::runner::SuiteRunner;
use crate::target::Gateway;
use crate::{finding, sizing};

const PATH: &str = "/metrics";

pub(super) fn run(runner: &mut SuiteRunner<'_>) -> Result<(), SuiteError> {
    let gateway = match runner.target() {
        Some(target) => Gateway::external(target),
        // Its metrics tell of every route that was asked for.
        None => runner.launch("proxy", &[], None, PATH)?,
    };
    let options = runner.options;
    // The factor multiplies the clients and threads of the moderate load.
    let loads = [("moderate", 1, length(options, 30)), ("extreme", 2, length(options, 60))];
    let mut results = Vec::new();
    runner.section = "GET /metrics";
    if runner.serves(&gateway.target, PATH)? {
        runner.probe_limits(&Measurement::get("burst", &gateway.target, PATH))?;
        let measurements = loads.map(|(name, factor, length)| {
            let clients = options.clients.unwrap_or(100) * u32::from(factor);
            let threads = options.threads.map(|threads: u16| threads.saturating_mul(factor));
            let label = format!("{name}, {clients} connections");
            let request = Measurement::get(&label, &gateway.target, PATH).threads(threads);
            request.clients(clients, length)
        });
        results = runner.measure(&measurements, passes(options, 1, 3));
    }
    runner.ask_version(&gateway);
    let table = side_by_side(&results);
    let readiness = section(&results);
    let scaling = finding::scaling([(PATH, &results[..])]);
    let levels: Vec<_> = results.iter().collect();
    runner.report.sections.extend(std::iter::once(table).chain(scaling).chain(readiness));
    runner.capacities.push(sizing::capacity(&format!("gateway, GET {PATH}"), &levels));
    runner.report.references.push(published("Reference: RustyGW"));
    Ok(())
}

const MB_PER_S: Column =
    ("MB/s", |r| columns::beside_rate(r, |f| Some(digits(f.megabytes_per_s?))));
const GBIT_PER_S: Column =
    ("Gbit/s", |r| columns::beside_rate(r, |f| Some(digits(f.megabytes_per_s? * 8.0 / 1e3))));
const TOTAL: Column = ("Total", columns::ANSWERS.1);

fn side_by_side(results: &[MeasurementResult]) -> Section {
    let columns = &[
        RPS, AVG, P99, MAX, ERRORS, MB_PER_S, TOTAL, GW_CORE, LOAD_CORE, THREADS, GBIT_PER_S,
        BYTES, SECONDS,
    ];
    let table = columns::results("Load", columns, results);
    Section::new("GET /metrics, closed loop", table)
}

// The readiness claims of the published benchmark, each judged as far as the data allow.

/// Requests per second of the first claim.
const PER_S: f64 = 20_000.0;
/// How much of its throughput a gateway may lose to twice the connections and still "maintain" it.
const KEPT: f64 = 0.95;

/// The measurement of a claim, and whether the claim holds.
type Judged = (String, &'static str);

const NOT_SHOWN: &str = "not shown";

fn section(results: &[MeasurementResult]) -> Option<Section> {
    if results.len() != 2 {
        return None;
    }
    // A narrow screen drops the last columns.
    let mut table = Table::new(["Claim", "Holds", "Load", "Measured"]);
    for (claim, load, (measured, holds)) in [
        (">= 20,000/s", "both", rate(results)),
        ("an average below 10 ms", "both", average(results, 10.0)),
        ("an average below 1 ms", "moderate", average(&results[..1], 1.0)),
        ("no errors", "both", errors(results)),
        ("95% of RPS", "twice the connections", kept(results)),
        ("stable", "hours, production, network", (DASH.to_owned(), "not measured")),
    ] {
        table.row([claim.to_owned(), holds.to_owned(), load.to_owned(), measured]);
    }
    Some(Section::new("Readiness, as far as these data show", table))
}

/// The word for a claim that holds or not at the two limits of its figure.
const fn word(holds: [bool; 2]) -> &'static str {
    match holds {
        [true, true] => "yes",
        [false, false] => "no",
        _ => NOT_SHOWN,
    }
}

fn not_shown() -> Judged {
    (DASH.to_owned(), NOT_SHOWN)
}

fn usable(result: &MeasurementResult) -> Option<Figures> {
    result.figures().filter(|_| result.busy_host().is_none())
}

/// A figure of every load, if all of them may be used.
fn of_all(
    results: &[MeasurementResult],
    of: fn(&Figures) -> Option<BoundedFigure>,
) -> Option<Vec<BoundedFigure>> {
    results.iter().map(|result| of(&usable(result)?)).collect()
}

/// The generator can only have held a rate back: the claim holds or not at both limits.
fn rate(results: &[MeasurementResult]) -> Judged {
    let Some(rates) = of_all(results, |f| f.requests_per_s) else { return not_shown() };
    let limits = rates
        .iter()
        .map(|rate| rate.limits(Bias::Takes))
        .fold([f64::INFINITY; 2], |lowest, limits| [0, 1].map(|n| lowest[n].min(limits[n])));
    let refused = rates.iter().any(|rate| rate.refused.is_some());
    let least = format!("{}{}/s at least", if refused { ">= " } else { "" }, digits(limits[0]));
    (least, word(limits.map(|lowest| lowest >= PER_S)))
}

/// The generator can only add to a time.
fn average(results: &[MeasurementResult], limit_ms: f64) -> Judged {
    let Some(means) = of_all(results, |f| f.mean_ms) else { return not_shown() };
    let longest = means.iter().map(|mean| mean.value).fold(0.0, f64::max);
    let least = means.iter().map(|mean| mean.value - mean.bound).fold(0.0, f64::max);
    (format!("{} at most", time(longest)), word([least, longest].map(|mean| mean < limit_ms)))
}

fn errors(results: &[MeasurementResult]) -> Judged {
    let passes = results.iter().flat_map(|result| &result.passes);
    let requests: u64 = passes.clone().map(|pass| pass.requests).sum();
    let errors: u64 = passes.clone().map(|pass| pass.errors).sum();
    if requests == 0 {
        return not_shown();
    }
    let all = passes.count();
    (format!("{} of {} in {all} passes", count(errors), count(requests)), word([errors == 0; 2]))
}

fn kept(results: &[MeasurementResult]) -> Judged {
    let rates = of_all(results, |f| f.requests_per_s);
    let ratio = rates.and_then(|rates| Ratio::new(*rates.get(1)?, *rates.first()?, Bias::Takes));
    let Some(ratio) = ratio else { return not_shown() };
    let holds = [ratio.low, ratio.high].map(|share| share >= KEPT);
    (format!("{} of it", ratio.text(percent)), word(holds))
}

#[cfg(test)]
mod tests {
    use plimsoll_metrics::Refusal;

    use super::*;

    /// The generator may have held back as much again, if the figures are refused.
    fn result(rate: f64, mean: f64, refused: bool) -> MeasurementResult {
        let refused = refused.then_some(Refusal::Generator);
        let bound = if refused.is_some() { rate } else { 0.0 };
        let figures = Figures {
            requests: 1_000,
            requests_per_s: Some(BoundedFigure { value: rate, bound, interval: None, refused }),
            mean_ms: Some(BoundedFigure { value: mean, bound: 0.5, interval: None, refused }),
            ..Figures::default()
        };
        MeasurementResult { passes: vec![figures], ..MeasurementResult::default() }
    }

    fn holds(results: &[MeasurementResult]) -> Vec<String> {
        let table = section(results).unwrap().table;
        table.rows.iter().map(|row| row[1].clone()).take(5).collect()
    }

    /// The published figures: 21,989 and 20,550/s, 4.59 and 9.90 ms.
    #[test]
    fn claims_that_the_data_do_not_carry_are_not_made() {
        let published = [result(21_989.0, 4.59, false), result(20_550.0, 9.90, false)];
        assert_eq!(holds(&published), ["yes", "yes", "no", "yes", "no"]);
        let limited = [result(21_989.0, 1.2, true), result(12_000.0, 10.2, true)];
        assert_eq!(holds(&limited), ["not shown", "not shown", "not shown", "yes", "not shown"]);
        // At most 18,000/s with the extreme load, and an average of at least 10.1 ms.
        let slow = [result(12_000.0, 1.2, true), result(9_000.0, 10.6, true)];
        assert_eq!(holds(&slow), ["no", "no", "not shown", "yes", "not shown"]);
        let refused = MeasurementResult {
            passes: vec![Figures { requests: 10, errors: 10, ..Figures::default() }],
            ..MeasurementResult::default()
        };
        let all = [refused.clone(), refused];
        assert_eq!(holds(&all), ["not shown", "not shown", "not shown", "no", "not shown"]);
    }
}
