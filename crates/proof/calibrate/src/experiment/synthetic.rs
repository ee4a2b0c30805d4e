//! Synthetic samples, for what needs no clock: time is an argument.

use plimsoll_measure::{
    ConversationKey, Moment, Nanos, Outcome, PolicyDecision, Sample, ScenarioId, StageId, TargetId,
    Timeline,
};
use plimsoll_metrics::{Metric, Recorder};

use crate::finding::Check;

/// A request that completed `service` after it was dispatched on time.
pub(super) fn completed(index: u64, service: Nanos) -> Sample {
    let intended = Moment::EPOCH + Nanos::from_millis(index);
    Sample {
        conversation: ConversationKey::arrival(index),
        reused: true,
        timeline: Timeline {
            intended,
            dispatched: Some(intended),
            finished: Some(intended + service),
            ..Timeline::default()
        },
        status: 200,
        outcome: Outcome::Completed,
        policy_decision: Some(PolicyDecision::Allow),
        ..Sample::unsent(intended)
    }
}

/// Delays of seconds and minutes, recorded without waiting for them: none is clipped.
pub(super) fn long_delays() -> Vec<Check> {
    let delays = [5, 90, 600].map(Nanos::from_secs);
    let mut checks = Vec::new();
    for delay in delays {
        let mut recorder = Recorder::new(vec![Moment::from_nanos(u64::MAX)]);
        (0..1_000).for_each(|index| {
            recorder.scheduled(StageId(0), ScenarioId(0), TargetId(0));
            recorder.record(&completed(index, delay), &[], &[]);
        });
        let total = recorder.take().total(|_| true);
        for (q, name) in [(0.5, "p50"), (0.99, "p99")] {
            let value = total.distribution(Metric::ResponseTime).and_then(|d| d.nearest_rank(q));
            let measured = value.map_or(f64::NAN, Nanos::as_micros_f64);
            let what = format!("{delay} {name}, time compressed");
            let truth = delay.as_micros_f64();
            checks.push(Check::within(what, "us", measured, truth, truth * 0.005));
        }
    }
    checks
}
