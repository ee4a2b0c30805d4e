//! The screen, the text and `knee.json` of searches.

use plimsoll_knee::{
    AtLeast, Counts, FORMAT, Goodput, KeptShare, KneeReport, Load, Measured, ProbeFigures,
    ProviderProbe, Search, Settings, State, TargetKnee,
};
use plimsoll_report::Style;
use plimsoll_report::screen::Rest;
use serde_json::Value;

use crate::queue::{Queue, Service};
use crate::search::search;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");

fn rest() -> Rest {
    Rest::Folder("runs/20261122T120000Z-knee-chat".to_owned())
}

/// Probes of a stream whose figures are made up.
fn figured(search: &Search, name: &str, at_least: Option<f64>) -> TargetKnee {
    let (url, hash) = ("http://127.0.0.1:8080".to_owned(), "0123456789abcdef".to_owned());
    let mut knee = TargetKnee::new(search, at_least, name, url, hash);
    for (probe, index) in knee.probes.iter_mut().zip(0_u32..) {
        let p99_ms = Some(17.0 + f64::from(index));
        probe.figures = ProbeFigures {
            p50_ms: Some(2.0 + f64::from(index) / 8.0),
            p99_ms,
            offered_per_s: Some(probe.load),
            goodput_per_s: Some(probe.load * 0.99),
            in_flight: Some(probe.load / 400.0),
            response_time_p99_ms: p99_ms,
            ..ProbeFigures::default()
        };
    }
    for point in &mut knee.curve {
        point.figures = knee.probes[point.probe].figures;
    }
    let at = knee.knee.confirmed.map(|confirmed| confirmed.load);
    knee.goodput = at.map(|load| Goodput { load, per_s: load * 0.99 });
    knee
}

fn whole(knees: Vec<TargetKnee>) -> KneeReport {
    KneeReport {
        format: FORMAT.to_owned(),
        tool_version: "0.2.0".to_owned(),
        started: "20261122T120000Z".to_owned(),
        profile: "chat".to_owned(),
        objective: "response_time<20ms : 99%".to_owned(),
        load: Load::RequestsPerSecond,
        interrupted: false,
        budget_s: Some(300.0),
        knees,
    }
}

fn report(search: &Search, at_least: Option<f64>) -> KneeReport {
    whole(vec![figured(search, "", at_least)])
}

fn of_queue() -> Search {
    let mut queue = Queue::new(Service::Exponential, 0.0, 3);
    search(&mut queue, Settings { seed: 3, ..Settings::new(0.99, 100.0) })
}

fn constant(missed: u64, to: f64) -> Search {
    let mut search = Search::new(Settings { to, ..Settings::new(0.99, 100.0) });
    while let Some(planned) = search.next() {
        let batches = vec![Counts { missed, doubtful: 0, all: 200 }; 16];
        let seconds = planned.seconds;
        search.record(Measured { batches, seconds, took_s: 5.0, ..Measured::default() });
    }
    search
}

#[test]
fn screens_are_as_stored_and_fit_every_width() {
    let mut provider = report(&of_queue(), None);
    let kept = KeptShare { value: 0.912, low: 0.9, high: 0.92 };
    provider.knees[0].provider = Some(ProviderProbe {
        url: "http://127.0.0.1:9000".to_owned(),
        load: 2_130.0,
        kept: Some(kept),
        state: State::Missed,
    });
    let both = |at_least| {
        let slow = figured(&constant(50, 1e5), "slow", at_least);
        whole(vec![figured(&of_queue(), "fast", at_least), slow])
    };
    for (name, report) in [
        ("two", both(None)),
        ("two-carry-not", both(Some(150.0))),
        ("found", report(&of_queue(), None)),
        ("carries", report(&of_queue(), Some(1_500.0))),
        ("carries-not", report(&of_queue(), Some(2_500.0))),
        ("provider", provider),
        ("at-least", report(&constant(0, 500.0), None)),
        ("not-even", report(&constant(50, 1e5), None)),
    ] {
        let whole = report.text(1_000, rest());
        plimsoll_test_support::check_screens(FOLDER, name, &whole, |width| {
            report.screen(rest()).text(Style::plain(width))
        });
        let probes: usize = report.knees.iter().map(|knee| knee.probes.len()).sum();
        assert!(whole.lines().count() > probes, "every probe is in the file");
    }
}

#[test]
fn what_is_asked_for_is_judged_by_the_interval() {
    let found = of_queue().found().unwrap().clone();
    let (low, high) = (found.low.unwrap(), found.high.unwrap());
    let state = |load| AtLeast::judge(load, &found).state;
    assert_eq!(state(low - 1.0), State::Kept);
    assert_eq!(state(high + 1.0), State::Missed);
    assert_eq!(state(f64::midpoint(low, high)), State::Unclear);
}

#[test]
fn the_schema_of_knee_json_equals_its_type_and_reports_keep_it() {
    let schema: Value = serde_json::to_value(schemars::schema_for!(KneeReport)).unwrap();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/knee.schema.json");
    expect_test::expect_file![path]
        .assert_eq(&(serde_json::to_string_pretty(&schema).unwrap() + "\n"));
    let validator = jsonschema::validator_for(&schema).unwrap();
    for search in [of_queue(), constant(50, 1e5)] {
        let report = report(&search, Some(10.0));
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(KneeReport::read_json(json.to_string().as_bytes()).unwrap(), report);
        let errors: Vec<_> = validator.iter_errors(&json).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
    }
}

#[test]
fn another_format_is_named() {
    let error = KneeReport::read_json(br#"{"format": "plimsoll.knee/9"}"#).unwrap_err();
    assert!(error.to_string().contains("`plimsoll.knee/9`"), "{error}");
}
