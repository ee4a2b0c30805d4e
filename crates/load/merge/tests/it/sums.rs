//! Merging does not lose, average or round any value.

use std::fs;

use plimsoll_measure::Stripe;
use plimsoll_merge::{Judges, Merged, Shard, ShardSet, merge_rows};
use plimsoll_metrics::{Metric, Results, TimeRecord};
use serde_json::Value;

use crate::support::{REQUESTS, count, metadata, service_us, shards, summary};

fn merge(count: u64) -> Merged {
    let parent = tempfile::tempdir().unwrap();
    let folders = shards(parent.path(), count);
    let read = folders.iter().map(|folder| Shard::read(folder).unwrap()).collect();
    ShardSet::new(read, Some(count), None).unwrap().merge(Judges::default()).unwrap()
}

/// Results as JSON, without confidence intervals.
fn without_intervals(results: &Results) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(members) => {
                members.retain(|key, _| !matches!(key.as_str(), "ci" | "ci_note"));
                members.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let mut value = serde_json::to_value(results).unwrap();
    strip(&mut value);
    value
}

/// Groups hold the counters, and the histograms bucket by bucket.
#[test]
fn the_results_of_n_shards_equal_those_of_one_process_that_counted_everything() {
    let whole = summary(Stripe::WHOLE);
    for n in [2, 3, 7, 64] {
        let merged = merge(n).summary;
        let same = without_intervals(&merged.results) == without_intervals(&whole.results);
        assert!(same, "{n} shards");
        // A shard without a request in a second is a batch behind; so of 64 shards the confidence
        // intervals may be others.
        assert!(merged.results == whole.results || n == 64, "intervals of {n} shards");
        // Rules about single shards have none here.
        let of_whole =
            merged.findings.iter().filter(|finding| !(109..=111).contains(&finding.code));
        assert!(of_whole.eq(&whole.findings), "{n} shards");
        assert_eq!(merged.metadata.run.shard, "0/1");
        assert_eq!(merged.shards.len() as u64, n);
        let scheduled: u64 = merged.shards.iter().map(|shard| shard.scheduled).sum();
        assert_eq!(scheduled, REQUESTS);
    }
}

#[test]
fn what_happened_when_equals_that_of_one_process() {
    let whole = summary(Stripe::WHOLE);
    let (_, series) = count(Stripe::WHOLE);
    let record = TimeRecord::build(&series, &metadata(Stripe::WHOLE), &whole.health, &[]).unwrap();
    let merged = merge(3).record;
    assert_eq!(merged.histograms, record.histograms);
    assert_eq!(merged.timeline.intervals.len(), record.timeline.intervals.len());
    for (merged, whole) in merged.timeline.intervals.iter().zip(&record.timeline.intervals) {
        assert_eq!(merged.groups, whole.groups);
    }
}

fn nanos(us: u64) -> u128 {
    u128::from(us) * 1_000
}

/// The values themselves, sorted, without any histogram.
#[test]
fn percentiles_of_the_whole_are_those_of_all_values_together() {
    let mut values: Vec<u64> =
        (0..REQUESTS).filter(|n| n % 10 != 9).map(|n| service_us(n) + 5).collect();
    values.sort_unstable();
    let merged = merge(3).summary;
    assert!(merged.is_valid(), "{:?}", merged.findings);
    let times = &merged.results.total.distributions[Metric::ResponseTime.key()];
    let restored = times.restore().unwrap();
    assert_eq!(
        (restored.count(), restored.sum()),
        (values.len() as u64, nanos(values.iter().sum()))
    );
    for (q, rank) in [(0.5, values.len().div_ceil(2)), (0.99, (values.len() * 99).div_ceil(100))] {
        let found = restored.nearest_rank(q).unwrap().as_u64() as f64;
        let expected = (values[rank - 1] * 1_000) as f64;
        assert!((found / expected - 1.0).abs() < 0.001, "{q}: {found} for {expected}");
    }
}

#[test]
fn rows_are_merged_by_their_intended_start_and_a_cut_line_is_left_out() {
    let parent = tempfile::tempdir().unwrap();
    let folders = shards(parent.path(), 2);
    let row = |at: u64| format!("{{\"a\":1,\"intended_unix_ns\":{at},\"b\":2}}\n");
    for folder in &folders {
        fs::remove_file(folder.join("shard.json")).unwrap();
    }
    fs::write(folders[0].join("results.jsonl"), row(1) + &row(30) + "{\"inten").unwrap();
    fs::write(folders[1].join("results.jsonl"), row(2) + &row(4)).unwrap();
    let read = folders.iter().map(|folder| Shard::read(folder).unwrap()).collect();
    let set = ShardSet::new(read, None, None).unwrap();
    let mut out = Vec::new();
    assert_eq!(merge_rows(&set, "results.jsonl", &mut out).unwrap(), 4);
    assert_eq!(String::from_utf8(out).unwrap(), row(1) + &row(2) + &row(4) + &row(30));
    assert_eq!(merge_rows(&set, "tasks.jsonl", &mut Vec::new()).unwrap(), 0);
}
