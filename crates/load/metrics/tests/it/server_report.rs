//! Facts that targets report about themselves: counters, the distribution, the warning.

use plimsoll_measure::{CacheState, Nanos, Outcome, Sample, ScenarioId, ServerReport};
use plimsoll_metrics::{InstrumentHealth, Metric, Recorder, RunSummary, Snapshot};

use crate::support::{at, metadata, sample};

fn said(scenario: u16, cache: Option<CacheState>, retries: u32, time_ms: Option<u64>) -> Sample {
    let time = time_ms.map(Nanos::from_millis);
    Sample {
        scenario: ScenarioId(scenario),
        server: ServerReport { cache, retries, time, ..ServerReport::default() },
        ..sample(1, 2_000, 50, Outcome::Completed)
    }
}

fn summary(samples: &[Sample], busting: &[&str]) -> RunSummary {
    let mut recorder = Recorder::new(vec![at(1_000), at(11_000), at(21_000)]);
    for sample in samples {
        recorder.scheduled(sample.stage, sample.scenario, sample.target);
        recorder.record(sample, &[], &[]);
    }
    let mut snapshot = Snapshot::new();
    snapshot.append(recorder.take());
    let mut metadata = metadata();
    metadata.scenarios = vec!["unique".to_owned(), "shared".to_owned()];
    metadata.cache_busting = busting.iter().map(|&name| name.to_owned()).collect();
    RunSummary::build(metadata, InstrumentHealth::default(), &snapshot, &[]).unwrap()
}

#[test]
fn what_responses_say_is_counted() {
    use CacheState::{Bypass, Hit, Miss};
    let samples = [
        said(0, Some(Hit), 0, Some(10)),
        said(0, Some(Miss), 2, Some(30)),
        said(0, Some(Miss), 1, None),
        said(0, Some(Bypass), 0, None),
        said(0, None, 0, None),
    ];
    let total = summary(&samples, &[]).results.total;
    let counters = total.counters;
    assert_eq!((counters.cache_hits, counters.cache_misses, counters.cache_bypassed), (1, 2, 1));
    assert_eq!((counters.retried_upstream, counters.upstream_retries), (2, 3));
    let times = total.distribution(Metric::ServerTime).unwrap();
    assert_eq!(times.count, 2);
    let mean = times.mean_figure().value;
    assert!((mean - 20.0).abs() < 0.1, "{mean}");
}

#[test]
fn hits_are_a_warning_only_where_no_cache_should_answer() {
    use CacheState::{Hit, Miss};
    let samples =
        [said(0, Some(Hit), 0, None), said(0, Some(Miss), 0, None), said(1, Some(Hit), 0, None)];
    let found = |busting: &[&str], samples: &[Sample]| {
        let findings = summary(samples, busting).findings;
        findings.into_iter().find(|finding| finding.code == 309).map(|finding| finding.text())
    };
    let text =
        |hits, all| Some(format!("A cache answered {hits} of {all} requests with unique prompts."));
    assert_eq!(found(&["unique"], &samples), text(1, 2));
    assert_eq!(found(&["unique", "shared"], &samples), text(2, 3));
    assert_eq!(found(&[], &samples), None);
    assert_eq!(found(&["unique"], &samples[1..]), None);
}
