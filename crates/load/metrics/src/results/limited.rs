//! The figures of a run whose value alone carries no statement.

use super::{Group, Results};
use crate::bounded_figure::{BoundedFigure, REFUSED_SHARE, RESOLUTION_MS, Refusal};
use crate::catalog::{Metric, RATES};
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

/// A figure with its names.
struct NamedFigure {
    title: &'static str,
    label: &'static str,
    figure: BoundedFigure,
}

impl NamedFigure {
    /// The largest value of the requests that ended is always what it is.
    fn limited(self, stage: &str) -> Option<LimitedFigure> {
        let Self { title, label, figure } = self;
        let why = figure.refused?;
        let of_ended = label == "max" && why == Refusal::Censored;
        (!of_ended).then(|| LimitedFigure { stage: stage.to_owned(), title, label, figure, why })
    }

    fn of_generator(self, stage: &str) -> Option<LimitedFigure> {
        let Self { title, label, figure } = self;
        let why = Refusal::Generator;
        let allowed = (figure.value * REFUSED_SHARE).max(RESOLUTION_MS);
        (figure.refused == Some(why) || figure.bound > allowed).then(|| LimitedFigure {
            stage: stage.to_owned(),
            title,
            label,
            figure,
            why,
        })
    }
}

/// The rates that are counted as figures, and their titles.
const COUNTED_RATES: [(&str, &str); 2] =
    [("achieved_rate", "sent/s"), ("throughput", "completed/s")];

impl Results {
    /// The figures of the measured stages whose value alone carries no statement. The largest value
    /// of the requests that ended is always what it is, and left out.
    pub fn limited_figures(&self) -> Vec<LimitedFigure> {
        let mut limited = Vec::new();
        for stage in self.by_stage.iter().filter(|stage| !stage.warmup) {
            let name = stage.stage.as_deref().unwrap_or_default();
            limited.extend(figures(stage).into_iter().filter_map(|figure| figure.limited(name)));
        }
        limited
    }

    /// The figures of the measured stages of which more than 5 % may be the generator's, also where
    /// their own interval is wider still.
    pub fn figures_of_generator(&self) -> Vec<LimitedFigure> {
        let mut limited = Vec::new();
        for stage in self.by_stage.iter().filter(|stage| !stage.warmup) {
            let name = stage.stage.as_deref().unwrap_or_default();
            let own = figures(stage).into_iter().filter_map(|figure| figure.of_generator(name));
            limited.extend(own);
        }
        limited
    }
}

/// Every printed figure of a group that has a bound.
fn figures(group: &Group) -> Vec<NamedFigure> {
    let mut figures = Vec::new();
    for metric in Metric::ALL.into_iter().filter(|metric| metric.is_bounded()) {
        let Some(times) = group.distribution(metric) else { continue };
        let title = metric.title();
        figures.push(NamedFigure { title, label: "mean", figure: times.mean_figure() });
        for quantile in &QUANTILES {
            figures.extend(times.figure(quantile).map(|figure| NamedFigure {
                title,
                label: quantile.label,
                figure,
            }));
        }
        figures.push(NamedFigure { title, label: "max", figure: times.max_figure() });
    }
    for (name, title) in COUNTED_RATES {
        let rate = RATES.iter().find(|rate| rate.name == name);
        let figure = rate.and_then(|rate| group.rate(rate));
        figures.extend(figure.map(|figure| NamedFigure { title, label: "", figure }));
    }
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
            let figure = NamedFigure { title: "response time", label: "mean", figure };
            assert_eq!(figure.of_generator("8:10s").is_some(), named, "{value} {bound}");
        }
    }
}
