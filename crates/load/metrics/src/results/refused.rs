//! The figures of a run that must not be used.

use super::{Group, Results};
use crate::bounded_figure::{BoundedFigure, Refusal};
use crate::catalog::{Metric, RATES};
use crate::quantile::QUANTILES;

/// A figure that must not be used.
#[derive(Clone, Debug, PartialEq)]
pub struct RefusedFigure {
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

/// The rates that are counted as figures, and their titles.
const COUNTED_RATES: [(&str, &str); 2] =
    [("achieved_rate", "sent/s"), ("throughput", "completed/s")];

impl Results {
    /// The figures of the measured stages: how many there are, and those of them that must not be
    /// used.
    pub fn refused_figures(&self) -> (usize, Vec<RefusedFigure>) {
        let (mut count, mut refused) = (0, Vec::new());
        for stage in self.by_stage.iter().filter(|stage| !stage.warmup) {
            let name = stage.stage.as_deref().unwrap_or_default();
            for (title, label, figure) in figures(stage) {
                count += 1;
                if let Some(why) = figure.refused {
                    let stage = name.to_owned();
                    refused.push(RefusedFigure { stage, title, label, figure, why });
                }
            }
        }
        (count, refused)
    }
}

/// Every printed figure of a group that has a bound: what it measures, which figure, its value.
fn figures(group: &Group) -> Vec<(&'static str, &'static str, BoundedFigure)> {
    let mut figures = Vec::new();
    for metric in Metric::ALL.into_iter().filter(|metric| metric.is_bounded()) {
        let Some(times) = group.distribution(metric) else { continue };
        let title = metric.title();
        figures.push((title, "mean", times.mean_figure()));
        for quantile in &QUANTILES {
            figures.extend(times.figure(quantile).map(|figure| (title, quantile.label, figure)));
        }
        figures.push((title, "max", times.max_figure()));
    }
    for (name, title) in COUNTED_RATES {
        let rate = RATES.iter().find(|rate| rate.name == name);
        figures.extend(rate.and_then(|rate| group.rate(rate)).map(|figure| (title, "", figure)));
    }
    figures
}
