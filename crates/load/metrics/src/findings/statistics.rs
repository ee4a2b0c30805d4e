//! 6xx: figures that too few responses leave open.

use plimsoll_rules::Finding;
use plimsoll_rules::number::{count, digits};
use plimsoll_stats::samples_needed;

use super::load::is_closed;
use super::{measured, stage_name};
use crate::bounded_figure::Refusal;
use crate::distribution::QUANTILES;
use crate::results::{Group, LimitedFigure};
use crate::run_metadata::RunEnd;
use crate::summary::RunSummary;

/// Half of the interval of a rate, as a share of it, that is named.
const HALF_WIDTH: f64 = 0.1;

pub(super) fn findings(summary: &RunSummary) -> Vec<Finding> {
    let too_few = too_few(summary);
    let uncertain: Vec<_> =
        measured(summary).filter_map(|stage| uncertain_rate(summary, stage)).collect();
    // One advice for all: the length that each of them needs.
    let needed = too_few.iter().chain(&uncertain).map(|(_, needed)| *needed).fold(0.0, f64::max);
    let few = too_few.into_iter().map(|(finding, _)| advised(summary, finding, needed));
    let uncertain = uncertain.into_iter().take(1);
    let uncertain = uncertain.map(|(finding, _)| advised(summary, finding, needed));
    few.chain(open_percentile(summary)).chain(uncertain).collect()
}

/// Adds the length of a stage, unless the load is a number of requests or a trace, or was cut off.
fn advised(summary: &RunSummary, finding: Finding, needed: f64) -> Finding {
    let is_trace = summary.metadata.stages.iter().any(|stage| stage.name == "trace");
    let is_whole = summary.metadata.run.ended != RunEnd::Interrupted;
    let by_count = finding.values.contains_key("requests");
    finding.with_some("time", (!by_count && !is_trace && is_whole).then(|| format!("{needed}s")))
}

/// A stage has too few responses for a percentile without its wide interval; with the seconds that
/// give enough.
fn too_few(summary: &RunSummary) -> Option<(Finding, f64)> {
    let metric = summary.metadata.headline_time();
    let times =
        measured(summary).filter_map(|stage| Some((stage, stage.distribution(metric)?.count)));
    let (stage, n) = times.min_by_key(|(_, n)| *n)?;
    let needed = samples_needed(QUANTILES[0].q);
    let by_count = summary.metadata.max_requests.is_some();
    // Those of the first moment count to no rate.
    let known = stage.rates.throughput_per_s.map_or(n as f64, |rate| rate * stage.duration_s);
    let known = if known > 0.0 { known.min(n as f64) } else { n as f64 };
    let finding = Finding::new(601)
        .with("figure", QUANTILES[0].label)
        .with("needed", count(needed))
        .with("n", count(n))
        .with("stage", stage_name(stage))
        .with_some("requests", by_count.then_some(needed));
    (n < needed).then(|| (finding, (stage.duration_s * needed as f64 / known).ceil()))
}

/// A headline figure that unfinished requests leave open.
fn open_percentile(summary: &RunSummary) -> Option<Finding> {
    let headline = summary.metadata.headline_time();
    let limited = summary.results.limited_figures();
    let LimitedFigure { title, label, .. } = limited.iter().find(|found| {
        found.why == Refusal::Censored
            && found.title == headline.title()
            && matches!(found.label, "p50" | "p90" | "p95" | "p99")
    })?;
    let counters = &summary.results.total.counters;
    let n = counters.in_flight + counters.timed_out + counters.never_sent;
    let is_whole = summary.metadata.run.ended != RunEnd::Interrupted;
    let drain = is_whole.then_some("`drain`");
    let finding = Finding::new(602).with("n", count(n)).with_some("drain", drain);
    Some(finding.with("figure", format!("{title} {label}")))
}

/// A rate with a wide interval; with the seconds that make it narrow.
fn uncertain_rate(summary: &RunSummary, stage: &Group) -> Option<(Finding, f64)> {
    let rate = stage.named_rate("throughput")?;
    let [low, high] = rate.interval?;
    let half = (rate.value - low).max(high - rate.value) / rate.value.max(f64::MIN_POSITIVE);
    let finding = Finding::new(603)
        .with("rate", digits(rate.value))
        .with("low", digits(low))
        .with("high", digits(high))
        .with("stage", stage_name(stage));
    // Chance falls with the root of the length, the error at its edges with the length.
    let order = if is_closed(summary, stage) { 2 } else { 1 };
    let needed = (stage.duration_s * (half / HALF_WIDTH).powi(order)).ceil();
    (half > HALF_WIDTH && rate.value > 0.0).then_some((finding, needed))
}
