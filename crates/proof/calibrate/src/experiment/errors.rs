//! T10: every failure is in its own class, and none affects the percentiles of success.

use std::collections::BTreeMap;

use plimsoll_measure::{ErrorClass, Nanos, Outcome, Sample, ScenarioId};
use plimsoll_runner::Finished;
use plimsoll_stats::descriptive::{ascending, quantile};

use super::Observations;
use crate::error::CalibrateError;
use crate::finding::Check;
use crate::mock_log::{join, true_service_us};
use crate::runner::Runner;
use crate::server::{NullSpec, ServerSpec};

/// Name, weight, header and the expected outcome.
const MIX: [(&str, u32, &str, Outcome); 5] = [
    ("ok", 81, "x-mock-status: '200'", Outcome::Completed),
    ("refused", 10, "x-mock-status: '429'", Outcome::Rejected(429)),
    ("failed", 5, "x-mock-status: '503'", Outcome::Failed(ErrorClass::ServerError)),
    ("broken", 2, "x-mock-fault: reset@2", Outcome::Failed(ErrorClass::Reset)),
    ("hung", 2, "x-mock-fault: hang", Outcome::TimedOut),
];

/// Sends a known mix of errors, and requests to a closed port.
pub(super) fn t10_error_mix(runner: &Runner) -> Result<Observations, CalibrateError> {
    let scenarios: Vec<_> = MIX
        .iter()
        .map(|(name, weight, header, _): &(&str, u32, &str, Outcome)| {
            format!("  - {{name: {name}, weight: {weight}, headers: {{{header}}}}}\n")
        })
        .collect();
    let scenarios = scenarios.concat();
    let stage = runner.usual_or_full("@500:2s", "@500:20s");
    let mock = runner.mock("ttft: 5ms")?;
    let profile = format!(
        "content: {{mode: sized, approx_input_tokens: 16}}\nmax_tokens: 4\nstream: true\ntimeout: 500ms\nstages: '{stage}'\nscenarios:\n{scenarios}"
    );
    let run = runner.run(&mock.url(), &profile)?;
    let log = mock.finish()?.requests;
    let mut checks = classes(&run);
    let pairs = join(&run, &log);
    let successes: Vec<_> = pairs.iter().filter(|(sample, _)| is_counted(sample)).collect();
    let truth =
        ascending(successes.iter().filter_map(|(_, record)| true_service_us(record)).collect());
    let times = successes.iter().filter_map(|(sample, _)| sample.timeline.service_time());
    let measured = ascending(times.map(Nanos::as_micros_f64).collect());
    for (q, name) in [(0.5, "p50"), (0.99, "p99")] {
        let (measured, truth) = (quantile(&measured, q), quantile(&truth, q));
        checks.push(Check::within(format!("success {name}"), "us", measured, truth, 50.0));
    }
    checks.push(refused_connections(runner)?);
    Ok(checks.into())
}

/// Resets and time-outs cost connections, and opening a new one is not part of the server's
/// time.
fn is_counted(sample: &Sample) -> bool {
    sample.scenario == ScenarioId(0) && sample.reused
}

/// The outcomes of each scenario, which must all be the expected one.
fn classes(run: &Finished) -> Vec<Check> {
    let mut found: BTreeMap<(usize, bool), usize> = BTreeMap::new();
    for sample in &run.samples {
        let scenario = sample.scenario.index();
        let expected = MIX.get(scenario).is_some_and(|(.., outcome)| sample.outcome == *outcome);
        *found.entry((scenario, expected)).or_default() += 1;
    }
    MIX.iter()
        .enumerate()
        .map(|(index, (name, ..))| {
            let [expected, others] = [true, false]
                .map(|expected| found.get(&(index, expected)).copied().unwrap_or_default());
            let all = expected + others;
            Check::exact(format!("`{name}` in its class"), expected, all.max(1))
        })
        .collect()
}

fn refused_connections(runner: &Runner) -> Result<Check, CalibrateError> {
    // A port that was free a moment ago.
    let ended = runner.serve(ServerSpec::Null(NullSpec::default()))?;
    let url = ended.url();
    ended.finish()?;
    let run = runner.run(&url, "protocol: http\nhttp: {path: /}\nstages: '@100:300ms'\n")?;
    let refused = Outcome::Failed(ErrorClass::ConnectRefused);
    let count = run.samples.iter().filter(|sample| sample.outcome == refused).count();
    Ok(Check::exact("connections refused", count, 30))
}
