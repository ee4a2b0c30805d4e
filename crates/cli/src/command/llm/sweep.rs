//! Users doubled until the target is saturated.

use anyhow::Error;
use plimsoll_knee::Climb;
use plimsoll_metrics::Group;

use super::plan::LlmProfile;
use crate::exit::Exit;
use crate::session::{FinishedRun, RunOptions, Session};

/// A level that gives less than this more than the one before, beyond their intervals, shows
/// saturation.
const LEAST_GAIN: f64 = 1.05;
/// The most users.
const MOST_USERS: f64 = 1_024.0;
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
    mut stages: String,
) -> Sweep {
    let mut sweep = Sweep { runs: Vec::new(), failed: None };
    let mut climb = Climb::new(1.0, MOST_USERS, 1.0, true);
    let duration = stages.rsplit(':').next().unwrap_or_default().to_owned();
    let mut before = [0.0; 2];
    while climb.next().is_some() {
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
        let is_valid = run.summary.is_valid();
        let goes_on = is_valid && may_rise(before, now) && success >= LEAST_SUCCESS;
        sweep.runs.push(run);
        if exit == Exit::Interrupted || !goes_on {
            break;
        }
        before = now;
        climb.record(true);
        if let Some(next) = climb.next() {
            stages = format!("{:.0}:{}", climb.loads()[next], duration);
        }
    }
    sweep
}

/// The limits of output tokens per second; of completed requests per second where no tokens are
/// counted.
pub(super) fn throughput(group: &Group) -> [f64; 2] {
    let tokens = group.token_rate().map(|tokens| tokens.figure);
    let rate = tokens.or_else(|| group.named_rate("throughput")).unwrap_or_default();
    rate.interval.unwrap_or([rate.value; 2])
}

/// Whether a level may give more than the one before, within the limits of both.
fn may_rise(before: [f64; 2], now: [f64; 2]) -> bool {
    now[1] > 0.0 && now[1] >= before[0] * LEAST_GAIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_goes_on_while_two_levels_are_not_told_apart() {
        for (before, now, goes_on) in [
            ([10.0, 10.0], [10.6, 10.6], true),
            ([10.0, 10.0], [10.4, 10.4], false),
            ([6.0, 18.0], [12.0, 12.0], true),
            ([11.0, 13.0], [9.0, 12.0], true),
            ([11.0, 13.0], [9.0, 11.0], false),
            ([0.0, 0.0], [0.0, 0.0], false),
        ] {
            assert_eq!(may_rise(before, now), goes_on, "{before:?} {now:?}");
        }
    }
}
