//! The example run of the files of a run, and golden files.

#[path = "../../../run_files/tests/it/support.rs"]
mod example_run;

use plimsoll_measure::{Nanos, Outcome, Sample, StageId};

pub(crate) use example_run::*;

/// Compares with a file of `tests/golden`.
#[track_caller]
pub(crate) fn golden(name: &str, text: &str) {
    expect_test::expect_file![path("tests/golden").join(name)].assert_eq(text);
}

/// The turns of [`samples`] with a late generator: it dispatched 4 % of them 900 ms late, and read
/// each first token of the closed stage up to 2 ms late.
pub(crate) fn late_samples() -> Vec<Sample> {
    let mut samples = samples();
    for (index, sample) in samples.iter_mut().enumerate() {
        let closed = sample.stage == StageId(1);
        if closed && sample.outcome == Outcome::Completed {
            sample.generator.first_token = Nanos::from_millis(2);
        } else if index % 25 == 0 {
            let late = Nanos::from_millis(900);
            let line = &mut sample.timeline;
            for at in [
                &mut line.dispatched,
                &mut line.connected,
                &mut line.sent,
                &mut line.first_byte,
                &mut line.first_token,
                &mut line.first_output_token,
                &mut line.last_token,
                &mut line.finished,
            ] {
                *at = at.map(|at| at + late);
            }
            sample.generator.dispatch = late;
        }
    }
    samples.sort_by_key(|sample| sample.timeline.finished);
    samples
}
