//! The page of a suite.

use plimsoll_page::{Section, Suite, Tone, suite_page};
use plimsoll_report::table::Table;
use plimsoll_versus::Versus;

use crate::pages::{HOSTILE, versus};
use crate::support::{charts, marks};

fn table() -> Table {
    let mut table = Table::new(["endpoint", "rate"]);
    table.row([HOSTILE, "21,989"]);
    table
}

fn page_of(comparisons: Vec<(&str, &Versus)>) -> String {
    let (table, notes) = (table(), vec![format!("note of {HOSTILE}")]);
    let doubts = (0..7).map(|n| format!("doubt {n}")).collect();
    suite_page(&Suite {
        name: "tiers",
        title: "three sizes of chat",
        verdict: (Tone::Warning, "INCONCLUSIVE: 1 of 2 measurements".to_owned()),
        doubts,
        findings: vec![(Tone::Note, "a is fine"), (Tone::Warning, "the host was busy")],
        bounds: Some(("Bounds".to_owned(), table.clone(), vec!["p99: too few".to_owned()])),
        comparisons,
        sections: vec![Section { title: "Raw path", table: &table, notes: &notes }],
        command: "plimsoll suite tiers --short",
        ..Suite::default()
    })
}

#[test]
fn the_verdict_is_first_and_texts_stay_texts() {
    let html = page_of(Vec::new());
    let verdict = html.find("<span class=\"open\">INCONCLUSIVE</span>: 1 of 2").unwrap();
    assert!(verdict < html.find("<table").unwrap() && verdict < html.find("doubt 0").unwrap());
    // Five reasons are shown, the others are folded; so is what limits the figures.
    let folded = html.split("<details>").nth(1).unwrap().split("</details>").next().unwrap();
    assert!(
        folded.contains("doubt 5") && folded.contains("doubt 6") && !folded.contains("doubt 4")
    );
    for part in ["21,989", "p99: too few", "a is fine", "the host was busy", "plimsoll suite tiers"]
    {
        assert!(html.contains(part), "{part}");
    }
    assert!(!html.contains("<img") && !html.contains("<script"));
    assert!(html.matches("&lt;img src=x onerror=alert(1)&gt;").count() >= 3);
}

#[test]
fn what_is_added_has_a_chart_in_each_valid_comparison() {
    let (valid, mut invalid) = (versus(&["bare", "gateway"]), versus(&["bare", "gateway"]));
    invalid.invalid.push("the control differs".to_owned());
    let html = page_of(vec![("each layer", &invalid), ("full stack", &valid)]);
    let drawn = charts(&html);
    assert_eq!(drawn.len(), 1, "nothing is drawn of an invalid comparison");
    assert_eq!(drawn[0].0, "added-1");
    assert!(marks(&drawn[0].1) >= 2 && drawn[0].1.contains("gateway: +120us [80, 180]"));
}
