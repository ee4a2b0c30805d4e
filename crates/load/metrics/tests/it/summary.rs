//! Summaries: written, read, and rolled up.

use plimsoll_measure::{ErrorClass, Nanos, Outcome};
use plimsoll_metrics::summary::SCHEMA;
use plimsoll_metrics::{Metric, QUANTILES, RunSummary, Scope};

use crate::support::{recorder, run, sample, summary};

fn example() -> RunSummary {
    let mut recorder = recorder();
    for i in 0..250 {
        run(&mut recorder, &sample(0, i, 999, Outcome::Completed), &[]);
        let gaps = [Nanos::from_millis(5)];
        run(&mut recorder, &sample(1, 1_000 + 10 * i, 40, Outcome::Completed), &gaps);
        let mut complex = sample(2, 11_000 + 10 * i, 80, Outcome::Completed);
        complex.scenario = plimsoll_measure::ScenarioId(1);
        run(&mut recorder, &complex, &gaps);
    }
    run(&mut recorder, &sample(2, 12_000, 5, Outcome::Failed(ErrorClass::Reset)), &[]);
    summary(&mut recorder, &[("ttft", "p(95)<500ms")])
}

#[test]
fn a_summary_reads_back_exactly_as_it_was_written() {
    let summary = example();
    let text = serde_json::to_string(&summary).unwrap();
    assert_eq!(serde_json::from_str::<RunSummary>(&text).unwrap(), summary);
    assert_eq!(summary.schema, SCHEMA);
}

#[test]
fn the_schema_accepts_what_is_written() {
    let schema = serde_json::to_value(schemars::schema_for!(RunSummary)).unwrap();
    let value = serde_json::to_value(example()).unwrap();
    let errors: Vec<_> = jsonschema::validator_for(&schema)
        .unwrap()
        .iter_errors(&value)
        .map(|error| error.to_string())
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
}

#[test]
fn totals_leave_warm_up_out_and_stages_do_not() {
    let summary = example();
    assert_eq!(summary.results.total.counters.completed, 500);
    assert_eq!(summary.results.total.duration_s.to_string(), "20");
    assert_eq!(summary.results.by_stage[0].counters.completed, 250);
    assert!(summary.results.by_stage[0].warmup);
    let completed: Vec<_> =
        summary.results.by_scenario.iter().map(|g| g.counters.completed).collect();
    assert_eq!(completed, [250, 250]);
    assert_eq!(summary.results.accounting().scheduled, 751);
    assert!(summary.results.accounting().balanced());
    assert!(summary.is_valid(), "{:?}", summary.findings);
}

#[test]
fn a_percentile_of_too_few_samples_is_not_given() {
    let times = example().results.by_stage[1].distribution(Metric::ServiceTime).unwrap().clone();
    assert_eq!((times.count, times.figure(&QUANTILES[3])), (250, None));
    let p95 = times.figure(&QUANTILES[2]).and_then(|figure| figure.sound()).unwrap();
    assert!((p95 - 40.0).abs() < 0.04);
    assert!((times.mean_figure().value - 40.0).abs() < 1e-9);
}

#[test]
fn a_distribution_is_restored_as_it_was() {
    let times = example().results.total.distribution(Metric::ServiceTime).unwrap().clone();
    let restored = times.restore().unwrap();
    assert_eq!(restored.count(), 500);
    assert_eq!(restored.sum(), (250 * 40 + 250 * 80) * 1_000_000);
    assert_eq!(restored.max(), Some(Nanos::from_millis(80)));
    assert_eq!(restored.encode().unwrap(), times.histogram);
}

#[test]
fn a_stage_is_found_by_its_name_or_its_number() {
    let summary = example();
    let name = |scope| summary.results.group(&scope).and_then(|g| g.stage.clone());
    let stage = |text: &str| Scope::Stage(text.to_owned());
    assert_eq!(name(stage("2:10s")).as_deref(), Some("2:10s"));
    assert_eq!(name(stage("1")).as_deref(), Some("w1:1s"));
    assert_eq!((name(stage("0")), name(stage("4"))), (None, None));
}

#[test]
fn the_time_in_flight_counts_from_the_intended_start() {
    let mut recorder = recorder();
    // 250 requests of 40 ms, each after waiting 1 ms, in 10 s: 1.025 in flight on average.
    for i in 0..250 {
        run(&mut recorder, &sample(1, 1_000 + 10 * i, 40, Outcome::Completed), &[]);
    }
    let seconds = recorder.take().total(|_| true).in_flight_time() as f64 / 1e9;
    assert!((seconds / 10.0 - 1.025).abs() < 1e-9, "{seconds} s");
}
