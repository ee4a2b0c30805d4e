//! Expected policy decisions, bands, and their interpretation.

use plimsoll_measure::{Outcome, PolicyDecision, Sample, ScenarioId};
use plimsoll_metrics::{
    BandLevel, Expectation, InstrumentHealth, Judgement, Level, Limit, RunMetadata, RunSummary,
};

use crate::support::{metadata, recorder, run, sample};

/// A turn of the given scenario of the second stage.
fn turn(
    index: u64,
    scenario: u16,
    outcome: Outcome,
    policy_decision: Option<PolicyDecision>,
) -> Sample {
    let expected = [PolicyDecision::Allow, PolicyDecision::Block][usize::from(scenario)];
    Sample {
        scenario: ScenarioId(scenario),
        policy_decision,
        expected: Some(expected),
        ..sample(1, 1_000 + index, 50, outcome)
    }
}

/// 90 requests that should be allowed and 30 that should be blocked, with every kind of end.
fn summary(bands: &[(&str, &str)]) -> RunSummary {
    let mut recorder = recorder();
    let kinds = [
        (0, 80, Outcome::Completed, Some(PolicyDecision::Allow)),
        (0, 4, Outcome::Rejected(403), Some(PolicyDecision::Block)),
        (0, 3, Outcome::Completed, Some(PolicyDecision::Redact)),
        (0, 3, Outcome::TimedOut, None),
        (1, 27, Outcome::Rejected(403), Some(PolicyDecision::Block)),
        (1, 2, Outcome::Completed, Some(PolicyDecision::Allow)),
        (1, 1, Outcome::Rejected(404), Some(PolicyDecision::Unexpected)),
    ];
    for (scenario, count, outcome, policy_decision) in kinds {
        for index in 0..count {
            run(&mut recorder, &turn(index, scenario, outcome, policy_decision), &[]);
        }
    }
    let expect = |policy_decision, category: &str| Expectation {
        policy_decision: Some(policy_decision),
        category: Some(category.to_owned()),
    };
    let expectations =
        vec![expect(PolicyDecision::Allow, "normal"), expect(PolicyDecision::Block, "attack")];
    let metadata = RunMetadata { expectations, ..metadata() };
    let bands: Vec<_> =
        bands.iter().map(|(metric, bounds)| Limit::parse(metric, bounds).unwrap()).collect();
    RunSummary::build(metadata, InstrumentHealth::default(), &recorder.take(), &bands).unwrap()
}

#[test]
fn expected_refusals_are_neither_errors_nor_surprises() {
    let summary = summary(&[]);
    let counters = &summary.results.total.counters;
    assert_eq!((counters.scheduled, counters.judged, counters.as_expected), (120, 117, 107));
    assert_eq!((counters.rejected, counters.blocked, counters.allowed), (32, 31, 85));
    // 4 + 3 + 2 + 1 wrong policy decisions, 3 without an answer.
    assert_eq!(counters.unexpected, 13);
    assert_eq!((counters.ok(), counters.refused(), counters.wrongly_decided()), (107, 0, 10));
    assert_eq!(counters.ok_share(), Some(107.0 / 120.0));
    let rates = &summary.results.total.rates;
    assert_eq!(rates.policy_correctness, Some(107.0 / 117.0));
    assert_eq!(rates.block_rate, Some(31.0 / 120.0));
    assert_eq!(rates.error_rate, Some(13.0 / 120.0));
    // All refusals count as rejected; only those that nobody expected as errors.
    assert_eq!(rates.reject_rate, Some(32.0 / 120.0));
    assert_eq!(rates.error_rate, Some(13.0 / 120.0));
    assert_eq!(rates.error_rate_excluding_rejected, Some(3.0 / 120.0));
}

/// Without the right key nothing is decided, and without expectations every refusal is one.
#[test]
fn refusals_that_no_decision_explains_are_refusals() {
    for expected in [Some(PolicyDecision::Block), Some(PolicyDecision::Allow), None] {
        let mut recorder = recorder();
        for index in 0..5 {
            let policy_decision = Some(PolicyDecision::Unexpected);
            let turn = turn(index, 0, Outcome::Rejected(401), policy_decision);
            run(&mut recorder, &Sample { expected, ..turn }, &[]);
        }
        let health = InstrumentHealth::default();
        let summary = RunSummary::build(metadata(), health, &recorder.take(), &[]).unwrap();
        let counters = &summary.results.total.counters;
        assert_eq!((counters.ok(), counters.refused(), counters.wrongly_decided()), (0, 5, 0));
    }
}

