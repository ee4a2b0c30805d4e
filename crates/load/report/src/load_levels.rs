//! What several levels of load tell: whether the median of whole requests grows with the load.

use plimsoll_metrics::{
    DistributionSummary, Group, LoadModel, Metric, QUANTILES, Quantile, RunSummary, StageInfo,
};

use crate::format;

/// The highest load is at least this many times the lowest.
const RISE: f64 = 2.0;
/// A median that grows by at most this share has not grown.
const FLAT: f64 = 0.1;
/// With a larger share of requests without a good answer, the times are those of the rest.
const FAILED: f64 = 0.01;

/// A measured stage with its load.
struct Level<'r> {
    info: &'r StageInfo,
    group: &'r Group,
    /// Virtual users, or requests per second.
    load: f64,
    median: Limits,
}

/// A median, and where it lies: its 95 % interval, less what the generator may have added.
#[derive(Clone, Copy)]
struct Limits {
    value: f64,
    low: f64,
    high: f64,
}

/// Whether the median grows with the load, with the limits of that; `None` where the stages are no
/// levels of one load, or have no intervals.
pub(crate) fn sentence(summary: &RunSummary) -> Option<String> {
    let metric = summary.metadata.headline_time();
    let stages = summary.metadata.stages.iter().zip(&summary.results.by_stage);
    let measured = stages.filter(|(info, _)| !info.warmup);
    let levels: Option<Vec<Level<'_>>> =
        measured.map(|(info, group)| level(info, group, metric)).collect();
    let mut levels = levels?;
    levels.sort_by(|one, other| one.load.total_cmp(&other.load));
    let (low, high) = (levels.first()?, levels.last()?);
    let alike = levels.iter().all(|level| level.info.model == low.info.model);
    if !alike || high.load < RISE * low.load {
        return None;
    }
    let failed = levels.iter().map(|level| 1.0 - level.group.counters.ok_share().unwrap_or(0.0));
    let failed = failed.fold(0.0, f64::max);
    let (least, most) = growth(low.median, high.median);
    // Every level must keep the limit: a hump between the ends is growth, too.
    let flat = levels.iter().all(|level| growth(low.median, level.median).1 <= FLAT);
    let conclusion = if failed > FAILED {
        format!("no conclusion, because up to {} of the requests failed", format::percent(failed))
    } else if flat {
        format!("flat: no penalty of concurrency at the median up to {}", shown(high))
    } else if least > FLAT {
        "it grows with the load".to_owned()
    } else {
        format!("too little data to say whether it grows by more than {:.0} %", FLAT * 100.0)
    };
    Some(format!(
        "Median {} over a rising load: {} with {}, {} with {}, a change of {} to {} (95 %): \
         {conclusion}.{}",
        metric.title(),
        format::time(low.median.value),
        shown(low),
        format::time(high.median.value),
        shown(high),
        change(least),
        change(most),
        tail(low, high, metric)
    ))
}

fn level<'r>(info: &'r StageInfo, group: &'r Group, metric: Metric) -> Option<Level<'r>> {
    let planned = group.rates.planned_rate_per_s;
    let load = info.users.or(planned).filter(|load| *load > 0.0)?;
    Some(Level { info, group, load, median: limits(group.distribution(metric)?)? })
}

fn limits(times: &DistributionSummary) -> Option<Limits> {
    let median = &QUANTILES[0];
    let (figure, interval) = (times.figure(median)?, times.interval(median)?);
    let low = (interval.low - figure.bound).max(0.0);
    Some(Limits { value: figure.value, low, high: interval.high })
}

/// How much a median is above another, as a share: at least and at most.
fn growth(from: Limits, to: Limits) -> (f64, f64) {
    (
        to.low / from.high.max(f64::MIN_POSITIVE) - 1.0,
        to.high / from.low.max(f64::MIN_POSITIVE) - 1.0,
    )
}

/// `-3 %`, `+12 %`.
fn change(share: f64) -> String {
    if share < 0.0 {
        format!("-{}", format::percent(-share))
    } else {
        format!("+{}", format::percent(share))
    }
}

/// `32 users`, `200/s`.
fn shown(level: &Level<'_>) -> String {
    match level.info.model {
        LoadModel::Closed => format!("{} users", number(level.load)),
        LoadModel::Open => format!("{}/s", number(level.load)),
    }
}

/// `32`, `0.25`: a whole number has no decimals.
fn number(load: f64) -> String {
    if load.fract() == 0.0 { format::groups(&format!("{load:.0}")) } else { format::digits(load) }
}

/// What the median does not say: the tail, as far as both levels have the same percentile.
fn tail(low: &Level<'_>, high: &Level<'_>, metric: Metric) -> String {
    let of = |level: &Level<'_>, quantile: &Quantile| {
        level.group.distribution(metric)?.figure(quantile)?.sound()
    };
    let rarest = QUANTILES[1..4].iter().rev();
    let both = rarest
        .filter_map(|quantile| Some((quantile.label, of(low, quantile)?, of(high, quantile)?)));
    let found = both.into_iter().next();
    found.map_or_else(String::new, |(label, from, to): (&str, f64, f64)| {
        format!(" {label}: {} to {}.", format::time(from), format::time(to))
    })
}
