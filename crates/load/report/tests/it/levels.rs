//! The small document of the levels of a run.

use plimsoll_report::levels::Levels;
use serde_json::Value;

use crate::support::{health, metadata, path, summary};

#[test]
fn the_schema_of_levels_json_equals_its_type() {
    let schema = serde_json::to_string_pretty(&schemars::schema_for!(Levels)).unwrap();
    let file = path("../../../docs/reference/levels.schema.json");
    expect_test::expect_file![file].assert_eq(&(schema + "\n"));
}

/// By hand, from the rows of the example run: eight users for 10 s, then 100/s for 10 s.
#[test]
fn each_stage_has_its_figures_in_less_than_three_kilobytes() {
    let summary = summary(metadata(), health());
    let levels = Levels::new(&summary);
    let text = serde_json::to_string(&levels).unwrap();
    assert!(text.len() < 3_000 * levels.levels.len(), "{}", text.len());
    let json: Value = serde_json::from_str(&text).unwrap();
    assert!(json["verdict"].as_str().unwrap().starts_with("FAIL: 1 of 4 thresholds broken"));
    let loads: Vec<_> = levels.levels.iter().map(|level| (level.users, level.rate)).collect();
    assert_eq!(loads, [(Some(8.0), None), (None, Some(103.0))]);
    let ttft = &levels.levels[1].times["ttft_ms"];
    assert!(ttft.p50_low <= ttft.p50 && ttft.p50 <= ttft.p50_high && ttft.p95.is_some());
    assert!(!text.contains("histogram"), "{text}");
}
