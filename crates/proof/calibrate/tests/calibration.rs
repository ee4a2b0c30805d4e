//! The calibration as part of the test suite: the tests that are fast and hold on a crowded machine.
//!
//! Reference servers are threads of this process here and share its cores with everybody, so figures of time are
//! given several times their bound; counts are exact everywhere. The bounds themselves are for `plimsoll calibrate`.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

use std::sync::{Mutex, MutexGuard, PoisonError};

use plimsoll_calibrate::{
    Bench, Bound, Check, Effort, Finding, Record, SCHEMA, Test, TestResult, calibrate,
};

/// One test at a time: they measure time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn find(test: &str) -> Finding {
    let _alone = alone();
    Test::named(test).unwrap().run(&Bench::new(None, Effort::default()).unwrap())
}

/// Does a figure keep its bound, widened by a factor? Exact figures stay exact.
fn keeps(check: &Check, slack: f64) -> bool {
    match check.bound {
        Bound::Within { truth, tolerance } => (check.measured - truth).abs() <= tolerance * slack,
        Bound::AtMost(bound) => check.measured <= bound * slack,
        Bound::AtLeast(bound) => check.measured >= bound / slack,
    }
}

#[track_caller]
fn assert_kept(finding: &Finding, slack: f64) {
    assert!(!finding.checks.is_empty(), "{finding}");
    for check in &finding.checks {
        assert!(keeps(check, slack), "{}: {check}", finding.test);
    }
}

#[test]
fn merged_shards_are_one_recorder() {
    let finding = find("T17");
    assert_eq!((&finding.result, finding.checks.len()), (&TestResult::Pass, 8));
}

#[test]
fn every_request_is_accounted_for_whatever_the_end() {
    assert_kept(&find("T9"), 1.0);
}

#[test]
fn every_error_has_its_class() {
    // The percentiles of success are times.
    assert_kept(&find("T10"), 200.0);
}

#[test]
fn streams_are_read_as_they_were_written() {
    assert_kept(&find("T11"), 50.0);
}

#[test]
fn little_is_right() {
    assert_kept(&find("T13"), 3.0);
}

#[test]
fn connections_are_counted_as_the_server_counts_them() {
    let finding = find("T16");
    assert_kept(&finding, 100.0);
    assert!(finding.notes.iter().any(|note| note.contains("not exhausted here")), "{finding}");
}

#[test]
fn a_test_that_cannot_be_carried_out_does_not_pass() {
    for test in ["T5", "T15"] {
        let finding = find(test);
        assert!(matches!(finding.result, TestResult::NotRun(_)), "{finding}");
    }
    for test in ["T19", "T21"] {
        assert!(matches!(find(test).result, TestResult::Elsewhere(_)));
    }
}

#[test]
fn the_record_is_kept_for_later_runs_on_this_host_alone() {
    let _alone = alone();
    let bench = Bench::new(None, Effort::default()).unwrap();
    let mut told = Vec::new();
    let tests = ["T17", "T19"].map(|test| Test::named(test).unwrap());
    let record = calibrate(&bench, &tests, "0.0.0", &mut |finding| told.push(finding.test.clone()));
    assert_eq!((told, record.passed()), (vec!["T17".to_owned(), "T19".to_owned()], true));
    assert!(record.quote().starts_with("1 tests passed"), "{}", record.quote());

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state/calibration.json");
    assert_eq!(Record::load_from(&path).unwrap(), None, "never calibrated");
    record.store(&path).unwrap();
    assert_eq!(Record::load_from(&path).unwrap().as_ref(), Some(&record));

    for (why, text) in [
        (
            "another host",
            std::fs::read_to_string(&path).unwrap().replace(&record.host.kernel, "1.0"),
        ),
        (
            "another layout",
            std::fs::read_to_string(&path).unwrap().replace(SCHEMA, "plimsoll.calibration/9"),
        ),
    ] {
        std::fs::write(&path, text).unwrap();
        assert_eq!(Record::load_from(&path).unwrap(), None, "{why}");
        record.store(&path).unwrap();
    }
    std::fs::write(&path, "{").unwrap();
    assert!(Record::load_from(&path).is_err());
}

#[test]
fn not_run_and_nothing_at_all_are_no_pass() {
    let _alone = alone();
    let bench = Bench::new(None, Effort::default()).unwrap();
    for tests in [vec![], vec!["T19"], vec!["T17", "T5"]] {
        let tests: Vec<_> = tests.into_iter().filter_map(Test::named).collect();
        assert!(!calibrate(&bench, &tests, "0.0.0", &mut |_| {}).passed(), "{tests:?}");
    }
}
