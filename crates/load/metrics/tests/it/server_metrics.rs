//! Figures of servers from their readings.

use std::collections::BTreeMap;

use plimsoll_measure::{Moment, Nanos};
use plimsoll_metrics::{ServerTrack, ServerValues, StageInfo};

/// A server that is read at each second from 0 to 20 of the run.
pub(crate) fn track(values: impl Fn(f64) -> Vec<(&'static str, f64)>) -> ServerTrack {
    let reading = |second: u32| {
        let at = Moment::EPOCH + Nanos::from_millis(u64::from(second) * 1_000 + 100);
        (at, ServerValues::from_iter(values(f64::from(second))))
    };
    ServerTrack {
        name: "vllm".to_owned(),
        page: "http://h/metrics".to_owned(),
        server: "vLLM",
        readings: (0..=20).map(reading).collect(),
        error: None,
    }
}

fn stage(start_s: f64, duration_s: f64) -> StageInfo {
    StageInfo { name: "8 users".to_owned(), start_s, duration_s, ..StageInfo::default() }
}

fn figures(track: &ServerTrack, start_s: f64, duration_s: f64) -> BTreeMap<String, f64> {
    track.loads(&[stage(start_s, duration_s)]).remove(0).figures
}

/// A stage from second 5 to 15 has the readings at 5.1, ..., 14.1; counters begin at 4.1.
#[test]
fn gauges_are_means_and_counters_are_differences() {
    let track = track(|second| {
        vec![
            ("running", second),
            ("waiting", if second < 10.0 { 0.0 } else { 4.0 }),
            ("kv_cache", second / 20.0),
            ("prefix_hits", second * 30.0),
            ("prefix_queries", second * 40.0),
            ("preemptions", (second / 4.0).floor()),
            ("accepted", second * 2.0),
            ("drafted", second * 8.0),
            ("queue_time", second * 500.0),
            ("queued", second * 10.0),
            ("output_tokens", second * 70.0),
        ]
    });
    let found = figures(&track, 5.0, 10.0);
    let expected = [
        ("accepted_share", 0.25),
        ("kv_cache_used", 9.5 / 20.0),
        ("kv_cache_used_max", 14.0 / 20.0),
        ("output_tokens_per_s", 70.0),
        ("preemptions", 2.0),
        ("prefix_hit_share", 0.75),
        ("queue_time_ms", 50.0),
        ("requests_running", 9.5),
        ("requests_waiting", 2.0),
        ("requests_waiting_max", 4.0),
    ];
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (key, value) in expected {
        assert!((found[key] - value).abs() < 1e-9, "{key} {found:?}");
    }
}

#[test]
fn each_form_of_hits_gives_their_share() {
    let of = |values: &'static [(&'static str, f64)]| {
        let track =
            track(|second| values.iter().map(|(name, each)| (*name, each * second)).collect());
        figures(&track, 5.0, 10.0)
    };
    let blocks = of(&[("prefix_hits", 30.0), ("prefix_misses", 10.0)]);
    assert_eq!((blocks["prefix_hit_share"], blocks["input_tokens_per_s"]), (0.75, 40.0));
    // A gauge of 0 is one that no draft model sets.
    let gauges = track(|_| vec![("prefix_hit_rate", 0.5), ("acceptance", 0.0)]);
    assert_eq!(figures(&gauges, 5.0, 10.0), BTreeMap::from([("prefix_hit_share".to_owned(), 0.5)]));
}

#[test]
fn a_restart_or_too_few_readings_give_no_figures() {
    let restarted = track(|second| vec![("output_tokens", (second - 9.0).abs()), ("running", 3.0)]);
    let found = figures(&restarted, 5.0, 10.0);
    assert_eq!(found, BTreeMap::from([("requests_running".to_owned(), 3.0)]));
    // The readings end at second 20.1.
    assert!(figures(&restarted, 18.0, 10.0).is_empty());
    assert!(figures(&restarted, 30.0, 10.0).is_empty());
    let unread = ServerTrack::default();
    assert!(unread.loads(&[stage(5.0, 10.0)]).is_empty());
    let warmup = StageInfo { warmup: true, ..stage(5.0, 10.0) };
    assert!(restarted.loads(&[warmup]).is_empty());
}
