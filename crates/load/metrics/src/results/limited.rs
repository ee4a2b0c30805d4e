//! The figures of a run whose value alone carries no statement.

use super::{Group, Results};
use crate::bounded_figure::{BoundedFigure, REFUSED_SHARE, RESOLUTION_MS, Refusal};
use crate::catalog::Metric;
use crate::quantile::QUANTILES;

/// A figure whose value alone carries no statement: only its limits do.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitedFigure {
    /// Its stage.
    pub stage: String,
    /// What it measures, like `TTFT`.
    pub title: &'static str,
    /// Which figure of that, like `p99`; empty for a rate.
    pub label: &'static str,
    /// The figure; it has a reason.
    pub figure: BoundedFigure,
    /// The reason.
    pub why: Refusal,
}

/// A printed figure: what it measures, which figure of that, and its value.
type Printed = (&'static str, &'static str, BoundedFigure);

/// The rates that are counted as figures, and their titles.
const COUNTED_RATES: [(&str, &str); 2] =
    [("achieved_rate", "sent/s"), ("throughput", "completed/s")];

impl Results {
    /// The figures of the measured stages whose value alone carries no statement. The largest value
    /// of the requests that ended is always what it is, and left out.
    pub fn limited_figures(&self) -> Vec<LimitedFigure> {
        self.limited(|label, figure| {
            figure.refused.filter(|why| label != "max" || *why != Refusal::Censored)
        })
    }

    /// The figures of the measured stages of which more than 5 % may be the generator's, also where
    /// their own interval is wider still.
    pub fn figures_of_generator(&self) -> Vec<LimitedFigure> {
        self.limited(|_, figure| is_of_generator(figure).then_some(Refusal::Generator))
    }

    fn limited(
        &self,
        reason: impl Fn(&str, &BoundedFigure) -> Option<Refusal>,
    ) -> Vec<LimitedFigure> {
        let mut limited = Vec::new();
        for stage in self.by_stage.iter().filter(|stage| !stage.warmup) {
            for (title, label, figure) in figures(stage) {
                let stage = stage.stage.clone().unwrap_or_default();
                let why = reason(label, &figure);
                limited.extend(why.map(|why| LimitedFigure { stage, title, label, figure, why }));
            }
        }
        limited
    }
}

fn is_of_generator(figure: &BoundedFigure) -> bool {
    let allowed = (figure.value * REFUSED_SHARE).max(RESOLUTION_MS);
    figure.refused == Some(Refusal::Generator) || figure.bound > allowed
}

/// Every printed figure of a group that has a bound.
fn figures(group: &Group) -> Vec<Printed> {
    let mut figures = Vec::new();
    for metric in Metric::ALL.into_iter().filter(|metric| metric.is_bounded()) {
        let Some(times) = group.distribution(metric) else { continue };
        let title = metric.title();
        figures.push((title, "mean", times.mean_figure()));
        let quantiles = QUANTILES.iter();
        figures.extend(quantiles.filter_map(|q| Some((title, q.label, times.figure(q)?))));
        figures.push((title, "max", times.max_figure()));
    }
    let rates = COUNTED_RATES.iter();
    figures.extend(rates.filter_map(|(name, title)| Some((*title, "", group.named_rate(name)?))));
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_the_generators_is_named_although_few_values_say_less_still() {
        for (value, bound, refused, named) in [
            (1.15, 0.42, None, true),
            (1.15, 0.42, Some(Refusal::Generator), true),
            // 5 %, and less than clocks resolve.
            (10.0, 0.49, None, false),
            (0.096, 0.012, None, false),
        ] {
            let figure = BoundedFigure { value, bound, interval: None, refused };
            assert_eq!(is_of_generator(&figure), named, "{value} {bound}");
        }
    }
}
