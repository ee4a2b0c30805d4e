//! The page of capacity searches.

use plimsoll_knee::{
    AtLeast, FORMAT, Finding, Found, KeptShare, Kind, KneeReport, Load, Phase, Probe, ProbeFigures,
    State, TargetKnee, Verdict,
};
use plimsoll_page::knee_page;

use crate::pages::HOSTILE;
use crate::support::{charts, data, numbers, rows, texts, without_scripts};

const fn kept(value: f64, low: f64, high: f64) -> KeptShare {
    KeptShare { value, low, high }
}

fn probe(load: f64, phase: Phase, share: KeptShare, state: State) -> Probe {
    let late = 1.0 - share.value;
    Probe {
        load,
        seconds: 15.0,
        phase,
        missed: 10,
        doubtful: 0,
        requests: 1_000,
        kept: Some(share),
        pooled: None,
        state,
        has_ended_early: late > 0.5,
        took_s: 17.0,
        figures: ProbeFigures {
            p50_ms: Some(2.0 + load / 1e3),
            p99_ms: (late < 0.15).then_some(5.0 + late * 500.0),
            throughput_per_s: Some(load * 0.999),
            goodput_per_s: Some(load * share.value),
            response_time_p50_ms: Some(2.0 + load / 1e3),
            response_time_p99_ms: Some(6.0 + late * 500.0),
            tokens_per_s: Some(load * 20.0),
            tokens_per_s_per_user: Some(120.0 - load / 50.0),
            ..ProbeFigures::default()
        },
    }
}

/// A typical search: up, bisected, both ends proven, and then the target stops.
fn probes() -> Vec<Probe> {
    use Phase::{Check, Place, Prove};
    vec![
        probe(100.0, Place, kept(1.0, 0.991, 1.0), State::Unclear),
        probe(1_600.0, Place, kept(0.998, 0.994, 0.999_5), State::Unclear),
        probe(2_560.0, Place, kept(0.12, 0.1, 0.15), State::Unclear),
        probe(2_023.0, Place, kept(0.8, 0.75, 0.84), State::Unclear),
        probe(1_799.0, Prove, kept(0.985, 0.97, 0.995), State::Unclear),
        probe(1_725.0, Prove, kept(0.993, 0.991, 0.995), State::Kept),
        probe(1_790.0, Prove, kept(0.984, 0.98, 0.988), State::Missed),
        probe(1_725.0, Prove, kept(0.5, 0.4, 0.6), State::Down),
        probe(100.0, Check, kept(0.01, 0.0, 0.2), State::Down),
    ]
}

fn target(name: &str, knee: Found, probes: Vec<Probe>) -> TargetKnee {
    TargetKnee {
        name: name.to_owned(),
        target: format!("http://127.0.0.1/{HOSTILE}"),
        plan_hash: "01ab".to_owned(),
        knee,
        verdict: if knee.low.is_some() { Verdict::Pass } else { Verdict::Inconclusive },
        findings: vec![Finding::new(604).with("capacity", format!("of {HOSTILE}"))],
        goodput: None,
        at_least: None,
        took_s: 240.0,
        probes,
    }
}

fn found() -> Found {
    found_of(Kind::Between, Some(1_710.0), Some(1_790.0))
}

const fn found_of(kind: Kind, low: Option<f64>, high: Option<f64>) -> Found {
    Found { kind, low, high, kept: low, missed: high, kept_only_s: None }
}

fn report(knees: Vec<TargetKnee>) -> KneeReport {
    KneeReport {
        format: FORMAT.to_owned(),
        tool_version: "0".to_owned(),
        started: "20261122T120000Z".to_owned(),
        profile: HOSTILE.to_owned(),
        objective: "response_time<20ms : 99%".to_owned(),
        load: Load::RequestsPerSecond,
        interrupted: false,
        budget_s: Some(300.0),
        knees,
    }
}

fn one(knee: Found) -> String {
    knee_page(&report(vec![target("gateway", knee, probes())]))
}

