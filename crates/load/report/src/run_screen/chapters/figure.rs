//! The limits of the figures in tables: what the generator may have added, what requests without an
//! end leave open.

use plimsoll_metrics::{DistributionSummary, Group, Metric, QUANTILES, Refusal};

use super::Labelled;
use crate::format;
use crate::screen::Chapter;

/// Explains the marks, if any is shown.
pub(super) fn footnotes<'a>(groups: impl Iterator<Item = &'a Group> + Clone) -> Vec<&'static str> {
    let times = groups.clone().flat_map(|group| group.distributions.values());
    let of_times = times.flat_map(|times| times.refused.values());
    let reasons = of_times.chain(groups.flat_map(|group| group.refused_rates.values()));
    let reasons: Vec<_> = reasons.copied().collect();
    let notes = [
        (Refusal::Generator, "!: measurement error above 5 %, listed below its table."),
        (Refusal::Censored, "?: requests without an end may make it longer."),
    ];
    notes.iter().filter(|(why, _)| reasons.contains(why)).map(|(_, note)| *note).collect()
}

/// Lists measurement errors: for each marked figure, and for the main times from 1 %.
pub(super) fn add_bounds(chapter: &mut Chapter, groups: &[Labelled<'_>]) {
    let mut lines = Vec::new();
    for (label, group) in groups {
        let shown = super::times::SHOWN.into_iter();
        let metrics = shown.filter_map(|metric| Some((metric, group.distribution(metric)?)));
        let parts: Vec<_> =
            metrics.filter_map(|(metric, times)| notable_bounds(metric, times)).collect();
        if !parts.is_empty() {
            lines.push(format!("{label}: {}.", parts.join("; ")));
        }
    }
    if !lines.is_empty() {
        chapter.text("Measurement error, at most:");
        chapter.texts(lines);
    }
}

/// The times of which a part that is too small for a mark is said, too.
const MAIN: [Metric; 4] = [Metric::ResponseTime, Metric::ServiceTime, Metric::Ttft, Metric::Itl];

/// The figures to which the generator may have added much, in the order of the table.
fn notable_bounds(metric: Metric, times: &DistributionSummary) -> Option<String> {
    let quantiles = QUANTILES.iter().filter_map(|q| Some((q.label, times.figure(q)?)));
    let all = std::iter::once(("mean", times.mean_figure()))
        .chain(quantiles)
        .chain([("max", times.max_figure())]);
    let notable = all.filter(|(label, figure)| {
        let is_main = MAIN.contains(&metric) && !["mean", "max"].contains(label);
        figure.refused == Some(Refusal::Generator) || (is_main && figure.has_notable_bound())
    });
    let figures: Vec<_> =
        notable.map(|(label, f)| format!("{label} {}", format::time(f.bound))).collect();
    (!figures.is_empty()).then(|| format!("{} {}", metric.title(), figures.join(", ")))
}
