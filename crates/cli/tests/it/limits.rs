//! Runs that end before their stages do: after a number of requests, or because of errors.

use plimsoll_metrics::RunEnd;

use crate::support::{FAST, Fixture};

#[test]
fn a_run_ends_when_its_requests_are_sent() {
    for stages in ["4:60s", "64:60s", "@500:60s"] {
        let fixture = Fixture::with(FAST);
        fixture.run(&["minimal", "--max-requests", "50", "--stages", stages]).expect(0);
        // The target's own count: one more is the probe.
        assert_eq!(fixture.mock.stats().requests, 51, "{stages}");
        let summary = fixture.summary();
        let accounting = summary.results.accounting();
        assert_eq!((accounting.scheduled, accounting.completed), (50, 50), "{stages}");
        assert_eq!(summary.metadata.run.ended, RunEnd::Complete);
        assert!(summary.metadata.stages[0].duration_s < 50.0, "{:?}", summary.metadata.stages);
    }
}

#[test]
fn a_target_that_dies_ends_its_run_ten_seconds_later_and_fails_it() {
    let fixture = Fixture::with("other_models: {faults: [{fault: '503', share: 1.0}]}");
    let args = ["minimal", "--stages", "@20:60s", "--no-probe"];
    let output = fixture.run(&args).expect(1);
    let summary = fixture.summary();
    assert_eq!(summary.metadata.run.ended, RunEnd::TooManyErrors);
    let lasted: f64 = summary.metadata.stages.iter().map(|stage| stage.duration_s).sum();
    assert!((9.9..30.0).contains(&lasted), "{lasted}");
    let verdict = output.expect_screen();
    assert!(verdict.starts_with("FAIL: "), "{verdict}");
    assert!(verdict.contains("failed: status 503"), "{verdict}");
    let text = output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("no success for 1"), "{text}");
    // The same without an end and a failure.
    let args = ["minimal", "--stages", "@20:12s", "--no-probe", "--allow-failures"];
    let output = fixture.run(&[&args[..], &["--out", "more"]].concat()).expect(0);
    assert!(!output.stdout.contains("topped"), "{}", output.stdout);
    let last = output.expect_screen();
    assert!(last.starts_with("DONE: 240 of 240 requests returned 503"), "{last}");
}

#[test]
fn a_run_of_errors_is_given_up_and_fails() {
    let fixture = Fixture::with("other_models: {faults: [{fault: '429:2s', share: 0.8}]}");
    let args = ["minimal", "--stages", "@200:60s", "--abort-on-errors", "50%", "--no-probe"];
    let output = fixture.run(&args).expect(1);
    let summary = fixture.summary();
    assert_eq!(summary.metadata.run.ended, RunEnd::TooManyErrors);
    assert!(summary.metadata.stages[0].duration_s < 50.0, "{:?}", summary.metadata.stages);
    assert!(summary.results.accounting().balanced());
    assert!(summary.results.total.counters.rejected >= 50, "{}", output.stdout);
    let verdict = output.expect_screen();
    assert!(verdict.starts_with("FAIL: ") && verdict.contains("status 429"), "{verdict}");
    assert!(output.stdout.contains("Stopped early after"), "{}", output.stdout);
    // The same target below the limit.
    let fixture = Fixture::with("other_models: {faults: [{fault: '429:2s', share: 0.2}]}");
    let args = ["minimal", "--stages", "@200:2s", "--abort-on-errors", "50%", "--no-probe"];
    fixture.run(&args).expect(0);
    assert_eq!(fixture.summary().metadata.run.ended, RunEnd::Complete);
}