#[test]
fn the_verdict_comes_first_and_every_probe_is_in_the_table() {
    let html = one(found());
    let verdict = html.find("<b class=\"good\">FOUND</b>: capacity between 1,710/s and 1,790/s");
    assert!(verdict.unwrap() < html.find("<table").unwrap());
    let table = rows(&html, "kept");
    assert_eq!(table.len(), probes().len());
    assert_eq!(&table[5][..3], ["6", "gateway", "1,725/s"]);
    assert_eq!(table[5][5], "99.30 % [99.10, 99.50]");
    // A probe has no figures while the target is down.
    assert_eq!(&table[7][5..7], ["-", "failed"]);
    assert!(table[2][12].contains("ended early"));
    assert!(!without_scripts(&html).contains("<img"), "a text became markup");
    let drawn = charts(&html);
    let ids: Vec<_> = drawn.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["kept", "times", "throughput-latency", "interactivity"]);
}

fn near(found: &[f64], expected: &[f64]) -> bool {
    found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9)
}

/// The missed share is the complement of the kept share: 12 % [10, 15] kept are 88 % [85, 90]
/// missed.
#[test]
fn the_share_that_missed_has_its_interval_and_a_probe_of_a_stopped_target_has_none() {
    let kept = data(&one(found()), "kept");
    let missed = &kept["rows"][2];
    let ends = ["low", "missed", "high"].map(|key| missed[key].as_f64().unwrap());
    assert!(near(&ends, &[85.0, 88.0, 90.0]), "{missed}");
    assert_eq!(numbers(&kept["rows"], "missed").len(), probes().len() - 2);
    assert_eq!(texts(&kept["rows"], "shows")[7], "failed");
    assert!(near(&numbers(&kept["objective"], "missed"), &[1.0]));
    // The band of the capacity.
    assert_eq!(
        (numbers(&kept["knees"], "low"), numbers(&kept["knees"], "high")),
        (vec![1_710.0], vec![1_790.0])
    );
    let times = data(&one(found()), "times");
    assert_eq!(numbers(&times["objective"], "bound"), [20.0]);
    // The probe with the most misses has no known p99.
    assert_eq!(
        (numbers(&times["rows"], "p50").len(), numbers(&times["rows"], "p99").len()),
        (6, 5)
    );
}

#[test]
fn an_open_end_of_the_capacity_goes_to_the_outermost_probe() {
    let band = |knee: Found| {
        let bands = data(&one(knee), "kept")["knees"].clone();
        (numbers(&bands, "low"), numbers(&bands, "high"))
    };
    let at_least = found_of(Kind::AtLeast, Some(1_600.0), None);
    assert_eq!(band(at_least), (vec![1_600.0], vec![2_560.0]));
    assert_eq!(band(found_of(Kind::Below, None, Some(150.0))), (vec![100.0], vec![150.0]));
    let bracket = found_of(Kind::Between, Some(1_600.0), Some(2_560.0));
    assert_eq!(band(bracket), (vec![1_600.0], vec![2_560.0]));
    assert_eq!(band(found_of(Kind::Unknown, None, None)), (Vec::new(), Vec::new()));
}

#[test]
fn several_targets_have_colours_and_a_line_of_the_table_each() {
    let mut wanted = target("a", found(), probes());
    wanted.at_least = Some(AtLeast { load: 1_500.0, state: State::Kept });
    let other = target(HOSTILE, found_of(Kind::AtLeast, Some(2_560.0), None), probes());
    let html = knee_page(&report(vec![wanted, other]));
    let kept = data(&html, "kept");
    assert_eq!(texts(&kept["knees"], "of"), ["a", HOSTILE]);
    assert_eq!(texts(&kept["marks"], "meaning"), ["required"]);
    assert_eq!(rows(&html, "kept").len(), 2 * probes().len());
    assert!(html.contains("Capacity of 2 targets"));
    assert!(!without_scripts(&html).contains("<img"));
}

#[test]
fn a_search_without_a_probe_has_a_page_and_no_chart() {
    let html =
        knee_page(&report(vec![target("a", found_of(Kind::Unknown, None, None), Vec::new())]));
    assert!(charts(&html).is_empty() && html.contains("capacity unknown"));
}
