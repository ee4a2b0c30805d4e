//! What the log says a request took, against what the client saw: differences of the same request.
//! Clocks need not agree, since only lengths are compared.

use plimsoll_stats::woodruff::{Batched, Stage};

use crate::map::LogOf;
use crate::result::{GroupTimes, Quantiles};
use crate::run::{Request, Run};
use crate::time::Unit;

/// The share of impossible requests from which on the log's time is something else. A gateway reads
/// its clock after its last write, and a busy host may make it wait in between.
pub(crate) const IMPOSSIBLE: f64 = 0.01;

/// Requests that are needed to tell that a unit is wrong.
const FOR_UNITS: usize = 20;

/// Most batches of a stage.
const BATCHES: i64 = 64;

const SECOND: i64 = 1_000_000_000;

/// Requests whose length both sides know.
fn both(run: &Run) -> impl Iterator<Item = (&Request, i64, i64)> {
    run.requests.iter().filter_map(|request| {
        let (service, total) = request.service.get().zip(request.log_total.get())?;
        Some((request, service, total))
    })
}

/// The unit that the log's lengths seem to be in, where the given one is wrong: nine of ten are
/// a power of a thousand away from what the client waited.
pub(crate) fn true_unit(run: &Run, given: Unit) -> Option<Unit> {
    let ratios: Vec<f64> = both(run)
        .filter(|(_, service, total)| *service > 0 && *total > 0)
        .map(|(_, service, total)| total as f64 / service as f64)
        .collect();
    if ratios.len() < FOR_UNITS {
        return None;
    }
    let share_within = |factor: f64| {
        ratios.iter().filter(|ratio: &&f64| (0.2..1.02).contains(&(**ratio * factor))).count()
            as f64
            / ratios.len() as f64
    };
    Unit::OF_NUMBERS.into_iter().filter(|unit| *unit != given).find(|unit| {
        let digits = f64::from(unit.digits()) - f64::from(given.digits());
        share_within(10_f64.powf(digits)) >= 0.9
    })
}

/// Requests that took the log's side longer than the client waited, beyond what its clock can
/// tell; and whether there are too many of them for the two to be comparable.
pub(crate) fn impossible(run: &Run, step: i64) -> (u64, bool) {
    let (mut all, mut found) = (0_u64, 0_u64);
    for (_, service, total) in both(run) {
        all += 1;
        found += u64::from(total.saturating_sub(service) > step);
    }
    (found, found as f64 > all as f64 * IMPOSSIBLE)
}

/// Requests whose upstream took longer than the log's own total, by more than its clocks can tell;
/// and all that have both.
pub(crate) fn longer_upstream(run: &Run, steps: i64) -> (u64, u64) {
    let (mut longer, mut all) = (0_u64, 0_u64);
    for (total, upstream) in upstreams(run) {
        all += 1;
        longer += u64::from(upstream.saturating_sub(total) > steps);
    }
    (longer, all)
}

/// The greatest unit by which nine of ten upstream times are a part of their total.
pub(crate) fn true_unit_of_upstream(run: &Run, given: Unit) -> Option<Unit> {
    if upstreams(run).count() < FOR_UNITS {
        return None;
    }
    Unit::OF_NUMBERS.into_iter().rev().filter(|unit| unit.digits() < given.digits()).find(|unit| {
        let factor = 10_f64.powi(-i32::try_from(given.digits() - unit.digits()).unwrap_or(0));
        let (mut fits, mut all) = (0_u64, 0_u64);
        for (total, upstream) in upstreams(run) {
            all += 1;
            fits += u64::from(upstream as f64 * factor <= total as f64 * 1.02);
        }
        fits as f64 >= all as f64 * 0.9
    })
}

/// The log's total and its upstream time, where it has both.
fn upstreams(run: &Run) -> impl Iterator<Item = (i64, i64)> {
    run.requests
        .iter()
        .filter_map(|request| request.log_total.get().zip(request.log_upstream.get()))
}

/// The times by scenario and outcome, of requests outside of warm-ups.
pub(crate) fn by_group(run: &Run, log_of: LogOf) -> Vec<GroupTimes> {
    let names = run.groups.iter().enumerate();
    names
        .filter_map(|(index, name)| {
            let group: Vec<_> = both(run)
                .filter(|(request, ..)| usize::from(request.group) == index && !request.warmup)
                .collect();
            if group.is_empty() {
                return None;
            }
            let of = |value: fn(&Request, i64, i64) -> Option<i64>| quantiles(&group, value);
            let behind = log_of == LogOf::Upstream;
            let upstream = if behind {
                of(|_, _, total| Some(total))
            } else {
                of(|request, _, _| request.log_upstream.get())
            };
            let gateway = of(|request, _, total| Some(total - request.log_upstream.get()?));
            Some(GroupTimes {
                scenario: name.scenario.clone(),
                outcome: name.outcome.to_owned(),
                requests: group.len() as u64,
                client: of(|_, service, _| Some(service)).unwrap_or_default(),
                outside: of(|_, service, total| Some(service - total)).unwrap_or_default(),
                gateway: gateway.filter(|_| !behind),
                upstream,
            })
        })
        .collect()
}

/// Quantiles of a value in nanoseconds, with the median's interval by batches; `None` if no request
/// has the value.
fn quantiles(
    group: &[(&Request, i64, i64)],
    value: fn(&Request, i64, i64) -> Option<i64>,
) -> Option<Quantiles> {
    let values = Batched::new(batches(group, value));
    if values.count() == 0 {
        return None;
    }
    let estimate = values.estimate(0.5).ok();
    Some(Quantiles {
        p50_ms: values.value(0.5),
        p50_low_ms: estimate.map(|estimate| estimate.interval.low),
        p50_high_ms: estimate.map(|estimate| estimate.interval.high),
        p99_ms: values.value(0.99),
    })
}

/// The values by stage and by time: batches of whole seconds, 64 at most.
fn batches(
    group: &[(&Request, i64, i64)],
    value: fn(&Request, i64, i64) -> Option<i64>,
) -> Vec<Stage> {
    let count = group.iter().map(|(request, ..)| usize::from(request.stage) + 1).max().unwrap_or(0);
    let mut spans = vec![(i64::MAX, i64::MIN); count];
    for (request, ..) in group {
        if let Some((first, last)) = spans.get_mut(usize::from(request.stage)) {
            (*first, *last) = ((*first).min(request.sent), (*last).max(request.sent));
        }
    }
    let mut stages: Vec<Stage> = vec![Vec::new(); count];
    for (request, service, total) in group {
        let Some(value) = value(request, *service, *total) else { continue };
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
            batch.push(value as f64 / 1e6);
        }
    }
    stages
}
