//! Judges thresholds.

use std::cmp::Ordering;

use plimsoll_stats::{samples_needed, samples_that_agree};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Aggregate, Comparison, Threshold};
use crate::bounded_figure::{Bias, BoundedFigure, Refusal};
use crate::catalog::{Figure, Metric, Unit};
use crate::error::MetricsError;
use crate::quantile::QUANTILES;
use crate::results::{DistributionSummary, Group, Results};
use crate::scope::Scope;

/// The judgement on a threshold. It has three states, because missing data is never a pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", content = "why", rename_all = "snake_case")]
pub enum Judgement {
    /// The bound was kept.
    Pass,
    /// It was broken.
    Fail,
    /// It could not be judged, for this reason.
    Inconclusive(String),
}

/// A threshold with its judgement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThresholdResult {
    /// The metric, with its scope, as written.
    pub metric: String,
    /// The bound, as written.
    pub expression: String,
    /// The measured value, times in milliseconds; `null` where there is none. A percentile that was
    /// judged without one has too few values, all of them on the same side of the bound, or a lower
    /// percentile breaks it.
    pub measured: Option<f64>,
    /// How much of it the generator may have added (of a rate: held back), where it is at least
    /// 1 % of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator: Option<f64>,
    /// Its unit.
    pub unit: Unit,
    /// The judgement.
    pub judgement: Judgement,
}

impl ThresholdResult {
    /// What a judgement without a measured value rests on: too few values for the percentile, all
    /// of them on one side of the bound, or a lower percentile beyond it.
    pub const fn of_every_value(&self) -> Option<&'static str> {
        match (&self.judgement, self.measured) {
            (Judgement::Pass, None) => Some("every value keeps it"),
            (Judgement::Fail, None) => Some("too many values break it"),
            _ => None,
        }
    }
}

impl Threshold {
    /// Judges a run.
    pub fn judge(&self, results: &Results) -> ThresholdResult {
        let figure = self.measure(results);
        let judgement = match &figure {
            Err(why) => {
                let few = self.judge_every_value(results);
                let few = few.or_else(|| self.broken_by_a_lower_percentile(results));
                few.unwrap_or_else(|| Judgement::Inconclusive(why.clone()))
            }
            Ok(figure) => {
                let is_estimated = self.rests_on_estimated_tokens(results);
                let [low, high] = figure.limits(self.bias());
                let low = if is_estimated { 0.0 } else { low };
                match [low, high].map(|value| self.keeps(value)) {
                    [true, true] => Judgement::Pass,
                    [false, false] => Judgement::Fail,
                    _ if is_estimated => Judgement::Inconclusive(self.too_few_tokens(figure)),
                    _ => Judgement::Inconclusive(self.undecided(figure)),
                }
            }
        };
        ThresholdResult {
            metric: self.metric.clone(),
            expression: self.expression.clone(),
            measured: figure.as_ref().ok().map(|figure| figure.value),
            generator: figure.ok().filter(BoundedFigure::has_notable_bound).map(|f| f.bound),
            unit: self.unit(),
            judgement,
        }
    }

