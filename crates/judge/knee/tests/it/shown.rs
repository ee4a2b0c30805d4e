//! The screen, the text and `knee.json` of searches.

use plimsoll_knee::{
    AtLeast, FORMAT, Found, Goodput, Kind, KneeReport, Load, ProbeFigures, Search, Settings, State,
    TargetKnee, Verdict,
};
use plimsoll_report::Style;
use plimsoll_report::screen::Rest;
use serde_json::Value;

use crate::target::{Simulation, TARGET, Target, users};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");

fn rest() -> Rest {
    Rest::Folder("runs/20261122T120000Z-knee-chat".to_owned())
}

/// Probes of a stream with invented figures.
fn figured(search: &Search, name: &str, at_least: Option<f64>) -> TargetKnee {
    let (url, hash) = ("http://127.0.0.1:8080".to_owned(), "0123456789abcdef".to_owned());
    let mut knee = TargetKnee::new(search, at_least, name, url, hash);
    for (probe, index) in knee.probes.iter_mut().zip(0_u32..) {
        let p99_ms = Some(17.0 + f64::from(index));
        probe.figures = ProbeFigures {
            p50_ms: Some(2.0 + f64::from(index) / 8.0),
            p99_ms,
            goodput_per_s: Some(probe.load * 0.99),
            in_flight: Some(probe.load / 400.0),
            response_time_p99_ms: p99_ms,
            ..ProbeFigures::default()
        };
    }
    knee.goodput = knee.knee.kept.map(|load| Goodput { load, per_s: load * 0.99 });
    knee
}

fn whole(knees: Vec<TargetKnee>) -> KneeReport {
    KneeReport {
        format: FORMAT.to_owned(),
        tool_version: "0.2.0".to_owned(),
        started: "20261122T120000Z".to_owned(),
        profile: "chat".to_owned(),
        objective: "response_time<200ms : 99%".to_owned(),
        load: Load::RequestsPerSecond,
        interrupted: false,
        budget_s: Some(300.0),
        knees,
    }
}

fn report(search: &Search, at_least: Option<f64>) -> KneeReport {
    whole(vec![figured(search, "", at_least)])
}

fn search(target: &Target, settings: Settings) -> Search {
    Simulation::new(target, 7_003).search(settings)
}

fn usual() -> Settings {
    Settings::new(0.99, 10.0)
}

/// A search that misses from the lowest load on.
fn failing() -> Search {
    search(&Target { errors: 0.05, ..TARGET }, usual())
}

#[test]
fn screens_are_as_stored_and_fit_every_width() {
    let found = search(&TARGET, usual());
    let to = Settings { to: 50.0, ..usual() };
    let down = Target { down_s: (150.0, f64::INFINITY), ..TARGET };
    let closed = Target { has_users: true, bound_s: 0.12, ..TARGET };
    let upstream = |target: &Target| {
        let mut report = report(&found, None);
        let knee = &mut report.knees[0];
        let planned = knee.upstream_probe(&found).unwrap();
        let measured = Simulation::new(target, 1).measure(planned);
        knee.add_upstream("http://127.0.0.1:9000", "74.0/s", &measured, 0.99);
        report
    };
    let both = |at_least| {
        let slow = figured(&failing(), "slow", at_least);
        whole(vec![figured(&found, "fast", at_least), slow])
    };
    let of_users = KneeReport {
        load: Load::VirtualUsers,
        ..report(&search(&closed, users(Settings::new(0.99, 1.0))), None)
    };
    let tight = Settings { budget_s: Some(60.0), ..Settings::new(0.999, 10.0) };
    for (name, report) in [
        ("two", both(None)),
        ("two-required", both(Some(40.0))),
        ("found", report(&found, None)),
        ("passes", report(&found, Some(50.0))),
        ("fails", report(&found, Some(100.0))),
        ("upstream-misses", upstream(&TARGET)),
        ("upstream-keeps", upstream(&Target { slots: 8, ..TARGET })),
        ("at-least", report(&search(&TARGET, to), None)),
        ("below", report(&failing(), None)),
        ("down", report(&search(&down, usual()), None)),
        ("users", of_users),
        ("no-time", report(&search(&TARGET, tight), None)),
    ] {
        let whole = report.text(1_000, rest());
        plimsoll_test_support::check_screens(FOLDER, name, &whole, |width| {
            report.screen(rest()).text(Style::plain(width))
        });
        let loads: std::collections::BTreeSet<_> = report
            .knees
            .iter()
            .flat_map(|knee| &knee.probes)
            .map(|probe| probe.load.to_bits())
            .collect();
        assert!(whole.lines().count() > loads.len(), "every load is in the file");
    }
}

