//! Shards side by side.

use plimsoll_metrics::{RunSummary, ShardPart, ShardState};
use plimsoll_report::{Style, text};

use crate::support::{health, metadata, summary};

/// Shards with these medians and failures, of 1,000 requests each.
fn merged(shards: &[(f64, u64)]) -> RunSummary {
    let count = shards.len();
    let part = |(index, (p50_ms, unexpected)): (usize, &(f64, u64))| ShardPart {
        shard: format!("{index}/{count}"),
        state: ShardState::Done,
        start_s: Some(0.001),
        counted_s: Some(20.0),
        scheduled: 1_000,
        completed: 1_000 - unexpected,
        unexpected: *unexpected,
        p50_ms: Some(*p50_ms),
        p99_ms: Some(9.0),
        valid: Some(true),
        ..ShardPart::default()
    };
    let shards = shards.iter().enumerate().map(part).collect();
    let mut merged = RunSummary { shards, ..summary(metadata(), health()) };
    merged.find();
    merged
}

#[test]
fn the_report_of_a_merged_run_has_its_shards_side_by_side() {
    let report = text(&merged(&[(5.0, 0), (5.2, 1), (12.1, 0)]), Style::default());
    let (_, shards) = report.split_once("\nShards\n").unwrap();
    for part in ["0/3", "1/3", "2/3", "+1.00ms", "12.1ms"] {
        assert!(shards.contains(part), "{part}: {shards}");
    }
    assert!(report.contains("PL111  Shard 2/3 differs: p50 12.1ms"), "{report}");
    assert!(!text(&merged(&[]), Style::default()).contains("\nShards\n"));
}