    /// The times of a percentile, and its quantile; `None` for other figures.
    fn percentile<'r>(&self, results: &'r Results) -> Option<(&'r DistributionSummary, f64)> {
        let (Figure::Distribution(metric), Aggregate::Quantile(q)) = (self.figure, self.aggregate)
        else {
            return None;
        };
        Some((results.group(&self.scope)?.distribution(metric)?, q))
    }

    /// The judgement of a percentile for which there are too few values, where every value lies on
    /// the same side of the bound ([`samples_that_agree`]).
    fn judge_every_value(&self, results: &Results) -> Option<Judgement> {
        let (times, q) = self.percentile(results)?;
        let [low, _] = times.min_figure().limits(self.bias());
        let [_, high] = times.max_figure().limits(self.bias());
        let low = if self.rests_on_estimated_tokens(results) { 0.0 } else { low };
        let below = match [low, high].map(|value| value.total_cmp(&self.bound)) {
            [_, Ordering::Less] => true,
            [Ordering::Greater, _] => false,
            _ => return None,
        };
        let share = if below { q } else { 1.0 - q };
        if times.count < samples_that_agree(share) {
            return None;
        }
        Some(if self.keeps(low) { Judgement::Pass } else { Judgement::Fail })
    }

    /// That a percentile breaks an upper bound for which there are too few values, where a lower
    /// one does for which there are enough: it is not less.
    fn broken_by_a_lower_percentile(&self, results: &Results) -> Option<Judgement> {
        let (times, q) = self.percentile(results)?;
        let is_upper = matches!(self.comparison, Comparison::Less | Comparison::AtMost);
        if !is_upper || self.rests_on_estimated_tokens(results) {
            return None;
        }
        let mut lower = QUANTILES.iter().filter(|quantile| quantile.q < q);
        lower
            .any(|quantile| {
                let figure = times.figure(quantile);
                figure.is_some_and(|figure| !self.keeps(figure.limits(self.bias())[0]))
            })
            .then_some(Judgement::Fail)
    }

    /// Whether a value, times in milliseconds, keeps the bound.
    pub const fn keeps(&self, value: f64) -> bool {
        self.comparison.holds(value, self.bound)
    }

    /// What the generator can do to the figure.
    pub(super) const fn bias(&self) -> Bias {
        match self.figure {
            Figure::Distribution(metric) if metric.is_gap() => Bias::Both,
            Figure::Distribution(_) => Bias::Adds,
            _ => Bias::Takes,
        }
    }

    /// Whether the figure is a time per token of answers whose content events were counted: they
    /// may hold several tokens each, so that the time may be shorter.
    fn rests_on_estimated_tokens(&self, results: &Results) -> bool {
        let Figure::Distribution(metric) = self.figure else { return false };
        results.group(&self.scope).is_some_and(|group| group.has_estimated_tokens(metric))
    }

    fn too_few_tokens(&self, figure: &BoundedFigure) -> String {
        let value = self.unit().value_words(figure.value);
        format!(
            "{value} a content event; the target reports no usage, and an event may hold several tokens"
        )
    }

    /// Why the limits of a figure do not decide.
    pub(super) fn undecided(&self, figure: &BoundedFigure) -> String {
        let value = self.unit().value_words(figure.value);
        let bound = self.unit().value_words(figure.bound);
        if let Some(ends) = figure.interval.filter(|_| self.bias() == Bias::Takes) {
            let [low, high] = ends.map(|end| self.unit().value_words(end));
            return format!("{value}, 95 % interval {low} to {high}: too few responses to decide");
        }
        match (figure.refused, self.bias()) {
            (Some(Refusal::Censored), _) => {
                format!("{value} of the requests that ended; requests without an end may be longer")
            }
            (_, Bias::Takes) => {
                format!("{value}; without the generator up to {bound} more, which decides")
            }
            (_, Bias::Adds) => format!("{value}, up to {bound} ours, which decides"),
            (_, bias @ Bias::Both) => {
                let [low, high] = figure.limits(bias).map(|end| self.unit().value_words(end));
                format!("{value}, {low} to {high} without what may be ours, which decides")
            }
        }
    }

    /// The bounded value, or why there is none.
    pub(super) fn measure(&self, results: &Results) -> Result<BoundedFigure, String> {
        measure(self.figure, self.aggregate, &self.scope, results)
    }
}

/// One number of a part of a run with its bound, or why there is none.
pub(super) fn measure(
    figure: Figure,
    aggregate: Aggregate,
    scope: &Scope,
    results: &Results,
) -> Result<BoundedFigure, String> {
    let group = results.group(scope).ok_or_else(|| "no such group in the run".to_owned())?;
    if group.counters.scheduled == 0 {
        return Err("nothing was scheduled".to_owned());
    }
    match figure {
        Figure::Distribution(metric) => measure_times(group, metric, aggregate),
        Figure::Counter(counter) => Ok(BoundedFigure::exact((counter.of)(&group.counters) as f64)),
        Figure::Rate(rate) => group.rate(rate).ok_or_else(|| match rate.unit {
            Unit::Share => "there were no requests to take a share of".to_owned(),
            _ => "the stage had no duration".to_owned(),
        }),
    }
}

/// Why a distribution has no value.
fn without_value(group: &Group, metric: Metric) -> String {
    let of = metric.population().words();
    if metric.is_of_streams() && group.streams.is_none() && group.counters.completed > 0 {
        return format!("no value ({of} requests), as no answer was a stream: --set stream=true");
    }
    format!("no value ({of} requests)")
}

fn measure_times(
    group: &Group,
    metric: Metric,
    aggregate: Aggregate,
) -> Result<BoundedFigure, String> {
    let times = group.distribution(metric).ok_or_else(|| without_value(group, metric))?;
    match aggregate {
        Aggregate::Quantile(q) => quantile(times, q),
        Aggregate::Mean => Ok(times.mean_figure()),
        Aggregate::Min => Ok(times.min_figure()),
        Aggregate::Max => Ok(times.max_figure()),
        Aggregate::Count | Aggregate::Value => Ok(BoundedFigure::exact(times.count as f64)),
    }
}

fn quantile(times: &DistributionSummary, q: f64) -> Result<BoundedFigure, String> {
    let needed = samples_needed(q);
    times.figure_at(q).map_err(|error: MetricsError| error.to_string())?.ok_or_else(|| {
        format!("{} samples are too few for this percentile, which needs {needed}", times.count)
    })
}
