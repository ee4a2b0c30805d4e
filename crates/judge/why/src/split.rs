//! Splits the requests in flight by place with Little's law, `N = X R`. The upstream's part comes
//! from a target that is the upstream itself, or from a join with the gateway's own log.

use plimsoll_join::{Join, StageTimes, Verdict};
use plimsoll_metrics::{
    Group, LoadModel, Metric, QUANTILES, RunSummary, StageInfo, StageResources,
};

use crate::result::{Load, NamedTime, NoSplit, Part, Split, TtfbParts};

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

// Chooses the deciding stage, and tests whether its load was at the limit.

/// Share of missed requests above which an open stage was at its limit. It equals the share from
/// which a stage's rate is not reported (`lost_rate` in `plimsoll-metrics`).
const MISSED: f64 = 0.01;
/// Factor between the requests in flight at the end of a stage and their mean from which the queue
/// grew. A stage that steadily falls behind ends with twice its mean, one that keeps up ends with
/// its mean; both exclude requests in flight at its start.
const GROWN: f64 = 1.5;
/// Random variation of the number in flight, in standard deviations of a Poisson distribution.
const DEVIATIONS: f64 = 4.0;
/// Minimum allowance for random variation, in requests.
const FEW: f64 = 10.0;
/// Share of users in flight below which think time limits a closed stage.
const THINKING: f64 = 0.5;
/// Minimum factor between the highest and the lowest load.
const LEVELS: f64 = 2.0;
/// Growth factor below which a time counts as constant.
const FLAT: f64 = 1.1;

/// A measured stage with its counters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stage<'r> {
    pub(crate) info: &'r StageInfo,
    pub(crate) group: &'r Group,
    pub(crate) resources: Option<&'r StageResources>,
    /// Requests in flight at its start, left over from earlier stages or a warm-up.
    left_before: f64,
}

/// Measured stages in which any request was sent.
pub(crate) fn stages(summary: &RunSummary) -> Vec<Stage<'_>> {
    let mut left_before = 0.0;
    let mut measured = Vec::new();
    for (info, group) in summary.metadata.stages.iter().zip(&summary.results.by_stage) {
        let resources = summary.resources.iter().find(|found| found.stage == info.name);
        let stage = Stage { info, group, resources, left_before };
        left_before = f64::max(left_before + stage.backlog(), 0.0);
        if !info.warmup && info.duration_s > 0.0 && group.counters.dispatched_in_stage > 0 {
            measured.push(stage);
        }
    }
    measured
}

impl Stage<'_> {
    /// Planned load: users, or requests per second.
    fn asked(&self) -> f64 {
        let planned = self.group.counters.scheduled as f64 / self.info.duration_s;
        self.info.users.unwrap_or(planned)
    }

    /// Number of requests as a share of those planned.
    fn share(&self, requests: u64) -> f64 {
        requests as f64 / self.group.counters.scheduled.max(1) as f64
    }

    /// Share of the requests that failed.
    pub(crate) fn without_answer(&self) -> f64 {
        let counters = &self.group.counters;
        self.share(counters.unexpected + counters.timed_out + counters.in_flight).min(1.0)
    }

    pub(crate) fn throughput(&self) -> f64 {
        self.group.rates.throughput_per_s.unwrap_or_default()
    }

    /// Whether Plimsoll sent too many requests late; closed loops have no late requests.
    pub(crate) fn is_late(&self) -> bool {
        self.share(self.group.counters.arrivals_late_by_generator) > MISSED
    }

    pub(crate) fn load(&self) -> Load {
        Load {
            stage: self.info.name.clone(),
            model: self.info.model,
            users: self.info.users,
            throughput_per_s: self.throughput(),
            sent_per_s: self.group.rates.achieved_rate_per_s.unwrap_or_default(),
            in_flight: self.info.mean_in_flight,
            backlog: self.backlog(),
            at_limit: self.is_at_limit(),
        }
    }

    fn is_at_limit(&self) -> bool {
        match self.info.model {
            LoadModel::Closed => self.users_wait(),
            LoadModel::Open => self.falls_behind(),
        }
    }

    /// Whether users of a closed loop wait for each other. A single user never does.
    fn users_wait(&self) -> bool {
        // Users without a request do not count.
        let requests = self.group.counters.scheduled as f64;
        let users = self.info.users.unwrap_or(f64::INFINITY).min(requests);
        users > 1.0 && self.info.mean_in_flight.is_none_or(|busy| busy >= users * THINKING)
    }

    /// Growth of the number in flight over the stage; negative if it fell.
    fn backlog(&self) -> f64 {
        let counters = &self.group.counters;
        let ended =
            counters.completed_in_stage + counters.rejected + counters.failed + counters.cancelled;
        counters.dispatched_in_stage as f64 - ended as f64
    }

    /// Whether the stage ended with significantly more in flight than on average. Requests in
    /// flight at its start are excluded.
    fn queue_grew(&self, mean: f64) -> bool {
        let own_mean = (mean - self.left_before).max(0.0);
        let by_chance = (DEVIATIONS * mean.sqrt()).max(FEW);
        self.backlog() > GROWN * own_mean && self.backlog() - own_mean > by_chance
    }

    fn falls_behind(&self) -> bool {
        let counters = &self.group.counters;
        let held = counters.arrivals_held() as f64 / counters.arrivals_planned.max(1) as f64;
        let lost = counters.timed_out + counters.in_flight + counters.never_sent;
        let done = self.group.named_rate("throughput").and_then(|rate| rate.interval);
        let sent = self.group.rates.achieved_rate_per_s.unwrap_or_default();
        let answered = sent * (1.0 - self.without_answer());
        held > MISSED
            || self.share(lost) > MISSED
            || self.info.mean_in_flight.is_some_and(|mean| self.queue_grew(mean))
            || done.is_some_and(|[_, high]| high < answered * (1.0 - MISSED))
    }

    /// The median service time, if the generator did not distort it.
    fn median(&self) -> Option<f64> {
        self.group.distribution(Metric::ServiceTime)?.figure(&QUANTILES[0])?.sound()
    }
}

/// The deciding stage: among stages at their limit, or else all stages, the one with the highest
/// load. Users and rates are not comparable, so stages of different models are ranked by
/// throughput.
pub(crate) fn deciding<'s, 'r>(stages: &'s [Stage<'r>]) -> Option<&'s Stage<'r>> {
    let size = |stage: &Stage<'_>| {
        if are_alike(stages) { stage.asked() } else { stage.throughput() }
    };
    stages.iter().max_by(|one, other| {
        let limits = [one, other].map(|stage| stage.is_at_limit());
        limits[0].cmp(&limits[1]).then(size(one).total_cmp(&size(other)))
    })
}

fn are_alike(stages: &[Stage<'_>]) -> bool {
    stages.iter().all(|stage| stage.info.model == stages[0].info.model)
}

/// Whether times grow with the load, so that requests queue in the stage with the highest load;
/// `None` if no two levels of load show it.
pub(crate) fn times_grow(stages: &[Stage<'_>]) -> Option<bool> {
    let by_load = |one: &&Stage<'_>, other: &&Stage<'_>| one.asked().total_cmp(&other.asked());
    let (low, high) = stages.iter().min_by(by_load).zip(stages.iter().max_by(by_load))?;
    let is_known = are_alike(stages) && high.asked() >= LEVELS * low.asked();
    let times = low.median().zip(high.median()).filter(|_| is_known);
    times.map(|(low, high)| high >= FLAT * low)
}
