//! T2 and T3: the server takes a known time, and records how long it really took.

use plimsoll_measure::{Nanos, ScenarioId, StageId};
use plimsoll_metrics::{Distribution, Metric};
use plimsoll_mock::LogRecord;
use plimsoll_runner::Finished;
use plimsoll_stats::descriptive::{ascending, quantile};

use super::{Observations, SMALL};
use crate::error::CalibrateError;
use crate::finding::Check;
use crate::mock_log::{join, true_service_us};
use crate::runner::Runner;

/// The stage after a warm-up that opens the connections, because opening a connection counts as
/// service time but is not a delay of the server. The warm-up therefore lasts longer than the
/// longest delay.
const MEASURED: StageId = StageId(1);

/// The larger of 50 us and half a percent.
fn tolerance_us(truth: f64) -> f64 {
    (truth * 0.005).max(50.0)
}

/// T2: constant delays in one mixed run.
pub(super) fn t2_constant_delays(runner: &Runner) -> Result<Observations, CalibrateError> {
    let mut delays = vec!["1ms", "5ms", "50ms", "500ms"];
    delays.extend(runner.effort().full.then_some("5s"));
    let scenarios: String = delays.iter().map(delay_scenario).collect();
    let stage = runner.usual_or_full("w@400:1s,@400:2s", "w@400:6s,@400:30s");
    let mock = runner.mock("")?;
    let run =
        runner.run(&mock.url(), &format!("{SMALL}stages: '{stage}'\nscenarios:\n{scenarios}"))?;
    let log = mock.finish()?.requests;
    let mut checks = Vec::new();
    for (delay, index) in delays.iter().zip(0..) {
        let truth = truth_of(&run, &log, index);
        let (snapshot, scenario) = (&run.result.snapshot, ScenarioId(index));
        let stats = snapshot.total(|key| key.scenario == scenario && key.stage == MEASURED);
        for (q, name) in [(0.5, "p50"), (0.99, "p99")] {
            let truth = quantile(&truth, q);
            let measured = reported(stats.distribution(Metric::ServiceTime), q);
            let what = format!("{delay} {name}");
            checks.push(Check::within(what, "us", measured, truth, tolerance_us(truth)));
        }
    }
    Ok(checks.into())
}

fn delay_scenario(delay: &&str) -> String {
    format!("  - {{name: {delay}, headers: {{x-mock-ttft: {delay}}}}}\n")
}

fn truth_of(run: &Finished, log: &[LogRecord], scenario: u16) -> Vec<f64> {
    let pairs = join(run, log);
    let measured = pairs
        .iter()
        .filter(|(sample, _)| sample.scenario == ScenarioId(scenario) && sample.stage == MEASURED);
    ascending(measured.filter_map(|(_, record)| true_service_us(record)).collect())
}

/// A quantile as reports show it, in microseconds.
fn reported(distribution: Option<&Distribution>, q: f64) -> f64 {
    let value = distribution.and_then(|distribution| distribution.nearest_rank(q));
    value.map_or(f64::NAN, Nanos::as_micros_f64)
}

/// A Pareto distribution of shape 1.5 from 1 ms, by some of its quantiles: `(1 - p)^(-1/1.5)` ms.
const PARETO: &str = "quantiles: [[0, 1ms], [0.5, 1.5874ms], [0.9, 4.6416ms], [0.99, 21.544ms], [0.999, 100ms], [1, 200ms]]";

const DISTRIBUTIONS: [(&str, &str); 4] = [
    ("exponential", "exponential: {mean: 5ms}"),
    ("lognormal", "lognormal: {median: 5ms, p95: 20ms}"),
    ("bimodal", "bimodal: {low: 1ms, high: 200ms, high_share: 0.01}"),
    ("Pareto", PARETO),
];

/// T3: distributions of delays, against the quantiles of the server's record of the same requests.
pub(super) fn t3_distributions(runner: &Runner) -> Result<Observations, CalibrateError> {
    let seconds = runner.usual_or_full(1, 20);
    let mut checks = Vec::new();
    for (name, distribution) in DISTRIBUTIONS {
        let mock = runner.mock(&format!("ttft: {{{distribution}}}"))?;
        let run = runner.run(&mock.url(), &format!("{SMALL}stages: '@1000:{seconds}s'"))?;
        let log = mock.finish()?.requests;
        let truth = ascending(log.iter().filter_map(true_service_us).collect());
        let total = run.total();
        for (q, label) in [(0.5, "p50"), (0.9, "p90"), (0.99, "p99"), (0.999, "p99.9")] {
            let measured = reported(total.distribution(Metric::ServiceTime), q);
            checks.push(between_neighbours(&format!("{name} {label}"), measured, &truth, q));
        }
    }
    Ok(checks.into())
}

/// A quantile must lie within the tolerance of the true one, beyond the samples next to it: between
/// two samples the quantile is not defined.
fn between_neighbours(what: &str, measured: f64, truth: &[f64], q: f64) -> Check {
    let step = 1.0 / truth.len() as f64;
    let (low, at, high) =
        (quantile(truth, q - step), quantile(truth, q), quantile(truth, (q + step).min(1.0)));
    let side = if measured < at { at - low } else { high - at };
    Check::within(what, "us", measured, at, tolerance_us(at) + side)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_may_lie_between_the_samples_next_to_it() {
        let truth: Vec<f64> = (1..=100).map(|n| f64::from(n) * 1_000.0).collect();
        for (measured, passes) in [
            (50_000.0, true),
            (51_200.0, true),
            (48_800.0, true),
            (51_300.0, false),
            (48_700.0, false),
        ] {
            let check = between_neighbours("p50", measured, &truth, 0.5);
            assert_eq!(check.passes(), passes, "{check}");
        }
    }
}
