//! Time series in bounded memory.
#![expect(clippy::float_cmp, clippy::cast_possible_truncation, reason = "whole seconds")]

use std::collections::BTreeMap;

use plimsoll_measure::{Moment, Nanos, Outcome, Sample};
use plimsoll_metrics::time_series::MAX_INTERVALS;
use plimsoll_metrics::{
    DisturbedWindow, InstrumentHealth, ProcessTrack, Recorder, RunTimeline, TimeRecord, TimeSeries,
};

use crate::server_metrics;
use crate::support::{at, metadata, recorder, run, sample};

fn timeline(series: &TimeSeries) -> RunTimeline {
    TimeRecord::build(series, &metadata(), &InstrumentHealth::default(), &[]).unwrap().timeline
}

/// A run of so many seconds, with a request each 100 ms that takes as many ms as its number. Those
/// of the first `completing` seconds complete; others are refused, and have no times here.
fn series(seconds: u64, completing: u64) -> TimeSeries {
    let mut recorder = Recorder::new(vec![at(seconds * 1_000 + 1)]);
    let mut series = TimeSeries::new(Moment::EPOCH);
    for second in 0..seconds {
        for n in 0..10 {
            let service = 1 + (second * 10 + n) % 97;
            let good = second < completing;
            let outcome = if good { Outcome::Completed } else { Outcome::Rejected(429) };
            run(&mut recorder, &sample(0, second * 1_000 + n * 90, service, outcome), &[]);
        }
        series.add(at(second * 1_000 + 1_003), &recorder.take());
    }
    series.end(at(seconds * 1_000));
    series
}

#[test]
fn long_runs_have_longer_intervals_and_lose_no_request() {
    for (seconds, width) in [(600, 1.0), (601, 2.0), (1_200, 2.0), (1_201, 4.0), (3_600, 8.0)] {
        let timeline = timeline(&series(seconds, 0));
        assert_eq!(timeline.interval_s, width, "{seconds}");
        assert!(timeline.intervals.len() <= MAX_INTERVALS as usize);
        let groups = || timeline.intervals.iter().flat_map(|interval| &interval.groups);
        assert_eq!(groups().map(|group| group.due).sum::<u64>(), seconds * 10);
        assert_eq!(groups().map(|group| group.counters.rejected).sum::<u64>(), seconds * 10);
        let last = timeline.intervals.last().unwrap();
        assert_eq!(last.start_s + last.length_s, seconds as f64);
        for interval in &timeline.intervals {
            let counters = &interval.groups[0].counters;
            assert_eq!(counters.rejected as f64, interval.length_s * 10.0);
        }
    }
}

#[test]
fn percentiles_of_merged_seconds_are_those_of_all_their_values() {
    // Eight seconds of ten values: the median of 80 values, which no second alone has.
    let merged = timeline(&series(3_600, 24));
    for index in 0..3 {
        let mut values: Vec<u64> = (0..80).map(|n| 2 + (index * 80 + n) % 97).collect();
        values.sort_unstable();
        let group = &merged.intervals[usize::try_from(index).unwrap()].groups[0];
        let times = &group.times["response_time_ms"];
        let p50 = times.p50.unwrap();
        assert!((p50 / values[39] as f64 - 1.0).abs() < 0.002, "{index}: {p50}");
        assert_eq!(times.bins.iter().map(|(_, n)| n).sum::<u64>(), 80);
        // 80 values are too few for the 99th percentile.
        assert_eq!((times.count, times.p99), (80, None));
    }
}

/// The seconds in which requests ended, with their number.
fn ended(series: &TimeSeries) -> Vec<(u64, u64)> {
    let timeline = timeline(series);
    timeline
        .intervals
        .iter()
        .map(|interval: &plimsoll_metrics::TimelineInterval| {
            let ended: u64 = interval.groups.iter().map(|group| group.counters.completed).sum();
            (interval.start_s as u64, ended)
        })
        .filter(|(_, ended)| *ended > 0)
        .collect()
}

#[test]
fn a_snapshot_belongs_to_the_second_that_it_ends() {
    let counted = || {
        let mut recorder = recorder();
        run(&mut recorder, &sample(0, 10, 5, Outcome::Completed), &[]);
        recorder.take()
    };
    for (taken, second) in [(998, 0), (1_000, 0), (1_499, 0), (1_501, 1), (2_050, 1), (4_600, 4)] {
        let mut series = TimeSeries::new(Moment::EPOCH);
        series.add(at(taken), &counted());
        assert_eq!(ended(&series), [(second, 1)], "taken at {taken} ms");
    }
    // The rest at the end: the time since the last snapshot, or the moment of the end if a worker
    // was stopped.
    for (from, end, second) in [
        (9_003, 10_000, 9),
        (9_003, 10_001, 9),
        (10_003, 10_300, 10),
        (10_003, 13_700, 13),
        (0, 400, 0),
    ] {
        let mut series = TimeSeries::new(Moment::EPOCH);
        series.add_rest(at(from), at(end), &counted());
        assert_eq!(ended(&series), [(second, 1)], "from {from} to {end} ms");
    }
}

