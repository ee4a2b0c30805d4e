//! The experiments that are fast and hold on a crowded machine.
//!
//! Reference servers are threads of this process here and share its cores, so figures of time are
//! given several times their bound; counts are exact everywhere. The bounds themselves are for
//! `plimsoll calibrate`.

use plimsoll_calibrate::ExperimentResult;

use crate::support::{assert_kept, assert_kept_undisturbed, run};

#[test]
fn every_request_is_accounted_for_whatever_the_end() {
    assert_kept(&run("T9"), 1.0);
}

#[test]
fn every_error_has_its_class() {
    // The percentiles of success are times.
    assert_kept(&run("T10"), 200.0);
}

#[test]
fn streams_are_read_as_they_were_written() {
    assert_kept_undisturbed("T11", 50.0);
}

#[test]
fn littles_law_holds() {
    assert_kept_undisturbed("T13", 3.0);
}

#[test]
fn what_the_target_merged_is_not_blamed_on_the_generator() {
    assert_kept_undisturbed("T28", 1.0);
}

#[test]
fn connections_are_counted_as_the_server_counts_them() {
    assert_kept(&run("T16"), 100.0);
}

#[test]
fn a_test_that_cannot_be_carried_out_does_not_pass() {
    for test in ["T5", "T15", "T22", "T23", "T24", "T25", "T26", "T29"] {
        let finding = run(test);
        assert!(matches!(finding.result, ExperimentResult::NotRun(_)), "{finding}");
    }
}
