//! Splits the requests in flight by place with Little's law, `N = X R`. The upstream's part comes
//! from a target that is the upstream itself, or from a join with the gateway's own log.

use plimsoll_join::{Join, StageTimes, Verdict};
use plimsoll_metrics::{Group, Metric, RunSummary};

use crate::load::Stage;
use crate::result::{NamedTime, NoSplit, Part, Split, TtfbParts};

/// Allowed relative difference between the sum of the parts and the requests in flight: requests
/// that cross the ends of the stage count in only one of the two.
const TOLERANCE: f64 = 0.02;
/// Share of a stage's requests that a log must have, because the others could shift a mean as much.
const MATCHED: f64 = 0.99;

/// Splits a stage, or returns why that is impossible.
///
/// The requests in flight are an integral over time that the workers measured; the parts are rates
/// and response times of completed requests. The two differ if requests failed or never ended, or
/// if many began before the stage or ended after it: then the stage has no split.
pub(crate) fn split(
    summary: &RunSummary,
    stage: &Stage<'_>,
    join: Option<&Join>,
) -> Result<Split, NoSplit> {
    match join {
        _ if summary.metadata.targets.iter().any(|target| target.direct) => {
            by_direct(summary, stage)
        }
        Some(join) => by_join(summary, stage, join),
        None => Err(NoSplit::NoSource),
    }
}

fn part(place: impl Into<String>, in_flight: f64) -> Part {
    Part { place: place.into(), in_flight }
}

/// The split, if its parts sum to the requests that the workers counted.
fn checked(
    stage: &Stage<'_>,
    parts: Vec<Part>,
    in_upstream: f64,
    matched: Option<u64>,
) -> Result<Split, NoSplit> {
    let in_flight = stage.info.mean_in_flight.unwrap_or_default();
    let adds_up_to = parts.iter().map(|part| part.in_flight).sum::<f64>() / in_flight;
    if (adds_up_to - 1.0).abs() <= TOLERANCE {
        return Ok(Split { in_flight, parts, adds_up_to, in_upstream, matched });
    }
    Err(NoSplit::PartsDiffer)
}

/// Mean response time of the requests to a target in milliseconds, and their rate.
fn mean_and_rate(
    summary: &RunSummary,
    stage: &Stage<'_>,
    target: &str,
) -> Result<(f64, f64), NoSplit> {
    let (mut sum_ms, mut requests) = (0.0, 0.0);
    for cell in summary.results.cells.iter().filter(|cell: &&Group| {
        cell.stage.as_deref() == Some(&*stage.info.name) && cell.target.as_deref() == Some(target)
    }) {
        let Some(times) = cell.distribution(Metric::ResponseTime) else { continue };
        let mean_ms = times.mean_figure().sound().ok_or(NoSplit::DisturbedMean)?;
        sum_ms += mean_ms * times.count as f64;
        requests += times.count as f64;
    }
    let mean_ms = (requests > 0.0).then(|| sum_ms / requests).ok_or(NoSplit::NoResponse)?;
    Ok((mean_ms, requests / stage.info.duration_s))
}

fn by_direct(summary: &RunSummary, stage: &Stage<'_>) -> Result<Split, NoSplit> {
    let targets = &summary.metadata.targets;
    let (mut direct_ms, mut directly) = (0.0, 0.0);
    for target in targets.iter().filter(|target| target.direct) {
        let (mean_ms, rate) = mean_and_rate(summary, stage, &target.name)?;
        directly += rate * mean_ms / 1e3;
        direct_ms = mean_ms;
    }
    let mut parts = vec![part("upstream, direct", directly)];
    let (mut upstream, mut through) = (0.0, 0.0);
    for target in targets.iter().filter(|target| !target.direct) {
        let (name, (mean_ms, rate)) = (&target.name, mean_and_rate(summary, stage, &target.name)?);
        let own_ms = mean_ms - direct_ms;
        if own_ms < 0.0 {
            return Err(NoSplit::MeansCross);
        }
        parts.push(part(format!("gateway {name}"), rate * own_ms / 1e3));
        parts.push(part(format!("upstream ({name})"), rate * direct_ms / 1e3));
        upstream += rate * direct_ms;
        through += rate * mean_ms;
    }
    checked(stage, parts, upstream / through, None)
}

/// Splits by the gateway's own log.
fn by_join(summary: &RunSummary, stage: &Stage<'_>, join: &Join) -> Result<Split, NoSplit> {
    let [target] = summary.metadata.targets.as_slice() else {
        return Err(NoSplit::SeveralTargets);
    };
    let times = usable(summary, stage, join)?;
    let (mean_ms, rate) = mean_and_rate(summary, stage, &target.name)?;
    let in_flight = |ms: f64| rate * ms / 1e3;
    let mut parts = Vec::new();
    // Time from the intended start to the dispatch.
    let before_ms = mean_ms - times.client_ms;
    if before_ms > TOLERANCE * mean_ms {
        parts.push(part("unsent", in_flight(before_ms)));
    }
    let outside = if times.gateway_ms.is_some() { "outside" } else { "before upstream" };
    parts.push(part(outside, in_flight(times.outside_ms)));
    parts.extend(times.gateway_ms.map(|ms| part("gateway", in_flight(ms))));
    parts.push(part("upstream", in_flight(times.upstream_ms)));
    checked(stage, parts, times.upstream_ms / mean_ms, Some(times.matched))
}

/// The times of the stage, if the join is usable.
fn usable<'j>(
    summary: &RunSummary,
    stage: &Stage<'_>,
    join: &'j Join,
) -> Result<&'j StageTimes, NoSplit> {
    if join.run_id.as_ref().is_some_and(|id: &String| *id != summary.metadata.run.run_id) {
        return Err(NoSplit::OtherRun);
    }
    if join.verdict != Verdict::Agree || join.times_refused.is_some() {
        return Err(NoSplit::JoinRefused);
    }
    let of_stage = join.stages.iter().find(|times| times.stage == stage.info.name);
    of_stage
        .filter(|times: &&StageTimes| times.matched as f64 >= MATCHED * times.completed as f64)
        .ok_or(NoSplit::FewTimes)
}

// Parts of its time that the target reports in its response headers.

/// Share of responses with impossible parts above which the header is ignored.
const DISCREDITED: f64 = 0.01;

/// The parts of a stage; `None` without such headers, or if they are not credible.
pub(crate) fn stated_timing(stage: &Stage<'_>) -> Option<TtfbParts> {
    let timing = stage.group.server_timing.as_ref()?;
    let all = timing.responses + timing.refused;
    let ttfb = stage.group.distribution(Metric::Ttfb);
    let is_disturbed = ttfb.is_some_and(|times| times.mean_figure().sound().is_none());
    if is_disturbed || timing.refused as f64 > all as f64 * DISCREDITED {
        return None;
    }
    let parts = timing.means_ms();
    let parts =
        parts.map(|(name, mean_ms): (&str, f64)| NamedTime { name: name.to_owned(), mean_ms });
    timing.mean_ttfb_ms().map(|ttfb_ms| TtfbParts {
        responses: timing.responses,
        ttfb_ms,
        parts: parts.collect(),
        rest_ms: timing.rest_ms(),
    })
}