#[test]
fn seconds_count_from_the_start_of_the_run() {
    let origin = at(700);
    let mut recorder = Recorder::new(vec![at(60_000)]).starting_at(origin);
    run(&mut recorder, &sample(0, 1_600, 5, Outcome::Completed), &[]);
    run(&mut recorder, &sample(0, 1_750, 5, Outcome::Completed), &[]);
    let mut series = TimeSeries::new(origin);
    series.add(at(2_700), &recorder.take());
    let due: Vec<_> = timeline(&series)
        .intervals
        .iter()
        .map(|interval| interval.groups.iter().map(|group| group.due).sum::<u64>())
        .collect();
    assert_eq!(due, [1, 1]);
}

#[test]
fn a_figure_that_the_generator_made_is_marked() {
    let mut recorder = recorder();
    for n in 0..100 {
        let mut late: Sample = sample(1, 2_015 + n * 5, 20, Outcome::Completed);
        late.timeline.intended = at(2_000 + n * 5);
        late.generator.dispatch = Nanos::from_millis(15);
        run(&mut recorder, &late, &[]);
    }
    let mut series = TimeSeries::new(Moment::EPOCH);
    series.add(at(3_000), &recorder.take());
    let timeline = timeline(&series);
    let times = &timeline.intervals[2].groups[0].times;
    let response = &times["response_time_ms"];
    // 15 of 35 ms are the generator's.
    assert!(response.p50.is_some_and(|p50| (p50 - 35.0).abs() < 1.1), "{response:?}");
    assert!(response.refused.contains_key("p50"));
    // The service time counts from the dispatch, so that a late one does not change it.
    let service = &times["service_time_ms"];
    assert!(service.p50.is_some_and(|p50| (p50 - 20.0).abs() < 0.1), "{service:?}");
    assert!(service.refused.is_empty());
}

#[test]
fn disturbed_windows_and_cpu_time_are_in_their_intervals() {
    let window = DisturbedWindow { start_s: 1.75, length_s: 0.5, ..DisturbedWindow::default() };
    let health =
        InstrumentHealth { disturbed_windows: vec![window], ..InstrumentHealth::default() };
    // Half a core in the first two seconds, two cores afterwards.
    let reading = |s: u64, cpu_ms| (Nanos::from_secs(s), Nanos::from_millis(cpu_ms));
    let readings =
        vec![reading(0, 7_000), reading(2, 8_000), reading(3, 10_000), reading(4, 12_000)];
    let track = ProcessTrack { name: "gateway".to_owned(), readings };
    let built = TimeRecord::build(&series(4, 4), &metadata(), &health, &[track]).unwrap();
    let of = |f: fn(&plimsoll_metrics::TimelineInterval) -> f64| {
        built.timeline.intervals.iter().map(f).collect::<Vec<_>>()
    };
    assert_eq!(of(|interval| interval.disturbed_s), [0.0, 0.25, 0.25, 0.0]);
    assert_eq!(of(|interval| interval.cores["gateway"]), [0.5, 0.5, 2.0, 2.0]);
    let lag: BTreeMap<_, _> =
        built.timeline.intervals.iter().map(|i| (i.start_s as u64, i.pacing_lag_ms)).collect();
    assert!(lag[&0].is_some_and(|lag| lag.max == 0.0), "{lag:?}");
}

#[test]
fn an_interval_has_the_figures_of_servers() {
    let track = server_metrics::track(|second| {
        vec![("waiting", second), ("output_tokens", second * second)]
    });
    let (series, health) = (series(4, 4), InstrumentHealth::default());
    let record = TimeRecord::build(&series, &metadata(), &health, &[]).unwrap();
    let timeline = record.with_servers(&series, &[track]).timeline;
    let of = |key: &str| -> Vec<_> {
        let all = timeline.intervals.iter().map(|interval| interval.servers["vllm"].get(key));
        all.map(Option::<&f64>::copied).collect()
    };
    assert_eq!(of("requests_waiting"), [0.0, 1.0, 2.0, 3.0].map(Some));
    // From 0 to 1 token, to 4 and to 9; nothing is known of the time before the first reading.
    assert_eq!(of("output_tokens_per_s"), [None, Some(1.0), Some(3.0), Some(5.0)]);
}
