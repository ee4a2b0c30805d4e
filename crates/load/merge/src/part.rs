//! The shards side by side.

use plimsoll_measure::Nanos;
use plimsoll_metrics::{Metric, RunMetadata, ShardPart, ShardState, Snapshot};
use plimsoll_run_files::Counts;

use crate::shard::Shard;

/// A shard beside the others.
pub(crate) struct Part {
    pub(crate) shown: ShardPart,
    /// Start of its load by its wall clock, in nanoseconds since 1970 UTC.
    pub(crate) started_unix_ns: Option<u64>,
}

impl Part {
    /// A shard with what it counted, if anything; `time` heads the report.
    pub(crate) fn new(shard: &Shard, counts: Option<&Counts>, time: Metric) -> Self {
        let mut shown = ShardPart {
            shard: shard.name(),
            state: shard.state(),
            valid: shard.summary.as_ref().map(|summary| summary.validity.is_valid()),
            ..ShardPart::default()
        };
        let Some(counts) = counts else { return Self { shown, started_unix_ns: None } };
        fill(&mut shown, &counts.snapshot, &shard.planned, time);
        shown.counted_s = Some(counts.series.length().as_secs_f64());
        let origin = counts.series.origin().as_nanos();
        let started = shard.metadata().run.started_unix_ns.saturating_add(origin);
        Self { shown, started_unix_ns: Some(started) }
    }

    /// A shard of which there is no folder.
    pub(crate) fn missing(index: u64, count: u64) -> Self {
        let (shard, state) = (format!("{index}/{count}"), ShardState::Missing);
        Self { shown: ShardPart { shard, state, ..ShardPart::default() }, started_unix_ns: None }
    }
}

fn fill(shown: &mut ShardPart, snapshot: &Snapshot, planned: &RunMetadata, time: Metric) {
    let measured = |stage: usize| planned.stages.get(stage).is_some_and(|stage| !stage.warmup);
    let whole = snapshot.total(|key| measured(key.stage.index()));
    let counters = whole.counters();
    shown.scheduled = counters.scheduled;
    shown.completed = counters.completed;
    shown.unexpected = counters.unexpected;
    let quantile = |q| whole.distribution(time)?.quantile(q).map(Nanos::as_millis_f64);
    (shown.p50_ms, shown.p99_ms) = (quantile(0.5), quantile(0.99));
}

/// Fills in when each shard began after the first one, and returns the time between the first and
/// the last, in seconds.
pub(crate) fn align(parts: &mut [Part]) -> f64 {
    let first = parts.iter().filter_map(|part| part.started_unix_ns).min().unwrap_or(0);
    let mut spread = 0.0_f64;
    for part in parts {
        let after = part.started_unix_ns.map(|started| Nanos::new(started - first).as_secs_f64());
        part.shown.start_s = after;
        spread = spread.max(after.unwrap_or(0.0));
    }
    spread
}
