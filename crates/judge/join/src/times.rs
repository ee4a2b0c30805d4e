//! Differences between the client's time and the log's time of the same request. Clocks need not
//! agree, because only durations are compared.

use plimsoll_measure::CacheState;
use plimsoll_stats::woodruff::{Batched, Stage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::map::LogOf;
use crate::run::{GroupName, Request, Run, ServerTiming};
use crate::time::Unit;

/// Share of impossible requests above which the log's time must have another meaning. A few are
/// normal, because a gateway reads its clock after its last write, and a busy host may delay that.
pub(crate) const IMPOSSIBLE: f64 = 0.01;

/// Minimum number of requests for detecting a wrong unit.
const FOR_UNITS: usize = 20;

/// A stream must continue after its first byte for at least 1/10 of its time.
const STREAMED: i64 = 10;

/// Maximum number of batches per stage.
const BATCHES: i64 = 64;

const SECOND: i64 = 1_000_000_000;

/// Requests with a duration on both sides.
fn both(run: &Run) -> impl Iterator<Item = (&Request, i64, i64)> {
    run.requests.iter().filter_map(|request| {
        let (service, total) = request.service.zip(request.log_total)?;
        Some((request, service, total))
    })
}

/// Detects the true unit of the log's durations if the given one is wrong: with it, nine of ten
/// requests fit into the time the client waited.
pub(crate) fn true_unit(run: &Run, given: Unit) -> Option<Unit> {
    let ratios: Vec<f64> = both(run)
        .filter(|(_, service, total)| *service > 0 && *total > 0)
        .map(|(_, service, total)| total as f64 / service as f64)
        .collect();
    if ratios.len() < FOR_UNITS {
        return None;
    }
    Unit::OF_NUMBERS.into_iter().filter(|unit| *unit != given).find(|unit| {
        let digits = f64::from(unit.digits()) - f64::from(given.digits());
        let factor = 10_f64.powf(digits);
        let within = ratios.iter().filter(|ratio| (0.2..1.02).contains(&(**ratio * factor)));
        within.count() as f64 / ratios.len() as f64 >= 0.9
    })
}

/// Number of requests that took longer in the log than for the client, beyond the clock's
/// resolution; and whether there are too many for the times to be comparable.
pub(crate) fn impossible(run: &Run, step: i64) -> (u64, bool) {
    let (mut all, mut found) = (0_u64, 0_u64);
    for (_, service, total) in both(run) {
        all += 1;
        found += u64::from(total.saturating_sub(service) > step);
    }
    (found, found as f64 > all as f64 * IMPOSSIBLE)
}

/// Number of requests whose upstream time exceeds the log's own total by more than the resolution,
/// and number of requests with both times.
pub(crate) fn longer_upstream(run: &Run, steps: i64) -> (u64, u64) {
    let (mut longer, mut all) = (0_u64, 0_u64);
    for (total, upstream) in upstreams(run) {
        all += 1;
        longer += u64::from(upstream.saturating_sub(total) > steps);
    }
    (longer, all)
}

/// Number of streams whose upstream time ends before the client's first byte, and number of streams
/// that continued for long enough after it. The time of a streaming upstream should end with its
/// stream.
pub(crate) fn upstream_heads(run: &Run, steps: i64) -> (u64, u64) {
    let (mut heads, mut all) = (0_u64, 0_u64);
    for request in run.requests.iter().filter(|request| request.stream) {
        let times = [request.service, request.ttfb, request.log_upstream];
        let [Some(service), Some(ttfb), Some(upstream)] = times else { continue };
        if service - ttfb > steps.max(service / STREAMED) {
            all += 1;
            heads += u64::from(upstream <= ttfb.saturating_add(steps));
        }
    }
    (heads, all)
}

/// The log's total and upstream time of the requests that have both.
fn upstreams(run: &Run) -> impl Iterator<Item = (i64, i64)> {
    run.requests.iter().filter_map(|request| request.log_total.zip(request.log_upstream))
}

/// A value of a request, in nanoseconds.
pub(crate) struct Valued<'r> {
    pub(crate) request: &'r Request,
    pub(crate) nanos: i64,
}

