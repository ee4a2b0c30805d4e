//! The page of a comparison of old and new runs.

use std::path::PathBuf;
use std::sync::OnceLock;

use plimsoll_compare::{Comparison, Options, StoredRun, compare};
use plimsoll_measure::Nanos;
use plimsoll_metrics::{RunEnd, Validity};
use plimsoll_page::comparison_page;
use serde_json::Value;

use crate::pages::{HOSTILE, run_of};
use crate::support::{charts, marks};

/// A run of which each request takes so much longer than in [`crate::pages::run`].
fn stored(number: u64, longer_us: u64, name: &str) -> StoredRun {
    let (mut summary, _) = run_of(1, 2, &["gateway"], 100, |sample| {
        let timeline = &mut sample.timeline;
        for at in [&mut timeline.first_byte, &mut timeline.finished].into_iter().flatten() {
            *at = *at + Nanos::from_micros(longer_us);
        }
    });
    summary.validity = Validity::Valid;
    summary.metadata.run.ended = RunEnd::Complete;
    name.clone_into(&mut summary.metadata.run.name);
    summary.metadata.run.run_id = format!("r{number}");
    summary.metadata.run.started_unix_ns = 1_790_000_000_000_000_000 + number * 60_000_000_000;
    StoredRun::new(PathBuf::from(format!("runs/{number}")), summary, None)
}

/// Three old runs, and three new ones of which each request takes so much longer; runs of one side
/// differ by a tenth of a millisecond.
fn compared(longer_us: u64) -> Comparison {
    let side = |first: u64, longer_us: u64, name: &str| -> Vec<_> {
        (0..3).map(|n| stored(first + 2 * n, longer_us + n * 100, name)).collect()
    };
    let (base, new) = (side(0, 0, "old"), side(1, longer_us, HOSTILE));
    let gates = [("response_time.p50", "3%"), ("success_rate", "1pp")];
    let gates = gates.map(|(figure, margin)| (figure.to_owned(), margin.to_owned()));
    let options = Options { gates: gates.to_vec(), ..Options::default() };
    compare(&base, &new, &options, None).unwrap()
}

/// One of which the new runs are 10 ms slower.
fn slower() -> &'static Comparison {
    static SLOWER: OnceLock<Comparison> = OnceLock::new();
    SLOWER.get_or_init(|| compared(10_000))
}

/// The change as the JSON has it, rounded here as a person would.
fn percent(gate: &Value, key: &str) -> String {
    format!("{:+.1}", gate[key].as_f64().unwrap() * 100.0)
}

#[test]
fn the_verdict_is_first_and_the_numbers_are_those_of_the_file() {
    let comparison = slower();
    let json = serde_json::to_value(comparison).unwrap();
    let html = comparison_page(comparison);
    assert_eq!(json["verdict"], "fail");
    let verdict = html.find("<p class=\"verdict\"><b class=\"bad\">FAIL</b>").unwrap();
    assert!(verdict < html.find("<section").unwrap() && verdict < html.find("<table").unwrap());
    let gate = &json["gates"][0];
    // 10 ms on a median of about 32 ms are about a third.
    assert!((0.25..0.4).contains(&gate["change"].as_f64().unwrap()), "{gate}");
    let change = format!(
        "{}% [{}, {}]",
        percent(gate, "change"),
        percent(gate, "low"),
        percent(gate, "high")
    );
    assert!(html.matches(&change).count() >= 2, "{change}: in the drawing and the table");
    for side in ["base_runs", "new_runs"] {
        for run in gate[side].as_array().unwrap() {
            let shown = format!("<td>{:.1}ms</td>", run.as_f64().unwrap());
            assert!(html.contains(&shown), "{shown}");
        }
    }
    // Both sides stand next to each other, with every run.
    assert_eq!(html.matches("<div class=\"sides\">").count(), 1);
    for number in 0..6 {
        assert!(html.contains(&format!("<td>runs/{number}</td>")), "{number}");
    }
}

