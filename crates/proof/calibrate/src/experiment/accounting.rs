//! T9: however a run ends, we count as many sent requests as the server received.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_engine::Control;
use plimsoll_measure::{
    ErrorClass, Moment, MonotonicClock, Nanos, Outcome, Sample, ScenarioId, Seed,
};
use plimsoll_metrics::Metric;
use plimsoll_mock::LogRecord;
use plimsoll_runner::Finished;
use plimsoll_runner::time::sleep;
use plimsoll_stats::descriptive::{ascending, quantile};

use super::{Observations, SMALL};
use crate::error::CalibrateError;
use crate::experiment::{join, true_service_us};
use crate::finding::Check;
use crate::runner::{Runner, plan};
use crate::server::{NullSpec, ServerSpec};

/// Most requests are answered, some late; some are refused, reset or never answered.
const MODEL: &str = "ttft: {exponential: {mean: 30ms}}, faults: [{fault: '429', share: 0.05}, {fault: '503', share: 0.05}, {fault: reset, share: 0.02}, {fault: hang, share: 0.02}]";

/// Runs that are interrupted at random times, and one that ends normally.
pub(super) fn t9_conservation(runner: &Runner) -> Result<Observations, CalibrateError> {
    let mut rng = Seed(MonotonicClock::start().unix_nanos(Moment::EPOCH)).rng("interrupts", 0);
    let mut checks = Vec::new();
    let shapes = ["@600:1s,30:1s", "30:1s,@600:1s"];
    for (number, stages) in shapes.iter().cycle().take(runner.usual_or_full(2, 20)).enumerate() {
        // The first is not interrupted.
        let at = (number > 0).then(|| Duration::from_millis(100 + rng.below(1_700)));
        checks.extend(conserved(runner, stages, at)?);
    }
    Ok(checks.into())
}

fn conserved(
    runner: &Runner,
    stages: &str,
    interrupt: Option<Duration>,
) -> Result<[Check; 2], CalibrateError> {
    let mock = runner.mock(MODEL)?;
    let profile = format!("{SMALL}stages: '{stages}'\ntimeout: 400ms\ndrain: 200ms\n");
    let (plan, control) = (plan(&mock.url(), &profile, None)?, Control::new());
    let run = std::thread::scope(|scope| {
        let run = scope.spawn(|| runner.run_plan(plan, &control));
        if let Some(at) = interrupt {
            sleep(at);
            control.interrupt();
        }
        run.join().unwrap_or_else(|_| Err(CalibrateError::panicked()))
    })?;
    let received = mock.finish()?.requests.len();
    let end = interrupt.map_or_else(|| "to the end".to_owned(), |at| format!("cut at {at:?}"));
    // A request that a closing connection never answered is sent twice.
    let sent: usize = run
        .samples
        .iter()
        .map(|sample: &Sample| match (sample.outcome, sample.retried_after) {
            (Outcome::NeverSent, _) => 0,
            (_, None) => 1,
            (_, Some(_)) => 2,
        })
        .sum();
    let accounting = run.accounting();
    let balanced = accounting.balanced() && accounting.scheduled == run.samples.len() as u64;
    let what = format!("{stages} {end}: requests sent, of those that the server received");
    Ok([
        Check::exact(what, sent, received),
        Check::holds(format!("{stages} {end}: {accounting}"), balanced),
    ])
}

// T13: Little's law between the report and the server's own count of requests in progress.

/// Twenty users without a pause: the number that the server had in progress, from its own log, is
/// the report's rate times its mean time, whatever the distribution of the times (J. D. C. Little,
/// 1961). The two are counted by different programs, so that either can be wrong.
pub(super) fn t13_steady_state(runner: &Runner) -> Result<Observations, CalibrateError> {
    let seconds = runner.usual_or_full(2, 30);
    let mut checks = Vec::new();
    for (name, delay) in [("constant", "20ms"), ("exponential", "{exponential: {mean: 20ms}}")] {
        let mock = runner.mock(&format!("ttft: {delay}"))?;
        let run = runner.run(&mock.url(), &format!("{SMALL}stages: '20:{seconds}s'\n"))?;
        let seen = in_progress(&run, &mock.finish()?.requests, f64::from(seconds));
        let summary = run.summary(&[])?;
        let rate = summary.results.total.rates.throughput_per_s.unwrap_or(f64::NAN);
        let reported = rate * run.mean_us(Metric::ServiceTime) / 1e6;
        let what = format!("{name}: X R of the report, N by the server's log");
        checks.push(Check::within(what, "", reported, seen, seen * 0.02));
    }
    Ok(checks.into())
}

/// Mean number of requests that the server had in progress within the stage: the parts of their
/// times from arrival to the last write that lie in it, over its length.
fn in_progress(run: &Finished, log: &[LogRecord], seconds: f64) -> f64 {
    let began = run.stage_began(0) as f64;
    let ended = began + seconds * 1e9;
    let held = log.iter().filter_map(|record| {
        let last = record.chunks.last()?.written as f64;
        Some((last.min(ended) - (record.arrived as f64).max(began)).max(0.0))
    });
    held.sum::<f64>() / 1e9 / seconds
}

// T10: every failure is in its own class, and none affects the percentiles of success.

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
