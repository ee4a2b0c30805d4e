//! What the target says of itself in response headers: cache states and upstream retries.

use plimsoll_metrics::Group;

use super::{Page, format};

/// One line for each that the target speaks of.
pub(super) fn write(page: &mut Page, total: &Group) {
    let counters = &total.counters;
    let states = [
        (counters.cache_hits, "hits"),
        (counters.cache_misses, "misses"),
        (counters.cache_bypassed, "bypassed"),
    ];
    let said: u64 = states.iter().map(|(count, _)| count).sum();
    if said > 0 {
        let all: u64 = total.statuses.values().sum();
        let shown = states.iter().filter(|(count, _)| *count > 0);
        let mut parts: Vec<_> =
            shown.map(|(count, name)| format!("{} {name}", format::count(*count))).collect();
        let silent = all.saturating_sub(said);
        if silent > 0 {
            parts.push(format!("{} did not say", format::count(silent)));
        }
        page.note(&format!("Caches, by response headers: {}", parts.join(", ")));
    }
    if counters.upstream_retries > 0 {
        page.note(&format!(
            "Upstream retries, by response headers: {} in {} requests",
            format::count(counters.upstream_retries),
            format::count(counters.retried_upstream)
        ));
    }
}