#[test]
fn every_chart_has_marks_and_the_margin_is_drawn() {
    let html = comparison_page(slower());
    let drawn = charts(&html);
    let ids: Vec<_> = drawn.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["gates", "runs", "percentiles"]);
    for (id, svg) in &drawn {
        assert!(marks(svg) >= 4, "{id}: {svg}");
    }
    // A gate in percent and one in points have an axis each; both have a margin.
    assert_eq!(drawn[0].1.matches("<rect class=\"ok\" x=").count(), 2);
    // A failed gate is a diamond, one that passed a disc.
    assert!(
        drawn[0].1.contains("class=\"f1\" d=\"M") && drawn[0].1.contains("circle class=\"f2\"")
    );
    // A dot for each run of the gates, and a line for each run.
    assert_eq!(drawn[1].1.matches("<circle class=\"f0\"").count(), 6);
    assert_eq!(drawn[1].1.matches("<path class=\"f1\"").count(), 6);
    assert_eq!(drawn[2].1.matches("<path class=\"l l0 thin\"").count(), 3);
    assert_eq!(drawn[2].1.matches("<path class=\"l l1 thin\"").count(), 3);
    for (id, svg) in &drawn {
        let svg = format!("{}\n", svg.replace("><", ">\n<"));
        let path = format!("{}/tests/golden/compare-{id}.svg.txt", env!("CARGO_MANIFEST_DIR"));
        expect_test::expect_file![path].assert_eq(&svg);
    }
}

/// By hand: old runs have a mean of 1 after division by it, and the axis is linear; so a run that
/// is a quarter of the way from the lowest to the highest stands there.
#[test]
fn dots_stand_where_their_values_are() {
    let comparison = slower();
    let json = serde_json::to_value(comparison).unwrap();
    let html = comparison_page(comparison);
    let svg = &charts(&html)[1].1;
    let first_row: Vec<f64> = svg
        .split("<circle class=\"f0\" cx=\"")
        .skip(1)
        .take(3)
        .map(|rest| rest.split('"').next().unwrap().parse().unwrap())
        .collect();
    let diamonds: Vec<f64> = svg
        .split("<path class=\"f1\" d=\"M")
        .skip(1)
        .take(3)
        .map(|rest| rest.split(' ').next().unwrap().parse().unwrap())
        .collect();
    let values = |side: &str| -> Vec<f64> {
        let runs = json["gates"][0][side].as_array().unwrap();
        runs.iter().map(|value| value.as_f64().unwrap()).collect()
    };
    let (old, new) = (values("base_runs"), values("new_runs"));
    let scale = (diamonds[2] - first_row[0]) / (new[2] - old[0]);
    for (x, value) in first_row.iter().zip(&old).chain(diamonds.iter().zip(&new)) {
        let expected = first_row[0] + (value - old[0]) * scale;
        assert!((x - expected).abs() < 0.2, "{x} and {expected}");
    }
}

#[test]
fn hostile_names_stay_text_and_nothing_is_loaded() {
    let html = comparison_page(slower());
    assert!(!html.contains("<img") && !html.contains("<script"));
    assert!(html.contains("&lt;img src=x onerror=alert(1)&gt;"));
    assert!(html.contains("default-src 'none'"));
    for loads in ["<link", "@import", "url(", "<iframe", " src=\"", " href="] {
        assert!(!html.contains(loads), "{loads}");
    }
}

#[test]
fn runs_that_must_not_be_compared_have_reasons_and_no_chart() {
    let (base, mut other) = (stored(0, 0, "old"), stored(1, 0, "new"));
    other.summary.metadata.environment.cpu_model = Some("another".to_owned());
    let comparison = compare(&[base], &[other], &Options::default(), None).unwrap();
    let html = comparison_page(&comparison);
    assert!(html.contains("INCONCLUSIVE") && html.contains("different cpu"));
    assert_eq!(charts(&html).len(), 0);
    let json = serde_json::to_value(&comparison).unwrap();
    assert!(json.get("times").is_none(), "no times of them are kept");
}

/// A stored comparison draws the same page without the folders of its runs.
#[test]
fn the_page_is_drawn_again_from_the_file() {
    let comparison = slower();
    let json = serde_json::to_string(comparison).unwrap();
    let read = Comparison::read_json(json.as_bytes()).unwrap();
    assert_eq!(comparison_page(&read), comparison_page(comparison));
    let other = json.replace("plimsoll.comparison/1", "plimsoll.comparison/9");
    let error = Comparison::read_json(other.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("plimsoll.comparison/9"), "{error}");
}
