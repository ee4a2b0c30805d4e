//! The instruments of all shards as one.

use plimsoll_metrics::{
    Conversations, Distribution, DisturbedWindow, InstrumentHealth, Lag, RunSummary, Snapshot,
};

/// Merges the health of the shards: counts are added, and the worst of shares and limits is kept.
/// Values derived from counts are left out, because they are computed from the merged counts.
/// `summaries` come from the shards that ended; `whole` is set if all shards ended.
pub(crate) fn merge(
    summaries: &[&RunSummary],
    snapshot: &Snapshot,
    whole: bool,
) -> InstrumentHealth {
    let all: Vec<&InstrumentHealth> = summaries.iter().map(|summary| &summary.health).collect();
    let all = Healths(&all);
    let (reads, unstamped) = (all.sum(|h| h.reads), all.sum(|h| h.unstamped_reads));
    let (planned, achieved) = arrivals(snapshot);
    InstrumentHealth {
        planned_arrivals: planned,
        achieved_arrivals: achieved,
        pacing_lag_ms: pacing_lag(snapshot),
        kernel_timestamps: reads
            .zip(unstamped)
            .filter(|(reads, _)| *reads > 0)
            .map(|(reads, unstamped)| unstamped * 100 <= reads),
        reads,
        unstamped_reads: unstamped,
        disturbed_windows: windows(summaries),
        disturbed_windows_omitted: all
            .sum(|h| Some(h.disturbed_windows_omitted.unwrap_or(0)))
            .filter(|omitted| *omitted > 0),
        timer: all.known(|h| h.timer.clone()).next(),
        throttled_share: all.worst(|h| h.throttled_share),
        clock_step_ns: all.known(|h| h.clock_step_ns).max(),
        ports_peak: all.known(|h| h.ports_peak).max(),
        calibration: all.known(|h| h.calibration.clone()).max_by_key(|quote| quote.failed),
        wall_s: all.worst(|h| h.wall_s),
        cpu_user_s: all.seconds(|h| h.cpu_user_s),
        cpu_system_s: all.seconds(|h| h.cpu_system_s),
        steal_share: all.worst(|h| h.steal_share),
        fd_limit: all.known(|h| h.fd_limit).min(),
        fd_peak: all.known(|h| h.fd_peak).max(),
        ephemeral_ports: all.known(|h| h.ephemeral_ports).min(),
        planned_reconnects: all.known(|h| h.planned_reconnects).reduce(|a, b| a || b),
        connections_before_run: all.sum(|h| h.connections_before_run),
        connections_before_run_failed: all.sum(|h| h.connections_before_run_failed),
        peak_in_flight: all.sum(|h| h.peak_in_flight),
        conversations: all
            .0
            .iter()
            .map(|health| health.conversations)
            .reduce(|a, b| Some(add(a?, b?)))
            .flatten(),
        ..workers_and_rows(&all, whole)
    }
}

/// Health of the workers; and of the rows, if `whole` (all shards ended).
fn workers_and_rows(all: &Healths<'_>, whole: bool) -> InstrumentHealth {
    InstrumentHealth {
        workers: all.0.iter().map(|health| health.workers).sum(),
        worker_cpus: all.lists(|h| &h.worker_cpus),
        worker_cpu_shares: all.lists(|h| &h.worker_cpu_shares),
        worker_wait_shares: all.lists(|h| &h.worker_wait_shares),
        sink_offered: all.sum(|h| h.sink_offered).filter(|_| whole),
        sink_written: all.sum(|h| h.sink_written).filter(|_| whole),
        sink_left_out: all.sum(|h| h.sink_left_out).filter(|_| whole),
        sink_least_share_one_in: all.known(|h| h.sink_least_share_one_in).max(),
        sink_overflowed: all.sum(|h| h.sink_overflowed).filter(|_| whole),
        ..InstrumentHealth::default()
    }
}

struct Healths<'a>(&'a [&'a InstrumentHealth]);

impl Healths<'_> {
    /// `None` if one of them does not know it.
    fn sum(&self, get: fn(&InstrumentHealth) -> Option<u64>) -> Option<u64> {
        self.0.iter().map(|health| get(health)).sum()
    }

    fn lists<T: Clone>(&self, get: fn(&InstrumentHealth) -> &Vec<T>) -> Vec<T> {
        self.0.iter().flat_map(|health| get(health).clone()).collect()
    }

    fn seconds(&self, get: fn(&InstrumentHealth) -> Option<f64>) -> Option<f64> {
        self.0.iter().map(|health| get(health)).sum()
    }

    /// The values of those that know it.
    fn known<T>(&self, get: fn(&InstrumentHealth) -> Option<T>) -> impl Iterator<Item = T> {
        self.0.iter().filter_map(move |health| get(health))
    }

    fn worst(&self, get: fn(&InstrumentHealth) -> Option<f64>) -> Option<f64> {
        self.known(get).reduce(f64::max)
    }
}

/// The disturbed windows of all shards, in their order in time.
fn windows(summaries: &[&RunSummary]) -> Vec<DisturbedWindow> {
    let windows = summaries.iter().flat_map(|summary| summary.health.disturbed_windows.clone());
    let mut windows: Vec<_> = windows.collect();
    windows.sort_by(|a, b| a.start_s.total_cmp(&b.start_s));
    windows
}

fn add(a: Conversations, b: Conversations) -> Conversations {
    Conversations {
        started: a.started + b.started,
        finished: a.finished + b.finished,
        ended_early: a.ended_early + b.ended_early,
        retry_after_waits: a.retry_after_waits + b.retry_after_waits,
        retry_after_wait_s: a.retry_after_wait_s + b.retry_after_wait_s,
    }
}

/// Arrivals that were planned, and those that the generator did not miss; none in a closed model.
fn arrivals(snapshot: &Snapshot) -> (Option<u64>, Option<u64>) {
    let whole = snapshot.total(|_| true);
    let planned = Some(whole.counters().arrivals_planned).filter(|planned| *planned > 0);
    let late = whole.counters().arrivals_late_by_generator;
    (planned, planned.map(|planned| planned.saturating_sub(late)))
}

fn pacing_lag(snapshot: &Snapshot) -> Option<Lag> {
    let mut lag = Distribution::default();
    let of_cells = snapshot.cells().filter_map(|(_, cell)| cell.pacing_lag());
    of_cells.for_each(|of_cell| lag.merge(of_cell));
    Lag::from_distribution(&lag)
}
