//! The figures that limits and gates are about.

use plimsoll_stats::{samples_needed, samples_that_agree};

use super::{Aggregate, Limit};
use crate::bounded_figure::BoundedFigure;
use crate::catalog::{Figure, Metric, Unit};
use crate::error::MetricsError;
use crate::quantile::QUANTILES;
use crate::results::{DistributionSummary, Group, Results};
use crate::scope::Scope;

impl Limit {
    /// The figure, or why it is missing.
    pub(super) fn measure(&self, results: &Results) -> Result<BoundedFigure, String> {
        measure(self.figure, self.aggregate, &self.scope, results)
    }

    /// The ends of a percentile for which there are too few values: it is at least a lower
    /// percentile for which there are enough, and beyond no value if so many would rarely lie on
    /// one side of it by chance ([`samples_that_agree`]).
    pub(super) fn ends_of_few(&self, results: &Results) -> Option<[f64; 2]> {
        let (Figure::Distribution(metric), Aggregate::Quantile(q)) = (self.figure, self.aggregate)
        else {
            return None;
        };
        let times = results.group(&self.scope)?.distribution(metric)?;
        let ends = |figure: BoundedFigure| figure.limits(self.figure.bias());
        let lower = QUANTILES.iter().filter(|quantile| quantile.q < q);
        let lower = lower.filter_map(|quantile| times.figure(quantile)).map(|f| ends(f)[0]);
        let least =
            (times.count >= samples_that_agree(1.0 - q)).then(|| ends(times.min_figure())[0]);
        let most = (times.count >= samples_that_agree(q)).then(|| ends(times.max_figure())[1]);
        let low = lower.chain(least).fold(0.0, f64::max);
        Some([low, most.unwrap_or(f64::INFINITY)])
    }

    /// Whether the figure is a time per token of answers whose content events were counted: they
    /// may hold several tokens each, so that the time may be shorter.
    pub(super) fn rests_on_estimated_tokens(&self, results: &Results) -> bool {
        let Figure::Distribution(metric) = self.figure else { return false };
        results.group(&self.scope).is_some_and(|group| group.has_estimated_tokens(metric))
    }
}

/// One number of a part of a run with its bound, or why it is missing.
pub(super) fn measure(
    figure: Figure,
    aggregate: Aggregate,
    scope: &Scope,
    results: &Results,
) -> Result<BoundedFigure, String> {
    let group = results.group(scope).ok_or("no such group in the run")?;
    if group.counters.scheduled == 0 {
        return Err("nothing was scheduled".to_owned());
    }
    match figure {
        Figure::Distribution(metric) => {
            let times = group.distribution(metric).ok_or_else(|| without_value(group, metric))?;
            of_times(times, aggregate)
        }
        Figure::Counter(counter) => Ok(BoundedFigure::exact((counter.of)(&group.counters) as f64)),
        Figure::Rate(rate) => group.rate(rate).ok_or_else(|| {
            let why = match (rate.name, rate.unit) {
                ("goodput" | "good_share", _) if group.counters.goodput_judged == 0 => {
                    "the profile has no `goodput`"
                }
                (_, Unit::Share) => "there were no requests to take a share of",
                _ => "the stage had no duration",
            };
            why.to_owned()
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

fn of_times(times: &DistributionSummary, aggregate: Aggregate) -> Result<BoundedFigure, String> {
    match aggregate {
        Aggregate::Quantile(q) => {
            let found = times.figure_at(q).map_err(|error: MetricsError| error.to_string())?;
            found.ok_or_else(|| {
                let (count, needed) = (times.count, samples_needed(q));
                format!("{count} samples are too few for this percentile, which needs {needed}")
            })
        }
        Aggregate::Mean => Ok(times.mean_figure()),
        Aggregate::Min => Ok(times.min_figure()),
        Aggregate::Max => Ok(times.max_figure()),
        Aggregate::Count | Aggregate::Value => Ok(BoundedFigure::exact(times.count as f64)),
    }
}