/// The times by scenario and outcome, without warm-up. If a cache answered some requests of a
/// group, its hits, misses and bypasses follow separately.
pub(crate) fn by_group(run: &Run, log_of: LogOf) -> Vec<GroupTimes> {
    let mut all = Vec::new();
    for (index, name) in run.groups.iter().enumerate() {
        let group: Vec<&Request> = both(run)
            .map(|(request, ..)| request)
            .filter(|request| usize::from(request.group) == index && !request.warmup)
            .collect();
        all.extend(of_group(name, &group, None, log_of));
        let states = CacheState::ALL.map(|state| of_state(&group, state));
        if states.iter().filter(|requests| !requests.is_empty()).count() < 2 {
            continue;
        }
        for (state, requests) in CacheState::ALL.into_iter().zip(&states) {
            all.extend(of_group(name, requests, Some(state), log_of));
        }
    }
    all
}

fn of_state<'r>(group: &[&'r Request], state: CacheState) -> Vec<&'r Request> {
    group.iter().copied().filter(|request| request.log.cache == Some(state)).collect()
}

/// Times of a group; `None` if it is empty.
fn of_group(
    name: &GroupName,
    group: &[&Request],
    cache: Option<CacheState>,
    log_of: LogOf,
) -> Option<GroupTimes> {
    let behind = log_of == LogOf::Upstream;
    let upstream = |request: &Request| match log_of {
        LogOf::Gateway => request.log_upstream,
        LogOf::Upstream => request.log_total,
    };
    let outside = |request: &Request| Some(request.service? - request.log_total?);
    (!group.is_empty()).then(|| GroupTimes {
        scenario: name.scenario.clone(),
        outcome: name.outcome.to_owned(),
        cache: cache.map(|state| state.name().to_owned()),
        requests: group.len() as u64,
        client: of_requests(group, |request| request.service).unwrap_or_default(),
        outside: of_requests(group, outside).unwrap_or_default(),
        gateway: of_requests(group, own_time).filter(|_| !behind),
        upstream: of_requests(group, upstream),
    })
}

/// The log's total minus its upstream time.
pub(crate) fn own_time(request: &Request) -> Option<i64> {
    Some(request.log_total? - request.log_upstream?)
}

/// Quantiles of a value of these requests; `None` if no request has it.
pub(crate) fn of_requests(
    group: &[&Request],
    value: impl Fn(&Request) -> Option<i64>,
) -> Option<Quantiles> {
    let valued =
        group.iter().filter_map(|request| Some(Valued { request, nanos: value(request)? }));
    quantiles(&valued.collect::<Vec<_>>())
}

