//! `timeline.json` and `histograms.hlog`.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use plimsoll_measure::{Moment, Nanos, Outcome, Sample};
use plimsoll_metrics::{Recorder, RunTimeline, TargetInfo, TimeRecord, TimeSeries};
use plimsoll_run_files::{interval_log, read_timeline, timeline_json};

use crate::support::{health, metadata, samples, stage_ends};

/// The record of the run of the other tests, counted in seconds by the end of its requests.
fn record(targets: &[&str]) -> TimeRecord {
    let mut metadata = metadata();
    metadata.targets = targets
        .iter()
        .map(|name| TargetInfo { name: (*name).to_owned(), ..TargetInfo::default() })
        .collect();
    let mut recorder = Recorder::new(stage_ends());
    let mut series = TimeSeries::new(Moment::EPOCH);
    let mut by_second: BTreeMap<u64, Vec<Sample>> = BTreeMap::new();
    for sample in samples() {
        by_second.entry(second(&sample)).or_default().push(sample);
    }
    for (second, samples) in by_second {
        for sample in samples {
            recorder.scheduled(sample.stage, sample.scenario, sample.target);
            let gaps = vec![Nanos::from_millis(3); sample.gaps.count as usize];
            recorder.record(&sample, &gaps, &[]);
        }
        let end = Moment::EPOCH + Nanos::from_secs(second + 1);
        series.add(end, &recorder.take());
    }
    TimeRecord::build(&series, &metadata, &health(), &[]).unwrap()
}

fn second(sample: &Sample) -> u64 {
    sample.timeline.finished.unwrap_or_default().as_nanos() / 1_000_000_000
}

/// Every histogram of the log, by tag and second, read by HdrHistogram's own crate.
fn read(log: &str) -> BTreeMap<(String, u64), Histogram<u64>> {
    let mut found: BTreeMap<(String, u64), Histogram<u64>> = BTreeMap::new();
    let mut times = Vec::new();
    for entry in IntervalLogIterator::new(log.as_bytes()) {
        match entry.unwrap() {
            LogEntry::StartTime(at) | LogEntry::BaseTime(at) => times.push(at.as_secs()),
            LogEntry::Interval(interval) => {
                let bytes = STANDARD.decode(interval.encoded_histogram()).unwrap();
                let histogram: Histogram<u64> =
                    Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
                let ms = histogram.max() as f64 / 1e6;
                assert!((interval.max() / ms - 1.0).abs() < 0.001, "{} {ms}", interval.max());
                let tag = interval.tag().unwrap().as_str().to_owned();
                let key = (tag, interval.start_timestamp().as_secs());
                match found.get_mut(&key) {
                    Some(known) => known.add(histogram).unwrap(),
                    None => drop(found.insert(key, histogram)),
                }
            }
        }
    }
    assert_eq!(times, [metadata().run.started_unix_ns / 1_000_000_000; 2]);
    found
}

#[test]
fn hdrhistograms_own_reader_finds_every_completed_request_in_its_second() {
    let found = read(&interval_log(&record(&["gateway"])));
    let mut expected: BTreeMap<(String, u64), Vec<u64>> = BTreeMap::new();
    for sample in samples().iter().filter(|sample| sample.outcome == Outcome::Completed) {
        let line = &sample.timeline;
        let mut add = |metric: &str, value: Option<Nanos>| {
            let warmup = if sample.stage.index() == 0 { "warmup." } else { "" };
            let key = (format!("{warmup}{metric}"), second(sample));
            expected.entry(key).or_default().extend(value.map(Nanos::as_u64));
        };
        add("response_time", line.finished.map(|end| end.since(line.intended)));
        add("service_time", line.finished.zip(line.dispatched).map(|(end, from)| end.since(from)));
        add("ttft", line.first_token.zip(line.dispatched).map(|(end, from)| end.since(from)));
        (0..sample.gaps.count).for_each(|_| add("itl", Some(Nanos::from_millis(3))));
    }
    expected.retain(|_, values| !values.is_empty());
    assert!(expected.len() > 60 && found.keys().eq(expected.keys()));
    for (key, mut values) in expected {
        let histogram = &found[&key];
        assert_eq!(histogram.len(), values.len() as u64, "{key:?}");
        values.sort_unstable();
        let median = values[(values.len() - 1) / 2] as f64;
        let ratio = histogram.value_at_quantile(0.5) as f64 / median;
        assert!((ratio - 1.0).abs() < 0.002, "{key:?}: {ratio}");
    }
}