#[test]
fn a_required_load_is_judged_by_the_ends() {
    let found = |low, high| Found {
        kind: Kind::Between,
        low,
        high,
        kept: None,
        missed: None,
        kept_only_s: None,
    };
    for (low, high, state) in [
        (Some(50.0), Some(60.0), State::Kept),
        (Some(49.9), Some(60.0), State::Unclear),
        (Some(30.0), Some(49.9), State::Missed),
        (Some(30.0), Some(50.0), State::Unclear),
        (Some(30.0), None, State::Unclear),
        (None, Some(40.0), State::Missed),
        (None, None, State::Unclear),
    ] {
        assert_eq!(AtLeast::judge(50.0, &found(low, high)).state, state, "{low:?} {high:?}");
        let short = Found { kept_only_s: Some(10.0), ..found(low, high) };
        let of_short = if state == State::Kept { State::Unclear } else { state };
        assert_eq!(AtLeast::judge(50.0, &short).state, of_short, "{low:?} {high:?}");
    }
}

/// Verdict and first word of the last line.
#[test]
fn only_two_proven_ends_are_called_found() {
    let down = Target { down_s: (150.0, f64::INFINITY), ..TARGET };
    let to = Settings { to: 50.0, ..usual() };
    let tight = Settings { budget_s: Some(60.0), ..Settings::new(0.999, 10.0) };
    for (search, required, verdict, word) in [
        (search(&TARGET, usual()), None, Verdict::Pass, "FOUND: capacity between"),
        (search(&TARGET, to), None, Verdict::Pass, "LOWER BOUND: capacity at least"),
        (search(&TARGET, tight), None, Verdict::Inconclusive, "INCONCLUSIVE: capacity unknown"),
        (failing(), None, Verdict::Fail, "FAIL: capacity below"),
        (search(&down, usual()), None, Verdict::Fail, "FAIL: "),
        (search(&TARGET, to), Some(40.0), Verdict::Pass, "PASS: 40.0/s required; capacity at"),
        (search(&TARGET, to), Some(60.0), Verdict::Inconclusive, "INCONCLUSIVE: 60.0/s required"),
        (failing(), Some(40.0), Verdict::Fail, "FAIL: 40.0/s required; capacity below"),
    ] {
        let mut report = report(&search, required);
        let line = report.verdict_line().1;
        assert!(report.verdict() == verdict && line.starts_with(word), "{line}");
        report.interrupted = true;
        assert!(report.verdict_line().1.starts_with("INTERRUPTED: "));
    }
}

/// Short probes begin with an empty queue: a load that they keep may miss in the steady state.
#[test]
fn short_probes_prove_no_lower_end() {
    let short = Settings { prove_s: 5.0, ..usual() };
    for (settings, required, word) in [
        (short, None, "INCONCLUSIVE: capacity between "),
        (Settings { to: 50.0, ..short }, None, "INCONCLUSIVE: capacity at least "),
        (Settings { to: 50.0, ..short }, Some(20.0), "INCONCLUSIVE: 20.0/s required; capacity at"),
    ] {
        let search = search(&Target { is_poisson: false, ..TARGET }, settings);
        let report = report(&search, required);
        let (line, [finding, ..]) = (report.verdict_line().1, &report.knees[0].findings[..]) else {
            panic!("{:?}", report.knees[0].findings)
        };
        assert!(line.starts_with(word) && line.contains("/s (for "), "{line}");
        assert!(finding.text().ends_with("in probes too short to show a steady state."));
        assert_eq!(finding.fix(), "probe for 30s or more (--confirm)");
    }
}

/// The upstream is not probed at a load that the target met.
#[test]
fn an_upstream_is_tried_only_where_the_target_missed() {
    let search = search(&TARGET, Settings { to: 50.0, ..usual() });
    assert_eq!(report(&search, None).knees[0].upstream_probe(&search), None);
}

#[test]
fn the_schema_of_knee_json_equals_its_type_and_reports_keep_it() {
    let schema: Value = serde_json::to_value(schemars::schema_for!(KneeReport)).unwrap();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/knee.schema.json");
    expect_test::expect_file![path]
        .assert_eq(&(serde_json::to_string_pretty(&schema).unwrap() + "\n"));
    let validator = jsonschema::validator_for(&schema).unwrap();
    for search in [search(&TARGET, usual()), failing()] {
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
