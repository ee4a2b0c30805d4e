//! Prepared samples for tests.

use plimsoll_measure::{ConversationKey, Moment, Nanos, Outcome, Sample, Timeline};
use plimsoll_plan::Plan;

/// A request that was sent at once, and ended like this after a time.
pub(crate) fn sample(outcome: Outcome, status: u16, took: Nanos) -> Sample {
    let begin = Moment::EPOCH;
    let finished =
        (!matches!(outcome, Outcome::InFlight | Outcome::NeverSent)).then(|| begin + took);
    Sample {
        conversation: ConversationKey::arrival(1),
        timeline: Timeline {
            dispatched: Some(begin),
            connected: Some(begin),
            sent: Some(begin),
            first_byte: finished,
            finished,
            ..Timeline::intended(begin)
        },
        status,
        outcome,
        bytes_out: 100,
        bytes_in: 200,
        ..Sample::unsent(begin)
    }
}

/// Path of the first scenario, whatever its protocol. `None`: the protocol's default path.
pub(crate) fn plan_path(plan: &Plan) -> Option<String> {
    let scenario = serde_json::to_value(&plan.scenarios[0]).unwrap();
    let named = ["http", "mcp", "a2a"].iter().find_map(|protocol| scenario[protocol].get("path"));
    named.and_then(serde_json::Value::as_str).map(str::to_owned)
}
