//! Instrument health: Measurements of Plimsoll's own operation.

use std::collections::BTreeMap;

use plimsoll_measure::Side;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalog::Metric;
use crate::distribution::Distribution;
use crate::group_stats::GroupStats;

/// Lateness of the instrument, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Lag {
    /// Median.
    pub p50: f64,
    /// 99th percentile, by nearest rank even of few samples: one late start of few matters.
    pub p99: f64,
    /// Largest.
    pub max: f64,
    /// Mean: the generator's part of every cycle of a closed loop.
    #[serde(default)]
    pub mean: f64,
}

impl Lag {
    /// The figures of a distribution; `None` without values.
    pub fn from_distribution(distribution: &Distribution) -> Option<Self> {
        Some(Self {
            p50: distribution.nearest_rank(0.5)?.as_millis_f64(),
            p99: distribution.nearest_rank(0.99)?.as_millis_f64(),
            max: distribution.max()?.as_millis_f64(),
            mean: distribution.mean()?.as_millis_f64(),
        })
    }
}

/// The result of the last calibration on this host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CalibrationQuote {
    /// When it was made, like `2026-11-21 02:30:00 UTC`.
    pub when: String,
    /// Tests that passed.
    pub passed: u32,
    /// Tests that failed or could not run.
    pub failed: u32,
    /// Their names, like `T12 many streams at once`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed_tests: Vec<String>,
    /// Response time of a server that does nothing, in microseconds: the lower limit of measurable
    /// times.
    pub floor_us: Option<f64>,
    /// Highest rate of this host against such a server, in requests per second.
    pub max_rate: Option<f64>,
}

impl CalibrationQuote {
    /// Which tests failed: their names, or how many where an older record has none.
    pub fn failed_words(&self) -> String {
        match (self.failed, self.failed_tests.as_slice()) {
            (0, _) => "0 failed".to_owned(),
            (count, []) => format!("{count} failed"),
            (count, names) => format!("{count} failed ({})", names.join(", ")),
        }
    }
}

/// Conversations of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conversations {
    /// Conversations whose first turn began.
    pub started: u64,
    /// Conversations whose last turn completed, and whose others were all made.
    pub finished: u64,
    /// Conversations that ended before their last turn: a turn did not complete, or the stage
    /// ended. A session that an error ended is one of them, although its deletion may complete.
    pub ended_early: u64,
    /// How often a virtual user waited because a response asked for it (`Retry-After`).
    #[serde(default)]
    pub retry_after_waits: u64,
    /// How long the users waited so, together, in seconds. No response time contains it.
    #[serde(default)]
    pub retry_after_wait_s: f64,
}

/// A window in which workers did not look at their sockets: they were busy with other things, or
/// did not run. It judges nothing; what it added to the requests is part of each figure's bound.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DisturbedWindow {
    /// Seconds from the run's start.
    pub start_s: f64,
    /// Length in seconds.
    pub length_s: f64,
    /// Number of workers that did not look at their sockets for a part of it.
    pub workers: u32,
    /// Its known causes, in words.
    pub causes: Vec<String>,
}

