//! The headline figures of the measured stages: a run whose headline the generator falsified is
//! invalid.

use super::bounds::{percent, reason};
use super::{Evidence, Reason};
use crate::bounded_figure::{BoundedFigure, Refusal};
use crate::catalog::{Metric, RATES, Unit};
use crate::quantile::QUANTILES;
use crate::results::{Group, Results};

const BOUND: &str = "5 % of it, half of its 95 % interval, or 50us";
const MORE_GENERATOR: &str = "give the generator more or idler cores, lower the load, or divide it over several \
                              processes with --shard";

/// Closed stages: time of the generator in each cycle, in milliseconds, that is its ordinary work.
/// A user of a fast target is bounded by that; more is a pause or an overload.
const ORDINARY_WORK_MS: f64 = 1.0;

/// The headline figures that the generator falsified, of every stage but warm-up.
pub(super) fn refused(results: &Results, evidence: &Evidence, causes: &[String]) -> Vec<Reason> {
    let stages = results.by_stage.iter().filter(|stage| !stage.warmup);
    let mut reasons: Vec<_> = stages.flat_map(|stage| of_stage(stage, evidence)).collect();
    for reason in &mut reasons {
        reason.causes = causes.to_vec();
    }
    reasons
}

fn of_stage(stage: &Group, evidence: &Evidence) -> Vec<Reason> {
    let name = stage.stage.as_deref().unwrap_or_default();
    let closed = evidence.closed.iter().any(|closed| closed == name);
    let median = |metric: Metric, words: &str| {
        let figure = stage.distribution(metric)?.figure(&QUANTILES[0])?;
        is_falsified(&figure).then(|| {
            let measured = format!(
                "{}, of which the generator may have added {}",
                Unit::Time.value_words(figure.value),
                Unit::Time.value_words(figure.bound)
            );
            let what = format!("{words} of stage `{name}`");
            let reason = reason(&what, measured, BOUND, MORE_GENERATOR);
            Reason { figure: Some(metric.name().to_owned()), ..reason }
        })
    };
    // A user of the closed model has no schedule: its request begins when the generator sends it.
    let median_time = if closed {
        median(Metric::ServiceTime, "the median service time")
    } else {
        median(Metric::ResponseTime, "the median response time")
    };
    let ttft = median(Metric::Ttft, "the median time to first token");
    let rate = rate(stage, name).filter(|_| !closed || works_long(stage));
    [median_time, ttft, rate].into_iter().flatten().collect()
}

/// Whether the generator's part of the cycles of a closed stage is more than its ordinary work.
fn works_long(stage: &Group) -> bool {
    stage
        .distribution(Metric::DispatchLag)
        .is_some_and(|lag| lag.mean_figure().value > ORDINARY_WORK_MS)
}

fn rate(stage: &Group, name: &str) -> Option<Reason> {
    let spec = RATES.iter().find(|rate| rate.name == "achieved_rate")?;
    let figure = stage.rate(spec).filter(is_falsified)?;
    let rate_unit = spec.unit;
    let share = percent(figure.bound / figure.value.max(f64::MIN_POSITIVE));
    let measured = format!(
        "{}; without the generator it may have been {share} more",
        rate_unit.value_words(figure.value)
    );
    let what = format!("the rate of stage `{name}`");
    let bound = "5 % of it in closed stages, 1 % in open ones";
    let reason = reason(&what, measured, bound, MORE_GENERATOR);
    Some(Reason { figure: Some(spec.name.to_owned()), ..reason })
}

fn is_falsified(figure: &BoundedFigure) -> bool {
    figure.refused == Some(Refusal::Generator)
}
