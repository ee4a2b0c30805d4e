//! Users doubled until the target is saturated.

use anyhow::Error;
use plimsoll_metrics::Group;

use super::Load;
use super::plan::{self, LlmProfile};
use crate::exit::Exit;
use crate::session::{FinishedRun, RunOptions, Session};

/// A level that gives less than this more than the one before shows saturation.
const LEAST_GAIN: f64 = 1.05;
/// The most users.
const MOST_USERS: u32 = 1_024;
/// A level at which fewer requests succeed is the last.
const LEAST_SUCCESS: f64 = 0.9;

/// The runs of a sweep, and why there is no further one, if that is an error.
pub(super) struct Sweep {
    pub(super) runs: Vec<FinishedRun>,
    pub(super) failed: Option<Error>,
}

/// Runs one level after another.
pub(super) fn until_saturated(
    session: &mut Session,
    profile: &mut LlmProfile,
    options: &RunOptions,
    load: &Load,
) -> Sweep {
    let mut sweep = Sweep { runs: Vec::new(), failed: None };
    let (mut users, mut before) = (1, 0.0);
    let mut stages = plan::stages(load);
    while users <= MOST_USERS {
        let run = profile.plan(&stages).and_then(|plan| session.run_plan(plan, options));
        let run = match run {
            Ok(run) => run,
            Err(error) => {
                sweep.failed = Some(error);
                break;
            }
        };
        let (exit, total) = (run.exit, &run.summary.results.total);
        let (now, success) = (throughput(total), total.rates.success_rate.unwrap_or(0.0));
        // Beyond what the generator can carry there is nothing to learn.
        let is_valid = run.summary.validity.is_valid();
        let goes_on =
            is_valid && now >= before * LEAST_GAIN && now > 0.0 && success >= LEAST_SUCCESS;
        sweep.runs.push(run);
        if exit == Exit::Interrupted || !goes_on {
            break;
        }
        before = now;
        users *= 2;
        stages = format!("{users}:{}", load.duration);
    }
    sweep
}

/// Output tokens per second; completed requests per second where no tokens are counted.
pub(super) fn throughput(group: &Group) -> f64 {
    let rates = &group.rates;
    let tokens = [rates.output_token_rate_reported_per_s, rates.output_token_rate_estimated_per_s];
    let tokens: f64 = tokens.into_iter().flatten().sum();
    if tokens > 0.0 { tokens } else { rates.throughput_per_s.unwrap_or(0.0) }
}
