//! The claims of readiness that the published benchmark makes, each as far as the data carry it.

use plimsoll_report::format::{DASH, count, digits, percent, time};
use plimsoll_report::table::Table;

use crate::report::Section;
use crate::result::{Figures, MeasurementResult};

/// Requests per second of the first claim.
const PER_S: f64 = 20_000.0;
/// How much of its throughput a gateway may lose to twice the connections and still "maintain" it.
const KEPT: f64 = 0.95;

/// What is measured of a claim, and whether it holds.
type Judged = (String, &'static str);

const NOT_SHOWN: &str = "not shown";

pub(super) fn section(results: &[MeasurementResult]) -> Option<Section> {
    let [moderate, extreme] = results else { return None };
    let mut table = Table::new(["Claim", "Measured", "Holds"]);
    for (claim, (measured, holds)) in [
        ("20,000 requests/s and more, with both loads", rate(results)),
        ("an average below 10 ms, with both loads", average(results, 10.0)),
        ("an average below 1 ms, with the moderate load", average(&results[..1], 1.0)),
        ("no errors", errors(results)),
        ("twice the connections keep 95 % of the throughput", kept(moderate, extreme)),
        (
            "stable for hours, in production, over a network",
            (DASH.to_owned(), "not measured: the loads last a minute at most, on this host"),
        ),
    ] {
        table.row([claim.to_owned(), measured, holds.to_owned()]);
    }
    Some(Section::new("Readiness, as far as these data carry it", table).note(
        "no: measured, and it does not hold. not shown: the figure must not be used, or is a limit that leaves it open; Findings says why",
    ))
}

const fn word(holds: bool) -> &'static str {
    if holds { "yes" } else { "no" }
}

fn usable(result: &MeasurementResult) -> Option<Figures> {
    result.figures().filter(|_| result.busy_host().is_none())
}

/// A rate that the generator kept down is a lower bound: it may show that the claim holds.
fn rate(results: &[MeasurementResult]) -> Judged {
    let rates = results.iter().map(|result| usable(result)?.requests_per_s);
    let Some(rates) = rates.collect::<Option<Vec<_>>>() else {
        return (DASH.to_owned(), NOT_SHOWN);
    };
    let lowest = rates.iter().map(|rate| rate.value).fold(f64::INFINITY, f64::min);
    let refused = rates.iter().any(|rate| rate.refused.is_some());
    let holds = if lowest >= PER_S || !refused { word(lowest >= PER_S) } else { NOT_SHOWN };
    (format!("{}{}/s at least", if refused { ">= " } else { "" }, digits(lowest)), holds)
}

/// The generator can only add to a time.
fn average(results: &[MeasurementResult], limit_ms: f64) -> Judged {
    let means = results.iter().map(|result| usable(result)?.mean_ms);
    let Some(means) = means.collect::<Option<Vec<_>>>() else {
        return (DASH.to_owned(), NOT_SHOWN);
    };
    let longest = means.iter().map(|mean| mean.value).fold(0.0, f64::max);
    let least = means.iter().map(|mean| mean.value - mean.bound).fold(0.0, f64::max);
    let holds = match (longest < limit_ms, least < limit_ms) {
        (true, _) => "yes",
        (false, false) => "no",
        (false, true) => NOT_SHOWN,
    };
    (format!("{} at most", time(longest)), holds)
}

fn errors(results: &[MeasurementResult]) -> Judged {
    let passes = results.iter().flat_map(|result| &result.passes);
    let requests: u64 = passes.clone().map(|pass| pass.requests).sum();
    let errors: u64 = passes.map(|pass| pass.errors).sum();
    if requests == 0 {
        return (DASH.to_owned(), NOT_SHOWN);
    }
    (format!("{} of {}", count(errors), count(requests)), word(errors == 0))
}

fn kept(moderate: &MeasurementResult, extreme: &MeasurementResult) -> Judged {
    let rates = [moderate, extreme].map(|result| usable(result)?.requests_per_s?.sound());
    match rates {
        [Some(few), Some(many)] if few > 0.0 => {
            (format!("{} of it", percent(many / few)), word(many / few >= KEPT))
        }
        _ => (DASH.to_owned(), NOT_SHOWN),
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_metrics::{BoundedFigure, Refusal};

    use super::*;

    fn result(rate: f64, mean: f64, refused: bool) -> MeasurementResult {
        let refused = refused.then_some(Refusal::Generator);
        let figures = Figures {
            requests: 1_000,
            requests_per_s: Some(BoundedFigure { value: rate, bound: 0.0, refused }),
            mean_ms: Some(BoundedFigure { value: mean, bound: 0.5, refused }),
            ..Figures::default()
        };
        MeasurementResult { passes: vec![figures], ..MeasurementResult::default() }
    }

    fn holds(results: &[MeasurementResult]) -> Vec<String> {
        let table = section(results).unwrap().table;
        table.rows.iter().map(|row| row[2].clone()).take(5).collect()
    }

    /// The published figures: 21,989 and 20,550/s, 4.59 and 9.90 ms.
    #[test]
    fn claims_that_the_data_do_not_carry_are_not_made() {
        let published = [result(21_989.0, 4.59, false), result(20_550.0, 9.90, false)];
        assert_eq!(holds(&published), ["yes", "yes", "no", "yes", "no"]);
        let limited = [result(21_989.0, 1.2, true), result(12_000.0, 10.2, true)];
        assert_eq!(holds(&limited), ["not shown", "not shown", "not shown", "yes", "not shown"]);
        let refused = MeasurementResult {
            passes: vec![Figures { requests: 10, errors: 10, ..Figures::default() }],
            ..MeasurementResult::default()
        };
        let all = [refused.clone(), refused];
        assert_eq!(holds(&all), ["not shown", "not shown", "not shown", "no", "not shown"]);
    }
}
