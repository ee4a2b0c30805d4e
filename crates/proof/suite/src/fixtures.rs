//! Prepared samples for tests.

use plimsoll_measure::{
    ConnectPhases, ConversationKey, GapSummary, Moment, Nanos, Outcome, Sample, ScenarioId,
    StageId, TargetId, Timeline, Usage,
};

/// A request that was sent at once, and ended like this after a time.
pub(crate) fn sample(outcome: Outcome, status: u16, took: Nanos) -> Sample {
    let begin = Moment::EPOCH;
    let finished =
        (!matches!(outcome, Outcome::InFlight | Outcome::NeverSent)).then(|| begin + took);
    Sample {
        stage: StageId(0),
        scenario: ScenarioId(0),
        target: TargetId(0),
        conversation: ConversationKey::arrival(1),
        turn: 0,
        stream: false,
        warmup: false,
        reused: false,
        timeline: Timeline {
            dispatched: Some(begin),
            connected: Some(begin),
            sent: Some(begin),
            first_byte: finished,
            finished,
            ..Timeline::intended(begin)
        },
        connect: ConnectPhases::default(),
        status,
        outcome,
        policy_decision: None,
        expected: None,
        usage: Usage::default(),
        events: 0,
        gaps: GapSummary::default(),
        flow: plimsoll_measure::FlowControl::default(),
        bytes_out: 100,
        bytes_in: 200,
        read_lag: None,
    }
}
