//! Shards side by side.

use plimsoll_metrics::{RunSummary, ShardPart, ShardState};
use plimsoll_report::{Style, odd_shards, text};

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
    RunSummary { shards, ..summary(metadata(), health()) }
}

#[test]
fn the_odd_shard_is_named_and_equal_ones_are_not() {
    assert!(odd_shards(&merged(&[(5.0, 0), (5.2, 1), (4.9, 0), (5.1, 2)])).is_empty());
    let slow = odd_shards(&merged(&[(5.0, 0), (5.2, 1), (12.1, 0), (5.1, 2)]));
    let [slow] = slow.as_slice() else { panic!("{slow:?}") };
    assert!(
        slow.contains("shard 2/4 is unlike the others: p50 12.1ms, theirs 5.00ms to"),
        "{slow}"
    );
    let failing = odd_shards(&merged(&[(5.0, 100), (5.2, 1), (5.0, 0)]));
    let [failing] = failing.as_slice() else { panic!("{failing:?}") };
    assert!(failing.contains("shard 0/3") && failing.contains("10.0% failed"), "{failing}");
    // Of two nobody knows which one is odd.
    assert!(odd_shards(&merged(&[(5.0, 0), (50.0, 0)])).is_empty());
}

#[test]
fn the_report_of_a_merged_run_has_its_shards_side_by_side() {
    let report = text(&merged(&[(5.0, 0), (5.2, 1), (12.1, 0)]), Style::default());
    let (_, shards) = report.split_once("\nShards\n").unwrap();
    for part in ["0/3", "1/3", "2/3", "+1.00ms", "12.1ms"] {
        assert!(shards.contains(part), "{part}: {shards}");
    }
    assert!(report.contains("\n! shard 2/3 is unlike the others"), "{report}");
    assert!(!text(&merged(&[]), Style::default()).contains("\nShards\n"));
}
