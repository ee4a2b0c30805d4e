//! The shards side by side.

use plimsoll_measure::{Nanos, Stripe};
use plimsoll_metrics::{Metric, RunMetadata, RunSummary, ShardPart, ShardState, Snapshot};
use plimsoll_run_files::Counts;

use crate::shard::Shard;

/// A shard beside the others.
pub(crate) struct Part {
    pub(crate) shown: ShardPart,
    /// Start of its load by its wall clock, in nanoseconds since 1970 UTC.
    pub(crate) started_unix_ns: Option<u64>,
}

impl Part {
    /// A shard, if its folder is there, with what it counted, if anything; `time` heads the report.
    pub(crate) fn new(
        place: Stripe,
        shard: Option<&Shard>,
        counts: Option<&Counts>,
        time: Metric,
    ) -> Self {
        let Some(shard) = shard else {
            let shard = format!("{}/{}", place.index(), place.count());
            let shown = ShardPart { shard, state: ShardState::Missing, ..ShardPart::default() };
            return Self { shown, started_unix_ns: None };
        };
        let mut shown = ShardPart {
            shard: shard.name(),
            state: shard.state(),
            damaged: shard.files.damaged.values().cloned().collect(),
            valid: shard.summary.as_ref().map(RunSummary::is_valid),
            ..ShardPart::default()
        };
        let status = shard.status.as_ref();
        shown.interrupted = status.and_then(|status| status.interrupted);
        shown.late_by_s =
            status.and_then(|status| status.late_by_ns).map(|late| Nanos::new(late).as_secs_f64());
        shown.clock_uncertainty_s = status
            .and_then(|status| status.clock_uncertainty_ns)
            .map(|uncertainty| Nanos::new(uncertainty).as_secs_f64());
        let Some(counts) = counts else { return Self { shown, started_unix_ns: None } };
        fill(&mut shown, &counts.snapshot, &shard.planned, time);
        shown.counted_all = counts.complete && shown.interrupted.is_none();
        shown.counted_s = Some(counts.series.length().as_secs_f64());
        let origin = counts.series.origin().as_nanos();
        let started = shard.metadata().run.started_unix_ns.saturating_add(origin);
        let ahead = status.and_then(|status| status.clock_offset_ns).unwrap_or(0);
        let started = started.saturating_add_signed(ahead.saturating_neg());
        Self { shown, started_unix_ns: Some(started) }
    }
}

fn fill(shown: &mut ShardPart, snapshot: &Snapshot, planned: &RunMetadata, time: Metric) {
    let whole = snapshot
        .total(|key| planned.stages.get(key.stage.index()).is_some_and(|stage| !stage.warmup));
    let counters = whole.counters();
    shown.scheduled = counters.scheduled;
    shown.completed = counters.completed;
    shown.unexpected = counters.unexpected;
    if let Some(times) = whole.distribution(time) {
        shown.p50_ms = times.quantile(0.5).map(Nanos::as_millis_f64);
        shown.p99_ms = times.quantile(0.99).map(Nanos::as_millis_f64);
    }
}

/// Fills in when each shard began after the first one.
pub(crate) fn align(parts: &mut [Part]) {
    let first = parts.iter().filter_map(|part| part.started_unix_ns).min().unwrap_or(0);
    for part in parts {
        let started = part.started_unix_ns;
        part.shown.start_s = started.map(|started| Nanos::new(started - first).as_secs_f64());
    }
}