/// Quantiles of values, with the median's interval by batches; `None` without values.
pub(crate) fn quantiles(values: &[Valued<'_>]) -> Option<Quantiles> {
    if values.is_empty() {
        return None;
    }
    let values = Batched::new(batches(values));
    let estimate = values.estimate(0.5).ok();
    Some(Quantiles {
        p50_ms: values.value(0.5),
        p50_low_ms: estimate.map(|estimate| estimate.interval.low),
        p50_high_ms: estimate.map(|estimate| estimate.interval.high),
        p99_ms: values.value(0.99),
    })
}

/// Groups values by stage and time into batches of whole seconds, at most 64.
fn batches(values: &[Valued<'_>]) -> Vec<Stage> {
    let stages = values.iter().map(|valued| usize::from(valued.request.stage) + 1);
    let count = stages.max().unwrap_or(0);
    let mut spans = vec![(i64::MAX, i64::MIN); count];
    for Valued { request, .. } in values {
        if let Some((first, last)) = spans.get_mut(usize::from(request.stage)) {
            (*first, *last) = ((*first).min(request.sent), (*last).max(request.sent));
        }
    }
    let mut stages: Vec<Stage> = vec![Vec::new(); count];
    for Valued { request, nanos } in values {
        let stage = usize::from(request.stage);
        let Some((stage, (first, last))) = stages.get_mut(stage).zip(spans.get(stage)) else {
            continue;
        };
        let seconds = (last - first) / SECOND + 1;
        let batch = (request.sent - first) / SECOND / ((seconds - 1) / BATCHES + 1);
        let batch = usize::try_from(batch).unwrap_or(0);
        if stage.len() <= batch {
            stage.resize(batch + 1, Vec::new());
        }
        if let Some(batch) = stage.get_mut(batch) {
            batch.push(*nanos as f64 / 1e6);
        }
    }
    stages
}

// Mean breakdown of the time of completed requests by stage. The parts of a mean sum to it; the
// parts of a percentile do not.

/// Sums over the requests of a stage, in nanoseconds.
#[derive(Clone, Default)]
struct Sums {
    completed: u64,
    matched: u64,
    client: i128,
    total: i128,
    upstream: i128,
}

impl Sums {
    fn add(&mut self, request: &Request, log_of: LogOf) {
        self.completed += 1;
        let (Some(client), Some(total)) = (request.service, request.log_total) else {
            return;
        };
        let upstream = match log_of {
            LogOf::Gateway => request.log_upstream,
            LogOf::Upstream => Some(total),
        };
        let Some(upstream) = upstream else { return };
        self.matched += 1;
        self.client += i128::from(client);
        self.total += i128::from(total);
        self.upstream += i128::from(upstream);
    }

    /// Means; `None` if no request has every part.
    fn times(&self, stage: &str, log_of: LogOf) -> Option<StageTimes> {
        let mean_ms = |sum: i128| sum as f64 / self.matched as f64 / 1e6;
        (self.matched > 0).then(|| StageTimes {
            stage: stage.to_owned(),
            completed: self.completed,
            matched: self.matched,
            client_ms: mean_ms(self.client),
            outside_ms: mean_ms(self.client - self.total),
            gateway_ms: (log_of == LogOf::Gateway).then(|| mean_ms(self.total - self.upstream)),
            upstream_ms: mean_ms(self.upstream),
        })
    }
}

/// Computes the times by stage, without warm-ups.
pub(crate) fn by_stage(run: &Run, log_of: LogOf) -> Vec<StageTimes> {
    let mut sums = vec![Sums::default(); run.stages.len()];
    for request in run.requests.iter().filter(|request| request.completed && !request.warmup) {
        if let Some(sums) = sums.get_mut(usize::from(request.stage)) {
            sums.add(request, log_of);
        }
    }
    let stages = run.stages.iter().zip(&sums);
    stages.filter_map(|(stage, sums)| sums.times(stage, log_of)).collect()
}

// Times that a target reports in its response headers, next to its log and the client's time for
// the same requests.

/// Computes one entry per scenario, outcome and name, over matched requests without warm-up.
pub(crate) fn stated_times(run: &Run, log_of: LogOf) -> Vec<StatedTimes> {
    let mut all = Vec::new();
    for (index, name) in run.stated_names.iter().enumerate() {
        let of_name: Vec<Valued<'_>> = run
            .stated
            .iter()
            .filter(|stated: &&ServerTiming| usize::from(stated.name) == index)
            .filter_map(|stated: &ServerTiming| {
                let request = run.requests.get(stated.request as usize)?;
                let counts = request.rows > 0 && !request.warmup;
                counts.then_some(Valued { request, nanos: stated.nanos })
            })
            .collect();
        for (group, of_group) in run.groups.iter().enumerate() {
            let values = of_name
                .iter()
                .filter(|valued: &&Valued<'_>| usize::from(valued.request.group) == group);
            let values = values.map(|valued| Valued { request: valued.request, ..*valued });
            all.extend(beside(of_group, name, &values.collect::<Vec<_>>(), log_of));
        }
    }
    all
}

fn beside(
    group: &GroupName,
    name: &str,
    values: &[Valued<'_>],
    log_of: LogOf,
) -> Option<StatedTimes> {
    let requests: Vec<&Request> = values.iter().map(|valued| valued.request).collect();
    let of_gateway = log_of == LogOf::Gateway;
    Some(StatedTimes {
        scenario: group.scenario.clone(),
        outcome: group.outcome.to_owned(),
        name: name.to_owned(),
        requests: requests.len() as u64,
        stated: quantiles(values)?,
        log: of_requests(&requests, |request| request.log_total).filter(|_| of_gateway),
        gateway: of_requests(&requests, own_time).filter(|_| of_gateway),
        client: of_requests(&requests, |request| request.service).unwrap_or_default(),
    })
}

// The result of a join, stored as `join.json`.

/// Layout of `join.json`.
pub const SCHEMA: &str = "plimsoll.join/1";

/// A run matched with a log.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Join {
    /// Layout of the file: `plimsoll.join/1`.
    pub schema: String,
    /// Folder of the run.
    pub run: String,
    /// Id of the run from its plan.json; `None` if the folder has no such file.
    pub run_id: Option<String>,
    /// Source of the log, without credentials.
    pub log: String,
    /// Mapped columns, in the syntax of `--map`.
    pub map: String,
    /// Origin of the map.
    pub map_origin: String,
    /// Process that wrote the log.
    pub log_of: LogOf,
    /// Whether run and log agree.
    pub verdict: Verdict,
    /// Counts.
    pub books: MatchCounts,
    /// Values that differ in matched requests.
    pub disagreements: Vec<Disagreement>,
    /// Example ids of each kind.
    pub examples: Examples,
    /// Times by scenario and outcome, without warm-up.
    pub times: Vec<GroupTimes>,
    /// Cache results according to the log and the response headers; `None` if the log has no cache
    /// states.
    pub caches: Option<Caches>,
    /// Times that the target reports in its response headers, next to the log's times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stated: Vec<StatedTimes>,
    /// Mean breakdown of the time of completed requests in each measured stage, over the requests
    /// for which run and log know every part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageTimes>,
    /// Resolution of the log's durations in milliseconds: the uncertainty of time differences.
    pub steps_ms: Option<f64>,
    /// Reason for missing times.
    pub times_refused: Option<String>,
    /// Requests that took longer in the log than for the client.
    pub impossible: u64,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// Whether run and log agree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "word", content = "why")]
pub enum Verdict {
    /// No request is lost, duplicated or different.
    Agree,
    /// Some request is lost, duplicated or different.
    Disagree,
    /// The match is inconclusive.
    Unjudged(String),
}

/// Counts of requests and rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MatchCounts {
    /// Requests of the run, including those never sent.
    pub in_run: u64,
    /// Rows of the log.
    pub in_log: u64,
    /// Requests with at least one row.
    pub matched: u64,
    /// Answered requests without a row.
    pub lost: u64,
    /// Requests without a row that the target answered itself, so that the upstream's log need not
    /// have them.
    pub kept: u64,
    /// Requests without an answer and without a row, which may not have arrived.
    pub unanswered: u64,
    /// Requests without a row by the sent id, and without an id header of their own in the
    /// response. The log may have them under an unknown id.
    #[serde(default)]
    pub unnamed: u64,
    /// Requests without a row that were in flight at the end.
    pub in_flight: u64,
    /// Rows of requests that do not belong to this run.
    pub foreign: u64,
    /// Requests with several unexplained rows.
    pub twice: u64,
    /// Requests with several rows because of retries.
    pub retried: u64,
    /// Rows beyond the first of their request.
    pub rows_twice: u64,
    /// Matched requests with at least one different value.
    pub disagreeing: u64,
    /// Rows of requests that the run never sent.
    pub never_sent_in_log: u64,
    /// Lines of the log that are not valid rows.
    pub unreadable: u64,
}

/// A value that differs between run and log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Disagreement {
    /// Name of the value.
    pub field: String,
    /// Number of requests.
    pub count: u64,
    /// Example ids.
    pub examples: Vec<String>,
}

/// Example ids of each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Examples {
    /// Requests without a row.
    pub lost: Vec<String>,
    /// Requests with unexplained additional rows.
    pub twice: Vec<String>,
    /// Rows that do not belong to the run.
    pub foreign: Vec<String>,
}

/// Cache results of matched requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Caches {
    /// Matched requests that are hits according to the log.
    pub hits: u64,
    /// Misses.
    pub misses: u64,
    /// Requests that bypassed the cache.
    pub bypassed: u64,
    /// Matched requests without a cache state in the log.
    pub unknown: u64,
    /// Matched requests that are a hit in either the log or the response headers, but not in both.
    /// They do not count as disagreements, because another cache may have written the header.
    pub unlike_headers: u64,
}

