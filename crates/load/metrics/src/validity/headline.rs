//! Whether the load was the planned one, and whether anything is known of its headline figures.

use super::bounds::{percent, reason};
use super::{Evidence, Reason};
use crate::catalog::{Metric, Unit};
use crate::quantile::QUANTILES;
use crate::results::{Group, Results};

const MORE_GENERATOR: &str = "give the generator more or idler cores, lower the load, or divide it over several \
                              processes with --shard";

/// The share of the planned arrivals of an open stage that may miss their stage.
const MISSED_SHARE: f64 = 0.01;

/// What was not sent as planned in a measured stage, and the headline figures of which nothing is
/// known.
pub(super) fn violations(results: &Results, evidence: &Evidence, causes: &[String]) -> Vec<Reason> {
    let stages = results.by_stage.iter().filter(|stage| !stage.warmup);
    let mut reasons: Vec<_> = stages.flat_map(|stage| of_stage(stage, evidence)).collect();
    for reason in &mut reasons {
        reason.causes = causes.to_vec();
    }
    reasons
}

fn of_stage(stage: &Group, evidence: &Evidence) -> Vec<Reason> {
    let name = stage.stage.as_deref().unwrap_or_default();
    // A user of the closed model has no schedule: its request begins when the generator sends it.
    let closed = evidence.closed.iter().any(|closed| closed == name);
    let median_time = if closed {
        unknown_median(stage, Metric::ServiceTime, "the median service time")
    } else {
        unknown_median(stage, Metric::ResponseTime, "the median response time")
    };
    let ttft = unknown_median(stage, Metric::Ttft, "the median time to first token");
    let missed = if closed { None } else { missed(stage) };
    [median_time, ttft, missed].into_iter().flatten().collect()
}

/// A median of which all may be the generator's.
fn unknown_median(stage: &Group, metric: Metric, words: &str) -> Option<Reason> {
    let name = stage.stage.as_deref().unwrap_or_default();
    let figure = stage.distribution(metric)?.figure(&QUANTILES[0])?;
    figure.may_be_all_ours().then(|| {
        let measured = format!(
            "{}, all of which may be the generator's",
            Unit::Time.value_words(figure.value)
        );
        let what = format!("{words} of stage `{name}`");
        let reason = reason(&what, measured, "a part of it is the target's", MORE_GENERATOR);
        Reason { figure: Some(metric.name().to_owned()), ..reason }
    })
}

/// Too many planned requests that the generator did not send while their stage lasted.
fn missed(stage: &Group) -> Option<Reason> {
    let name = stage.stage.as_deref().unwrap_or_default();
    let counters = &stage.counters;
    let (planned, missed) = (counters.arrivals_planned, counters.arrivals_late_by_generator);
    let share = missed as f64 / planned.max(1) as f64;
    (share > MISSED_SHARE).then(|| {
        let measured = format!(
            "{missed} of {planned} planned requests ({}) were not sent in time for it",
            percent(share)
        );
        let reason =
            reason(&format!("the rate of stage `{name}`"), measured, "1 %", MORE_GENERATOR);
        Reason { figure: Some("achieved_rate".to_owned()), ..reason }
    })
}