/// A stream that the target lets through and then cuts is no good answer, whatever its head said.
#[test]
fn what_is_let_through_and_breaks_off_is_an_error() {
    let cut = Outcome::Failed(plimsoll_measure::ErrorClass::StreamTruncated);
    for (outcome, decision, is_error) in [
        (cut, Some(PolicyDecision::Allow), true),
        (Outcome::Completed, Some(PolicyDecision::Allow), false),
        (Outcome::Rejected(429), Some(PolicyDecision::RateLimited), true),
        (Outcome::Cancelled, None, false),
        (Outcome::InFlight, None, true),
        (Outcome::NeverSent, None, true),
    ] {
        assert_eq!(turn(0, 0, outcome, decision).is_unexpected(), is_error, "{outcome:?}");
    }
    let refused = Outcome::Failed(plimsoll_measure::ErrorClass::ServerError);
    assert!(!turn(0, 1, refused, Some(PolicyDecision::Block)).is_unexpected());
}

#[test]
fn the_matrix_is_given_by_run_stage_scenario_and_category() {
    let summary = summary(&[]);
    let count =
        |expected: &str, actual: &str| summary.results.total.policy_decisions[expected][actual];
    assert_eq!(
        [
            count("allow", "allow"),
            count("allow", "block"),
            count("allow", "redact"),
            count("allow", "unanswered")
        ],
        [80, 4, 3, 3]
    );
    assert_eq!(
        [count("block", "block"), count("block", "allow"), count("block", "unexpected")],
        [27, 2, 1]
    );
    let attack =
        summary.results.by_category.iter().find(|g| g.category.as_deref() == Some("attack"));
    assert_eq!(attack.unwrap().policy_decisions, summary.results.by_scenario[1].policy_decisions);
    assert_eq!(attack.unwrap().policy_decisions.len(), 1);
    assert_eq!(
        summary.results.by_stage[1].policy_decisions,
        summary.results.total.policy_decisions
    );
    assert!(summary.results.by_stage[2].policy_decisions.is_empty());
}

#[test]
fn bands_have_three_levels_and_are_inconclusive_without_data() {
    let summary = summary(&[
        ("block_rate", "rate>=10%|>0"),
        ("error_rate_excluding_rejected", "<=0|5%"),
        ("policy_correctness", ">=99%|95%"),
        ("response_time", "p(50)<60ms|70ms"),
        ("response_time", "p(99)<60ms|70ms"),
        ("policy_correctness{stage:3}", ">=99%|95%"),
        ("error_rate{stage:3}", "<=0|5%"),
    ]);
    let levels: Vec<_> = summary.thresholds.iter().map(|band| band.level).collect();
    let known =
        [BandLevel::Target, BandLevel::Degraded, BandLevel::Critical, BandLevel::Target].map(Some);
    assert_eq!(levels, [&known[..], &[None; 3]].concat());
    let failed = summary.thresholds.iter().filter(|band| band.judgement == Judgement::Fail);
    assert_eq!(failed.count(), 1);
}

#[test]
fn wrong_decisions_are_found_and_those_without_an_answer_are_not() {
    let text = |summary: &RunSummary| {
        let found = summary.findings.iter().find(|finding| finding.code == 213).cloned();
        found.map(|finding| (finding.level, finding.text()))
    };
    let some = text(&summary(&[])).unwrap();
    assert_eq!(some.0, Level::Warning);
    assert!(some.1.starts_with("10 of 117 policy decisions are wrong"), "{}", some.1);

    // Blocks are expected, and none comes.
    let mut recorder = recorder();
    for index in 0..100 {
        for (stage, start, service) in [(1, 1_000, 50), (2, 11_000, 90)] {
            let turn = turn(index, 1, Outcome::Completed, Some(PolicyDecision::Allow));
            let timeline = sample(stage, start + index, service, Outcome::Completed).timeline;
            run(
                &mut recorder,
                &Sample { timeline, stage: plimsoll_measure::StageId(stage), ..turn },
                &[],
            );
        }
    }
    let expectation = Expectation { policy_decision: Some(PolicyDecision::Block), category: None };
    let metadata =
        RunMetadata { expectations: vec![Expectation::default(), expectation], ..metadata() };
    let summary =
        RunSummary::build(metadata, InstrumentHealth::default(), &recorder.take(), &[]).unwrap();
    let (level, all) = text(&summary).unwrap();
    assert_eq!(level, Level::Fail);
    assert_eq!(all, "200 of 200 policy decisions are wrong: 200 requests were not blocked.");
    assert!(summary.results.by_category.is_empty());
}
