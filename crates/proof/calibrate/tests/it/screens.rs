//! The end of a calibration on a terminal of 24 lines.

use plimsoll_calibrate::{Check, ExperimentResult, Finding, Floor, Host, Record, SCHEMA};
use plimsoll_report::Style;

fn finding(number: usize, result: ExperimentResult) -> Finding {
    Finding {
        experiment: format!("T{number}"),
        title: "known stall".to_owned(),
        result,
        checks: vec![
            Check::within("p99", "ms", 899.3, 900.0, 9.0),
            Check::exact("count", 999, 1_000),
        ],
        notes: Vec::new(),
        seconds: 1.0,
    }
}

fn record(result: impl Fn(usize) -> ExperimentResult) -> Record {
    Record {
        schema: SCHEMA.to_owned(),
        tool_version: "0.2.0".to_owned(),
        taken_unix_s: 1_763_688_225,
        host: Host { name: "example".to_owned(), ..Host::default() },
        separate_cores: true,
        debug_build: false,
        costs: None,
        floor: Some(Floor {
            response_time_p50_us: 14.2,
            response_time_p99_us: 31.0,
            highest_rate: 152_000.0,
        }),
        findings: (1..=24).map(|number| finding(number, result(number))).collect(),
    }
}

#[track_caller]
fn check(name: &str, record: &Record) -> String {
    let screen = record.screen();
    let at = |width| Style::plain(width);
    let whole = screen.whole(at(10_000));
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");
    plimsoll_test_support::check_screens(folder, name, &whole, |width| screen.text(at(width)));
    screen.text(at(80))
}

#[test]
fn what_passed_is_counted_and_what_did_not_is_named() {
    let text = check("passed", &record(|_| ExperimentResult::Pass));
    assert!(text.ends_with("PASS: the figures of Plimsoll are right on this host\n"), "{text}");
    let mut part = record(|_| ExperimentResult::Pass);
    part.findings.truncate(1);
    let text = part.screen().text(Style::plain(80));
    assert!(text.ends_with("PASS: 1 of 24 tests ran and passed on this host\n"), "{text}");
    let text = check(
        "failed",
        &record(|number| match number {
            4 | 9 => ExperimentResult::Fail,
            12 => ExperimentResult::NotRun("no second core".to_owned()),
            _ => ExperimentResult::Pass,
        }),
    );
    assert!(text.contains("FAIL     T4 known stall: count 999 (must be 1000)"), "{text}");
    assert!(text.contains("not run  T12 known stall: no second core"), "{text}");
    let verdict = "FAIL: T4 known stall, T9 known stall, T12 known stall\n";
    assert!(text.ends_with(verdict), "{text}");
    let text = check("all-failed", &record(|_| ExperimentResult::Fail));
    assert!(text.contains("more tests with --full"), "{text}");
}
