//! Parts of times, as targets name them.

use plimsoll_measure::{NAMED_PARTS, Nanos, Outcome, PartTimes, Sample, ServerParts, StageId};
use plimsoll_metrics::{
    InstrumentHealth, QUANTILES, Recorder, RunMetadata, RunSummary, ServerTiming, Snapshot,
};

use crate::support::{metadata, recorder, run, sample};

/// Parts in milliseconds, by their numbers.
fn told(parts: &[(usize, u64)]) -> ServerParts {
    let mut times = PartTimes::default();
    for (number, millis) in parts {
        times[*number] = Some(Nanos::from_millis(*millis));
    }
    ServerParts::Told(times)
}

fn record(recorder: &mut Recorder, sample: &Sample, parts: &ServerParts) {
    run(recorder, sample, &[]);
    recorder.record_parts(sample, &parts.within(sample.timeline.ttfb()));
}

fn summary(recorder: &mut Recorder) -> RunSummary {
    // Two workers' counts, and two intervals.
    let mut snapshot = Snapshot::new();
    snapshot.append(recorder.take());
    let names = vec!["gateway".to_owned(), "upstream".to_owned()];
    let metadata = RunMetadata { server_parts: names, ..metadata() };
    RunSummary::build(metadata, InstrumentHealth::default(), &snapshot, &[]).unwrap()
}

fn means(timing: &ServerTiming) -> Vec<(&str, f64)> {
    timing.means_ms().collect()
}

/// The first byte of each sample comes after 10 ms.
#[test]
fn parts_are_kept_by_stage_and_target_and_make_up_the_whole_with_the_rest() {
    let mut recorder = recorder();
    for index in 0..1_000_u64 {
        let intended = 2_000 + index;
        let completed = sample(1, intended, 50, Outcome::Completed);
        record(&mut recorder, &completed, &told(&[(0, 2), (1, 3 + index % 2)]));
    }
    // One that names only a part, and one that names one beyond the first 8, in the other stage.
    let other = sample(2, 12_000, 50, Outcome::Completed);
    record(&mut recorder, &other, &told(&[(0, 4)]));
    record(&mut recorder, &other, &told(&[(NAMED_PARTS, 6)]));
    // More than the whole; no number; a failure; one without parts; a warm-up.
    record(&mut recorder, &other, &told(&[(0, 6), (1, 5)]));
    record(&mut recorder, &other, &ServerParts::Refused);
    let failed = sample(2, 12_000, 50, Outcome::Rejected(429));
    record(&mut recorder, &failed, &told(&[(0, 1)]));
    run(&mut recorder, &other, &[]);
    let warmup = Sample { warmup: true, stage: StageId(0), ..other };
    record(&mut recorder, &warmup, &told(&[(0, 9)]));

    let summary = summary(&mut recorder);
    let [_, first, second] = summary.results.by_stage.as_slice() else { panic!("3 stages") };
    let first = first.server_timing.as_ref().unwrap();
    assert_eq!((first.responses, first.refused), (1_000, 0));
    assert_eq!(means(first), [("gateway", 2.0), ("upstream", 3.5)]);
    assert!((first.rest_ms() - 4.5).abs() < 1e-9, "{first:?}");
    let upstream = &first.parts["upstream"];
    let [p50, _, _, p99, _] = &QUANTILES;
    let figure = |quantile| upstream.figure(quantile).unwrap().value;
    assert!((figure(p50) - 3.0).abs() < 0.01 && (figure(p99) - 4.0).abs() < 0.01, "{upstream:?}");
    let second = second.server_timing.as_ref().unwrap();
    assert_eq!((second.responses, second.refused), (2, 2));
    // Of two responses.
    assert_eq!(means(second), [("gateway", 2.0), ("other", 3.0)]);
    let all = summary.results.total.server_timing.as_ref().unwrap();
    assert_eq!((all.responses, all.refused), (1_002, 2), "without the warm-up");
    assert_eq!(summary.results.by_target[0].server_timing.as_ref(), Some(all));
    assert_eq!(summary.results.cells.len(), 3);

    let json = serde_json::to_value(&summary).unwrap();
    assert_eq!(json["server_parts"], serde_json::json!(["gateway", "upstream"]));
    let read: RunSummary = serde_json::from_value(json).unwrap();
    assert_eq!(read.results.total.server_timing, summary.results.total.server_timing);
}

#[test]
fn a_run_without_such_headers_has_none() {
    let mut recorder = recorder();
    run(&mut recorder, &sample(1, 2_000, 50, Outcome::Completed), &[]);
    let json = serde_json::to_value(summary(&mut recorder)).unwrap();
    assert!(json["total"].get("server_timing").is_none(), "{json}");
}
