//! The page of a comparison of old and new runs.

use std::path::PathBuf;
use std::sync::OnceLock;

use plimsoll_compare::{Comparison, Options, StoredRun, compare};
use plimsoll_measure::Nanos;
use plimsoll_metrics::RunEnd;
use plimsoll_page::comparison_page;
use serde_json::Value;

use crate::pages::{HOSTILE, run_of};
use crate::support::{charts, data, numbers, texts, without_scripts};

/// A run in which each request takes `longer_us` longer than in [`crate::pages::run`].
fn stored(number: u64, longer_us: u64, name: &str) -> StoredRun {
    let (mut summary, _) = run_of(1, 2, &["gateway"], 100, |sample| {
        let timeline = &mut sample.timeline;
        for at in [&mut timeline.first_byte, &mut timeline.finished].into_iter().flatten() {
            *at = *at + Nanos::from_micros(longer_us);
        }
    });
    summary.findings.clear();
    summary.metadata.run.ended = RunEnd::Complete;
    name.clone_into(&mut summary.metadata.run.name);
    summary.metadata.run.run_id = format!("r{number}");
    summary.metadata.run.started_unix_ns = 1_790_000_000_000_000_000 + number * 60_000_000_000;
    StoredRun::new(PathBuf::from(format!("runs/{number}")), summary, None)
}

/// Three old runs, and three new ones in which each request takes `longer_us` longer; runs of one
/// side differ by a tenth of a millisecond.
fn compared(longer_us: u64) -> Comparison {
    let side = |first: u64, longer_us: u64, name: &str| -> Vec<_> {
        (0..3).map(|n| stored(first + 2 * n, longer_us + n * 100, name)).collect()
    };
    let (base, new) = (side(0, 0, "old"), side(1, longer_us, HOSTILE));
    let gates = [("response_time.p50", "3%"), ("success_rate", "1pp")];
    let gates = gates.map(|(figure, margin)| (figure.to_owned(), margin.to_owned()));
    let options = Options { gates: gates.to_vec(), ..Options::default() };
    compare(&base, &new, &options).unwrap()
}

/// A comparison whose new runs are 10 ms slower.
fn slower() -> &'static Comparison {
    static SLOWER: OnceLock<Comparison> = OnceLock::new();
    SLOWER.get_or_init(|| compared(10_000))
}

/// The change from the JSON, rounded independently.
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
    assert!(html.contains(&change), "{change}");
    // Both sides are next to each other, with every run.
    assert_eq!(html.matches("<div class=\"sides\">").count(), 1);
    for number in 0..6 {
        assert!(html.contains(&format!("<td>runs/{number}</td>")), "{number}");
    }
}

#[test]
fn gates_have_their_change_and_margin_and_every_run_a_line() {
    let comparison = slower();
    let json = serde_json::to_value(comparison).unwrap();
    let html = comparison_page(comparison);
    let drawn = charts(&html);
    let ids: Vec<_> = drawn.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["gates", "percentiles"]);
    let gates = &drawn[0].1["rows"];
    assert_eq!(texts(gates, "judgement"), ["fail", "pass"]);
    // In percent; a lower success rate is worse.
    assert_eq!(numbers(gates, "margin"), [3.0, -1.0]);
    let change = json["gates"][0]["change"].as_f64().unwrap();
    assert!((numbers(gates, "change")[0] - change * 100.0).abs() < 1e-9);
    let lines = &data(&html, "percentiles")["rows"];
    let medians = lines.as_array().unwrap().iter().filter(|row| row["percentile"] == "p50");
    let runs: Vec<_> = medians.map(|row| (row["of"].as_str().unwrap(), &row["run"])).collect();
    let sides = ["old", "new"].into_iter().flat_map(|side| (1..=3).map(move |run| (side, run)));
    assert!(runs.into_iter().zip(sides).all(|(row, run)| row.0 == run.0 && *row.1 == run.1));
}

#[test]
fn hostile_names_stay_text_and_nothing_is_loaded() {
    let page = comparison_page(slower());
    let html = without_scripts(&page);
    assert!(!html.contains("<img") && !html.contains("<script>"));
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
    let comparison = compare(&[base], &[other], &Options::default()).unwrap();
    let html = comparison_page(&comparison);
    assert!(html.contains("INVALID") && html.contains("different cpu"));
    assert_eq!(charts(&html).len(), 0);
    let json = serde_json::to_value(&comparison).unwrap();
    assert!(json.get("times").is_none(), "no times of them are kept");
}

/// A stored comparison produces the same page without the folders of its runs.
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
