//! Samples and metadata for tests.

use plimsoll_measure::{
    ConnectPhases, ConversationKey, FlowControl, GapSummary, Moment, Nanos, Outcome,
    PolicyDecision, Sample, ScenarioId, ServerReport, StageId, TargetId, Timeline, TokenCount,
    Usage,
};
use plimsoll_metrics::{
    Environment, InstrumentHealth, Limit, LoadModel, Recorder, RunEnd, RunInfo, RunMetadata,
    RunSummary, StageInfo, TargetInfo,
};

/// The moment `ms` after the epoch.
pub(crate) fn at(ms: u64) -> Moment {
    Moment::EPOCH + Nanos::from_millis(ms)
}

/// A request intended at `intended` ms, dispatched 1 ms later, with its first token after 20 ms and
/// its end `service` ms after the dispatch.
pub(crate) fn sample(stage: u16, intended: u64, service: u64, outcome: Outcome) -> Sample {
    let dispatched = intended + 1;
    let sent = !matches!(outcome, Outcome::NeverSent);
    let answered = matches!(outcome, Outcome::Completed);
    Sample {
        stage: StageId(stage),
        scenario: ScenarioId(0),
        target: TargetId(0),
        conversation: ConversationKey::arrival(intended),
        position: 0,
        turn: 0,
        operation: None,
        stream: true,
        warmup: false,
        reused: true,
        timeline: Timeline {
            intended: at(intended),
            dispatched: sent.then(|| at(dispatched)),
            first_byte: answered.then(|| at(dispatched + 10)),
            first_token: answered.then(|| at(dispatched + 20)),
            first_output_token: answered.then(|| at(dispatched + 20)),
            last_token: answered.then(|| at(dispatched + service)),
            finished: sent.then(|| at(dispatched + service)),
            ..Timeline::default()
        },
        connect: ConnectPhases::default(),
        retried_after: None,
        status: status(outcome),
        outcome,
        policy_decision: Some(PolicyDecision::from_status(status(outcome))),
        expected: None,
        usage: Usage {
            prompt: TokenCount::reported(100),
            completion: TokenCount::reported(5),
            cached: 40,
            reasoning: 2,
            after_first: Some(4),
        },
        events: 5,
        gaps: GapSummary::default(),
        shape: None,
        finish_reason: None,
        content: plimsoll_measure::AnswerContent::default(),
        repeated_tokens: 0,
        usage_refused: false,
        affected: false,
        rpc: plimsoll_measure::RpcReport::default(),
        bytes_out: 300,
        bytes_in: 900,
        flow: FlowControl::default(),
        server: ServerReport::default(),
        read_lag: None,
        generator: plimsoll_measure::GeneratorShare::default(),
    }
}

fn status(outcome: Outcome) -> u16 {
    match outcome {
        Outcome::Completed => 200,
        Outcome::Rejected(status) => status,
        Outcome::Failed(_) => 503,
        _ => 0,
    }
}

/// A warm-up stage of 1 s and two stages of 10 s.
pub(crate) fn metadata() -> RunMetadata {
    let stage = |name: &str, start_s, duration_s, warmup| StageInfo {
        name: name.to_owned(),
        model: LoadModel::Closed,
        warmup,
        start_s,
        duration_s,
        ..StageInfo::default()
    };
    RunMetadata {
        run: RunInfo { name: "test".to_owned(), ended: RunEnd::Complete, ..RunInfo::default() },
        stages: vec![
            stage("w1:1s", 0.0, 1.0, true),
            stage("1:10s", 1.0, 10.0, false),
            stage("2:10s", 11.0, 10.0, false),
        ],
        scenarios: vec!["simple".to_owned(), "complex".to_owned()],
        targets: vec![TargetInfo { name: "gateway".to_owned(), ..TargetInfo::default() }],
        environment: Environment::default(),
        unsent: Vec::new(),
        notes: Vec::new(),
        ..RunMetadata::default()
    }
}

pub(crate) fn recorder() -> Recorder {
    Recorder::new(vec![at(1_000), at(11_000), at(21_000)])
}

/// Plans and records a request.
pub(crate) fn run(recorder: &mut Recorder, sample: &Sample, gaps: &[Nanos]) {
    recorder.scheduled(sample.stage, sample.scenario, sample.target);
    recorder.record(sample, gaps, &[]);
}

pub(crate) fn summary(recorder: &mut Recorder, thresholds: &[(&str, &str)]) -> RunSummary {
    let thresholds: Vec<_> =
        thresholds.iter().map(|(metric, bound)| Limit::parse(metric, bound).unwrap()).collect();
    RunSummary::build(metadata(), InstrumentHealth::default(), &recorder.take(), &thresholds)
        .unwrap()
}
