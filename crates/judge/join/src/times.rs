//! Differences between the client's time and the log's time of the same request. Clocks need not
//! agree, because only durations are compared.

use plimsoll_measure::CacheState;
use plimsoll_stats::woodruff::{Batched, Stage};

use crate::map::LogOf;
use crate::result::{GroupTimes, Quantiles};
use crate::run::{GroupName, Request, Run};
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
