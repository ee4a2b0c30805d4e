//! Experiments in this process, and their figures against widened bounds.

use std::sync::{Mutex, MutexGuard, PoisonError};

use plimsoll_calibrate::{Bound, Check, Effort, Experiment, Finding, Runner};
use plimsoll_measure::{Moment, Nanos, Outcome, Sample, Timeline};

/// One experiment at a time: they measure time.
pub(crate) fn exclusive() -> MutexGuard<'static, ()> {
    static EXCLUSIVE: Mutex<()> = Mutex::new(());
    EXCLUSIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A runner without processes.
pub(crate) fn runner() -> Runner {
    Runner::new(None, Effort::default()).unwrap()
}

pub(crate) fn run(experiment: &str) -> Finding {
    let _exclusive = exclusive();
    Experiment::named(experiment).unwrap().run(&runner())
}

/// Whether a figure keeps its bound, widened by a factor. Exact figures stay exact.
fn keeps(check: &Check, slack: f64) -> bool {
    match check.bound {
        Bound::Within { truth, tolerance } => (check.measured - truth).abs() <= tolerance * slack,
        Bound::Below(bound) => check.measured < bound * slack,
        Bound::AtMost(bound) => check.measured <= bound * slack,
        Bound::AtLeast(bound) => check.measured >= bound / slack,
    }
}

/// Some figures are exact only if the host never delays the process for a whole gap of the stream,
/// because waiting events are read together. One of five attempts must be exact; an error in the
/// code fails all of them.
#[track_caller]
pub(crate) fn assert_kept_undisturbed(experiment: &str, slack: f64) {
    let finding = (0..5)
        .map(|_| run(experiment))
        .find(|finding| finding.checks.iter().all(|check| keeps(check, slack)));
    assert_kept(&finding.unwrap_or_else(|| run(experiment)), slack);
}

#[track_caller]
pub(crate) fn assert_kept(finding: &Finding, slack: f64) {
    assert!(!finding.checks.is_empty(), "{finding}");
    for check in &finding.checks {
        assert!(keeps(check, slack), "{}: {check}", finding.experiment);
    }
}

/// A request that was sent on time and completed after `service`.
pub(crate) fn completed(intended: Moment, service: Nanos) -> Sample {
    Sample {
        reused: true,
        timeline: Timeline {
            intended,
            dispatched: Some(intended),
            finished: Some(intended + service),
            ..Timeline::default()
        },
        status: 200,
        outcome: Outcome::Completed,
        ..Sample::unsent(intended)
    }
}
