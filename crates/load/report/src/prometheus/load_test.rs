//! `load_test_latency_ms` and `load_test_requests_total`: names that dashboards of other load tests
//! use, in milliseconds and with three statuses.
//!
//! If scenarios have categories, each category has one set of lines, with the category as
//! `test_type`. The whole run then has none, so sums over the label are correct. A label
//! `test_type` of the run replaces all categories.

use std::borrow::Cow;

use plimsoll_metrics::{DistributionSummary, Group, Metric, RunSummary};

use super::quantiles;
use crate::exposition::{Exposition, Kind, Labels};

const TEST_TYPE: &str = "test_type";

/// Writes the families. Whoever reads them does not know `plimsoll_run_valid`, so an invalid run
/// has counts and no times.
pub(super) fn load_test(out: &mut Exposition, summary: &RunSummary) {
    let groups = groups(summary);
    let name = "load_test_latency_ms";
    out.head(name, Kind::Summary, Metric::ResponseTime.definition());
    for (test_type, group) in groups.iter().filter(|_| summary.is_valid()) {
        let Some(times) = times(group) else { continue };
        for (q, millis) in quantiles(&times) {
            out.line(name, &labels(*test_type, Some(("quantile", q.to_string().into()))), millis);
        }
        out.line(&format!("{name}_sum"), &labels(*test_type, None), times.raw_sum());
        out.line(&format!("{name}_count"), &labels(*test_type, None), times.count);
    }
    let name = "load_test_requests_total";
    out.begin(name);
    for (test_type, group) in &groups {
        // A block does not count as an error.
        let counters = &group.counters;
        let good = counters.allowed + counters.blocked + counters.cancelled;
        for (status, count) in [
            ("success", counters.allowed),
            ("blocked", counters.blocked),
            ("error", counters.scheduled.saturating_sub(good)),
        ] {
            out.line(name, &labels(*test_type, Some(("status", status.into()))), count);
        }
    }
}

/// The times of all answers: a block is one, too.
fn times(group: &Group) -> Option<DistributionSummary> {
    let [allowed, blocked] = [Metric::ResponseTime, Metric::RejectedResponseTime]
        .map(|metric| group.distribution(metric));
    match (allowed, blocked) {
        (Some(allowed), Some(blocked)) => allowed.merged(blocked, Metric::ResponseTime).ok(),
        (one, other) => one.or(other).cloned(),
    }
}

/// The groups of requests with their `test_type`; scenarios without a category have their name.
fn groups(summary: &RunSummary) -> Vec<(Option<&str>, &Group)> {
    let (metadata, results) = (&summary.metadata, &summary.results);
    if results.by_category.is_empty() || metadata.labels.contains_key(TEST_TYPE) {
        return vec![(None, &results.total)];
    }
    let of_category = results.by_category.iter().map(|group| (group.category.as_deref(), group));
    let others = results.by_scenario.iter().filter(|group| !has_category(group, metadata));
    of_category.chain(others.map(|group| (group.scenario.as_deref(), group))).collect()
}

fn has_category(group: &Group, metadata: &plimsoll_metrics::RunMetadata) -> bool {
    let at = metadata.scenarios.iter().position(|name| Some(name) == group.scenario.as_ref());
    let expectation = at.and_then(|at| metadata.expectations.get(at));
    expectation.is_some_and(|expectation| expectation.category.is_some())
}

fn labels<'a>(test_type: Option<&'a str>, own: Option<(&'static str, Cow<'a, str>)>) -> Labels<'a> {
    own.into_iter().chain(test_type.map(|name| (TEST_TYPE, name.into()))).collect()
}