/// Measurements of Plimsoll's own operation. `None` means unknown, never zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct InstrumentHealth {
    /// Arrivals that the schedule of the open stages planned.
    pub planned_arrivals: Option<u64>,
    /// Part of `planned_arrivals` that the generator did not delay past their stage: dispatched in
    /// time, or held up by the limit on requests in flight.
    pub achieved_arrivals: Option<u64>,
    /// How much earlier a generator that is never late would have dispatched the arrivals: from the
    /// intended start, or from the moment at which it would have had a slot of `max_in_flight`.
    pub pacing_lag_ms: Option<Lag>,
    /// Dispatched minus intended, of all requests, warm-up included.
    pub dispatch_lag_ms: Option<Lag>,
    /// User-space read minus the kernel's receive time stamp.
    pub read_lag_ms: Option<Lag>,
    /// Whether the kernel gave its receive time stamp with the reads: with at least 99 % of them.
    /// `None` without any read.
    pub kernel_timestamps: Option<bool>,
    /// Reads of responses.
    pub reads: Option<u64>,
    /// Part of `reads` without a kernel time stamp; stamped in user space instead.
    pub unstamped_reads: Option<u64>,
    /// Windows in which workers did not look at their sockets, in the order of time: the longest
    /// ones of the run.
    pub disturbed_windows: Vec<DisturbedWindow>,
    /// Shorter such windows, which are not listed.
    pub disturbed_windows_omitted: Option<u64>,
    /// Timer precision, and how the timer waits for deadlines.
    pub timer: Option<String>,
    /// Number of workers.
    pub workers: Option<u32>,
    /// The CPUs that workers were bound to, one each; empty if the scheduler chose.
    pub worker_cpus: Vec<u32>,
    /// CPU time divided by wall time, by worker.
    pub worker_cpu_shares: Vec<f64>,
    /// Time that each worker was ready to run and waited for a CPU, divided by wall time.
    pub worker_wait_shares: Vec<f64>,
    /// Share of the time in which the control group's CPU quota stopped the process.
    pub throttled_share: Option<f64>,
    /// Smallest step of the clock, in nanoseconds.
    pub clock_step_ns: Option<u64>,
    /// Local ports in use or in TIME-WAIT at once: an upper bound for this host while that is below
    /// three quarters of them, else those taken by connections to one address.
    pub ports_peak: Option<u64>,
    /// The calibration of this host, if it was calibrated.
    pub calibration: Option<CalibrationQuote>,
    /// Wall time of the load, in seconds.
    pub wall_s: Option<f64>,
    /// CPU time of the process in user space, in seconds.
    pub cpu_user_s: Option<f64>,
    /// CPU time of the process in the kernel, in seconds.
    pub cpu_system_s: Option<f64>,
    /// Share of CPU time that the hypervisor withheld during the load.
    pub steal_share: Option<f64>,
    /// Limit on open file descriptors.
    pub fd_limit: Option<u64>,
    /// Most file descriptors open at once.
    pub fd_peak: Option<u64>,
    /// Number of local ports for outgoing connections.
    pub ephemeral_ports: Option<u64>,
    /// Connections opened.
    pub connections_opened: Option<u64>,
    /// Requests over a connection that was used before.
    pub connections_reused: Option<u64>,
    /// Whether the profile closes connections after a number of requests.
    pub planned_reconnects: Option<bool>,
    /// Connections that were opened before the run, ahead of the first open stage.
    pub connections_before_run: Option<u64>,
    /// Part of these that failed; the load shows why.
    pub connections_before_run_failed: Option<u64>,
    /// Requests that were the first on a connection that was idle.
    pub connections_ahead: Option<u64>,
    /// Requests that were sent again, because the target had closed their connection.
    pub retries: Option<u64>,
    /// The median time for which the connections of these had been idle.
    pub retried_after_p50_ms: Option<f64>,
    /// Full TLS handshakes.
    pub handshakes_full: Option<u64>,
    /// TLS handshakes that resumed an earlier session.
    pub handshakes_resumed: Option<u64>,
    /// HTTP/2 requests whose body waited for the target's flow-control windows.
    pub send_stalls: Option<u64>,
    /// HTTP/2 responses that our own flow-control window may have held up.
    pub receive_stalls: Option<u64>,
    /// Most requests in flight at once.
    pub peak_in_flight: Option<u64>,
    /// Conversations.
    pub conversations: Option<Conversations>,
    /// Rows for `results.jsonl`, one per planned request: the sum of those written, left out and
    /// lost.
    pub sink_offered: Option<u64>,
    /// Rows written to `results.jsonl`.
    pub sink_written: Option<u64>,
    /// Rows left out by sampling while the disk or the CPU was too slow for all rows. The rows of a
    /// conversation are kept if its id, as a fraction of the range of ids, is below the current
    /// share; rows with an unexpected end are kept with 64 times that share. `weight` in a row is
    /// the number of rows that it represents.
    pub sink_left_out: Option<u64>,
    /// The smallest share that sampling kept, as one conversation in N; 1 if no row was left out.
    /// Conversations with an id below it are complete.
    pub sink_least_share_one_in: Option<u32>,
    /// Rows lost because the queue to the disk was full; they are missing from `results.jsonl`.
    pub sink_overflowed: Option<u64>,
    /// Why `results.jsonl` is incomplete, if it could not be written to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sink_error: Option<String>,
    /// Errors on the generator's side, by class.
    pub generator_errors: BTreeMap<String, u64>,
}

impl InstrumentHealth {
    /// Fills in from the counts of the whole run what the engine did not set.
    pub(crate) fn observe(&mut self, run: &GroupStats) {
        self.dispatch_lag_ms = self.dispatch_lag_ms.or_else(|| lag(run, Metric::DispatchLag));
        self.read_lag_ms = self.read_lag_ms.or_else(|| lag(run, Metric::ReadLag));
        let counters = run.counters();
        self.connections_opened.get_or_insert(counters.connections_opened);
        self.connections_reused.get_or_insert(counters.connections_reused);
        self.connections_ahead.get_or_insert(counters.connections_ahead);
        self.retries.get_or_insert(counters.retries);
        self.retried_after_p50_ms = self
            .retried_after_p50_ms
            .or_else(|| lag(run, Metric::RetriedAfter).map(|idle| idle.p50));
        self.handshakes_full.get_or_insert(counters.handshakes_full);
        self.handshakes_resumed.get_or_insert(counters.handshakes_resumed);
        self.send_stalls.get_or_insert(counters.send_stalls);
        self.receive_stalls.get_or_insert(counters.receive_stalls);
        for (class, count) in run.errors().iter().filter(|(c, _)| c.side() == Side::Generator) {
            self.generator_errors.entry(class.name().to_owned()).or_insert(*count);
        }
    }

    /// The CPU share of the busiest worker.
    pub fn busiest_worker(&self) -> Option<f64> {
        self.worker_cpu_shares.iter().copied().reduce(f64::max)
    }

    /// The largest share of the time in which a worker ran or waited for its CPU. A worker that has
    /// to wait for its CPU is as saturated as one that uses all of it.
    pub fn highest_demand(&self) -> Option<f64> {
        let waits = self.worker_wait_shares.iter().copied().chain(std::iter::repeat(0.0));
        self.worker_cpu_shares.iter().zip(waits).map(|(cpu, wait)| cpu + wait).reduce(f64::max)
    }

    /// The generator's lateness.
    pub fn lateness(&self) -> Option<Lag> {
        self.pacing_lag_ms.or(self.dispatch_lag_ms)
    }
}

fn lag(run: &GroupStats, metric: Metric) -> Option<Lag> {
    run.distribution(metric).and_then(Lag::from_distribution)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_tests_have_names_where_the_record_has_them() {
        let names = || vec!["T4 known stall".to_owned(), "T12 many streams at once".to_owned()];
        for (failed, failed_tests, words) in [
            (0, Vec::new(), "0 failed"),
            (2, Vec::new(), "2 failed"),
            (2, names(), "2 failed (T4 known stall, T12 many streams at once)"),
        ] {
            let quote = CalibrationQuote { failed, failed_tests, ..CalibrationQuote::default() };
            assert_eq!(quote.failed_words(), words);
        }
    }
}
