//! T13: Little's law between the report and the server's own count of requests in progress.

use plimsoll_metrics::Metric;
use plimsoll_mock::LogRecord;
use plimsoll_runner::Finished;

use super::{Observations, SMALL};
use crate::error::CalibrateError;
use crate::finding::Check;
use crate::runner::Runner;

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
