//! What several stages and targets tell: how times grow with the load, and how much of that the
//! provider adds.

use plimsoll_metrics::{Counters, Group, Metric, QUANTILES, RunSummary};
use plimsoll_report::format::{percent, time};

use crate::load::{MISSED, Stage, held};
use crate::result::State;

/// The highest load is at least this many times the lowest.
const LEVELS: f64 = 2.0;
/// A time that grows by less has not grown.
const FLAT: f64 = 1.1;
/// A time that grows by more has (`interpretation` in `plimsoll-metrics` calls it rising).
const GROWN: f64 = 1.2;
/// The provider limits the load if this share of the growth is in it, and does not if less than the
/// rest is: between the two both grow, and neither alone is the cause.
const IN_PROVIDER: f64 = 0.8;

/// How the median service time goes with the load, over the measured stages.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Growth {
    /// It does not grow, although the load does: nothing queues.
    Flat(String),
    /// It grows.
    Grows(String),
    /// Not known: one level, or times that must not be used.
    Unknown,
}

/// The stages with the lowest and the highest load.
fn levels<'s, 'r>(stages: &'s [Stage<'r>]) -> Option<(&'s Stage<'r>, &'s Stage<'r>)> {
    let alike = stages.iter().all(|stage| stage.info.model == stages[0].info.model);
    let low = stages.iter().min_by(|one, other| one.asked().total_cmp(&other.asked()))?;
    let high = stages.iter().max_by(|one, other| one.asked().total_cmp(&other.asked()))?;
    (alike && high.asked() >= LEVELS * low.asked()).then_some((low, high))
}

/// How times go with the load.
pub(crate) fn growth(stages: &[Stage<'_>]) -> Growth {
    let times =
        levels(stages).and_then(|(low, high)| Some((median(low.group)?, median(high.group)?)));
    let Some((low, high)) = times else { return Growth::Unknown };
    let words = format!("from {} to {}", time(low), time(high));
    match high / low.max(f64::MIN_POSITIVE) {
        ratio if ratio < FLAT => Growth::Flat(words),
        ratio if ratio > GROWN => Growth::Grows(words),
        _ => Growth::Unknown,
    }
}

fn median(group: &Group) -> Option<f64> {
    group.distribution(Metric::ServiceTime)?.figure(&QUANTILES[0])?.sound()
}

/// What the target without a gateway tells of the provider; `None` without such a target.
pub(crate) fn direct(
    summary: &RunSummary,
    stages: &[Stage<'_>],
    stage: &Stage<'_>,
) -> Option<(State, String)> {
    let targets = &summary.metadata.targets;
    let gateway = targets.iter().find(|target| !target.direct)?.name.as_str();
    let direct = targets.iter().find(|target| target.direct)?.name.as_str();
    if let Some((share, words)) = growth_share(summary, stages, gateway, direct) {
        if share > IN_PROVIDER {
            return Some((State::Saturated, words));
        }
        if share < 1.0 - IN_PROVIDER {
            return Some((State::Clear, words));
        }
    }
    let [missed, direct] = [gateway, direct].map(|name| missed(summary, stage, name));
    let (missed, direct) = (missed?, direct?);
    if missed <= MISSED {
        return None;
    }
    let same = "at the same rate the direct target";
    Some(if direct > MISSED {
        (State::Saturated, format!("{same} misses too: {}", percent(direct)))
    } else {
        (State::Clear, format!("{same} keeps up"))
    })
}

/// Share of the arrivals to a target that found no slot in flight; `None` in closed stages.
fn missed(summary: &RunSummary, stage: &Stage<'_>, target: &str) -> Option<f64> {
    let mut all = Counters::default();
    cells(summary, stage, target).for_each(|cell| all.merge(&cell.counters));
    held(&all)
}

/// The share of the growth of the mean response time that the direct target has too.
fn growth_share(
    summary: &RunSummary,
    stages: &[Stage<'_>],
    gateway: &str,
    direct: &str,
) -> Option<(f64, String)> {
    let (low, high) = levels(stages)?;
    let ((from, _), (to, _)) = (mean(summary, low, gateway)?, mean(summary, high, gateway)?);
    let (direct_from, _) = mean(summary, low, direct)?;
    let (direct_to, _) = mean(summary, high, direct)?;
    if to < GROWN * from {
        return None;
    }
    let share = (direct_to - direct_from) / (to - from);
    let grown = format!("times grow from {} to {}", time(from), time(to));
    let part = percent(share.clamp(0.0, 1.0));
    Some((share, format!("{grown} with the load, {part} of it without the gateway too")))
}

/// The mean response time of the requests to a target in a stage, in milliseconds, and their
/// number.
pub(crate) fn mean(summary: &RunSummary, stage: &Stage<'_>, target: &str) -> Option<(f64, u64)> {
    let mut sum = (0.0, 0);
    for cell in cells(summary, stage, target) {
        if let Some(times) = cell.distribution(Metric::ResponseTime) {
            let mean = times.mean_figure().sound()?;
            sum = (sum.0 + mean * times.count as f64, sum.1 + times.count);
        }
    }
    (sum.1 > 0).then(|| (sum.0 / sum.1 as f64, sum.1))
}

fn cells<'s>(
    summary: &'s RunSummary,
    stage: &Stage<'_>,
    target: &str,
) -> impl Iterator<Item = &'s Group> {
    summary
        .results
        .cells
        .iter()
        .filter(move |cell: &&Group| {
            cell.stage.as_deref() == Some(stage.info.name.as_str())
                && cell.target.as_deref() == Some(target)
        })
        .collect::<Vec<_>>()
        .into_iter()
}