#[test]
fn tags_name_the_target_where_there_are_several_and_hold_no_comma() {
    let log = interval_log(&record(&["a, b\n", "c"]));
    let tags: Vec<_> = read(&log).into_keys().map(|(tag, _)| tag).collect();
    assert!(tags.contains(&"response_time.a__b_".to_owned()), "{tags:?}");
    assert!(tags.contains(&"warmup.ttft.a__b_".to_owned()), "{tags:?}");
}

#[test]
fn the_file_is_read_as_it_was_written_and_fits_its_schema() {
    let timeline = record(&["gateway"]).timeline;
    let text = timeline_json(&timeline).unwrap();
    assert_eq!(timeline_json(&read_timeline(text.as_bytes()).unwrap()).unwrap(), text);
    let schema = serde_json::to_value(schemars::schema_for!(RunTimeline)).unwrap();
    let file = serde_json::from_str(&text).unwrap();
    let errors: Vec<_> = jsonschema::validator_for(&schema)
        .unwrap()
        .iter_errors(&file)
        .map(|error| error.to_string())
        .collect();
    assert_eq!(errors, Vec::<String>::new());
    let later = text.replace("timeline/1", "timeline/9");
    let error = read_timeline(later.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("plimsoll.timeline/9"), "{error}");
}

#[test]
fn counters_of_all_intervals_are_those_of_the_samples() {
    let timeline = record(&["gateway"]).timeline;
    let groups = || timeline.intervals.iter().flat_map(|interval| &interval.groups);
    let sum = |of: fn(&plimsoll_metrics::TimelineGroup) -> u64| groups().map(of).sum::<u64>();
    let all = samples();
    let count = |is: fn(&Sample) -> bool| all.iter().filter(|sample| is(sample)).count() as u64;
    assert_eq!(sum(|g| g.due), all.len() as u64);
    assert_eq!(sum(|g| g.sent), count(|s| s.timeline.dispatched.is_some()));
    assert_eq!(sum(|g| g.counters.scheduled), all.len() as u64);
    assert_eq!(sum(|g| g.counters.completed), count(|s| s.outcome == Outcome::Completed));
    assert_eq!(sum(|g| g.counters.rejected), 20);
    assert_eq!(sum(|g| g.errors.values().sum()), 9);
    assert_eq!(sum(|g| g.statuses.get("429").copied().unwrap_or_default()), 20);
    // By the second of their intended start and dispatch.
    for (second, interval) in (0..).zip(&timeline.intervals) {
        assert!((interval.start_s - second as f64).abs() < 1e-9);
        let within = |at: Moment| at.as_nanos() / 1_000_000_000 == second;
        let due = all.iter().filter(|s| within(s.timeline.intended)).count() as u64;
        let sent = all.iter().filter(|s| s.timeline.dispatched.is_some_and(within)).count() as u64;
        let of = |n: fn(&plimsoll_metrics::TimelineGroup) -> u64| {
            interval.groups.iter().map(n).sum::<u64>()
        };
        assert_eq!((of(|g| g.due), of(|g| g.sent)), (due, sent), "{}", interval.start_s);
        // Dispatched up to its end and not yet over.
        let end = second + 1;
        let up_to = |at: Option<Moment>| at.is_some_and(|at| at.as_nanos() / 1_000_000_000 < end);
        let open = all
            .iter()
            .filter(|s| up_to(s.timeline.dispatched) && !up_to(s.timeline.finished))
            .count() as u64;
        assert_eq!(interval.in_flight, [open], "{end}");
    }
}