/// A time that the target reports in its response headers, over the matched requests of one
/// scenario and outcome, without warm-up. Plimsoll did not measure it.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatedTimes {
    /// Scenario.
    pub scenario: String,
    /// Outcome.
    pub outcome: String,
    /// `server_time`, or the name of a part.
    pub name: String,
    /// Requests with such a header.
    pub requests: u64,
    /// Reported time.
    pub stated: Quantiles,
    /// The log's total of the same requests.
    pub log: Option<Quantiles>,
    /// The log's total minus its upstream time, of the same requests.
    pub gateway: Option<Quantiles>,
    /// Time the client waited, over the same requests.
    pub client: Quantiles,
}

/// Times of the requests of one scenario and outcome, optionally of one cache state.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupTimes {
    /// Scenario.
    pub scenario: String,
    /// Outcome.
    pub outcome: String,
    /// `hit`, `miss` or `bypass` in the log, if the times cover these requests alone. Present in
    /// addition to the whole group if it has hits and others.
    pub cache: Option<String>,
    /// Requests with a time on both sides.
    pub requests: u64,
    /// Time the client waited, from sent to finished.
    pub client: Quantiles,
    /// Client minus log, request by request: the network, queues before the log's first clock
    /// reading, TLS. For an upstream's log: everything in front of it.
    pub outside: Quantiles,
    /// The log's total minus its upstream time.
    pub gateway: Option<Quantiles>,
    /// The log's upstream time; for an upstream's log, its total.
    pub upstream: Option<Quantiles>,
}

/// Mean breakdown of the time of a stage's completed requests. The means sum to the client's time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageTimes {
    /// Stage.
    pub stage: String,
    /// Completed requests of the stage in the run's rows.
    pub completed: u64,
    /// Completed requests for which every part is known. Only they count.
    pub matched: u64,
    /// Time the client waited, from sent to finished, in milliseconds.
    pub client_ms: f64,
    /// Client minus log, in milliseconds. For an upstream's log: everything in front of it.
    pub outside_ms: f64,
    /// The log's total minus its upstream time, in milliseconds; `None` for an upstream's log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway_ms: Option<f64>,
    /// The log's upstream time in milliseconds; for an upstream's log, its total.
    pub upstream_ms: f64,
}

/// Median and 99th percentile in milliseconds; `None` if there are too few requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::struct_field_names, reason = "keys of a file name their unit")]
pub struct Quantiles {
    /// Median.
    pub p50_ms: Option<f64>,
    /// Lower end of the median's 95 % interval, by batches of time; `None` if unknown.
    pub p50_low_ms: Option<f64>,
    /// Upper end of the interval.
    pub p50_high_ms: Option<f64>,
    /// 99th percentile.
    pub p99_ms: Option<f64>,
}
