//! What the instrument measured of itself.

use std::collections::BTreeMap;

use plimsoll_measure::Side;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalog::Metric;
use crate::cell::GroupStats;
use crate::distribution::Distribution;

/// Lateness of the instrument, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Lag {
    /// Median.
    pub p50: f64,
    /// 99th percentile, by nearest rank however few the samples: one late start of few matters.
    pub p99: f64,
    /// Largest.
    pub max: f64,
    /// Mean: what it took from every cycle of a closed loop.
    #[serde(default)]
    pub mean: f64,
}

impl Lag {
    /// The figures of a distribution; `None` without values.
    pub fn of(distribution: &Distribution) -> Option<Self> {
        Some(Self {
            p50: distribution.nearest_rank(0.5)?.as_millis_f64(),
            p99: distribution.nearest_rank(0.99)?.as_millis_f64(),
            max: distribution.max()?.as_millis_f64(),
            mean: distribution.mean()?.as_millis_f64(),
        })
    }
}

/// What the last calibration on this host found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CalibrationQuote {
    /// When it was made, like `2026-11-21 02:30:00 UTC`.
    pub when: String,
    /// Tests that kept their bound.
    pub passed: u32,
    /// Tests that broke it or could not be carried out.
    pub failed: u32,
    /// Response time of a server that does nothing, in microseconds: the instrument's own floor.
    pub floor_us: Option<f64>,
    /// Highest rate of this host against such a server, in requests per second.
    pub max_rate: Option<f64>,
}

/// Conversations of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Conversations {
    /// First turn begun.
    pub started: u64,
    /// Last turn done.
    pub finished: u64,
    /// Ended before their last turn.
    pub abandoned: u64,
}

/// Little's law on one stage: in a steady state the mean number under way is the rate of completion
/// times the mean time there, whatever the distributions (J. D. C. Little, 1961). Counted here from the
/// intended start: what the engine watched against what the samples say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LittlesLaw {
    /// Name of the stage.
    pub stage: String,
    /// N: mean number under way, as the engine watched it.
    pub in_flight: f64,
    /// X R: sum of all response times over the length of the stage, each as far as it lay within it.
    pub rate_times_time: f64,
}

impl LittlesLaw {
    /// `|N - X R| / N`.
    pub fn error(&self) -> f64 {
        (self.in_flight - self.rate_times_time).abs() / self.in_flight
    }
}

/// What the instrument measured of itself. `None` means unknown, never zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct InstrumentHealth {
    /// Arrivals that the schedule of the open stages asked for.
    pub planned_arrivals: Option<u64>,
    /// Of these, the ones that the pacer released while their stage lasted, even if a bound on
    /// requests in flight then held them back.
    pub achieved_arrivals: Option<u64>,
    /// How late the pacer released arrivals: the generator's own lateness, without any wait for a
    /// free place. Judged instead of `dispatch_lag_ms` where it is known.
    pub pacing_lag_ms: Option<Lag>,
    /// Dispatched minus intended, of all requests, warm-up included.
    pub dispatch_lag_ms: Option<Lag>,
    /// User-space read minus the kernel's receive time stamp.
    pub read_lag_ms: Option<Lag>,
    /// Was the kernel's receive time stamp used?
    pub kernel_timestamps: Option<bool>,
    /// Timer precision and how deadlines are waited for.
    pub timer: Option<String>,
    /// Workers.
    pub workers: Option<u32>,
    /// The CPUs that workers were bound to, one each; none where the scheduler was free to choose.
    pub worker_cpus: Vec<u32>,
    /// CPU time over wall time, by worker.
    pub worker_cpu_shares: Vec<f64>,
    /// Time that each worker was ready to run and waited for a CPU, over wall time.
    pub worker_wait_shares: Vec<f64>,
    /// Share of the time in which the control group's CPU quota held the process up.
    pub throttled_share: Option<f64>,
    /// Smallest step of the clock, in nanoseconds.
    pub clock_step_ns: Option<u64>,
    /// TCP segments that this host sent again during the load, to whomever.
    pub retransmits: Option<u64>,
    /// Most local ports in use or not yet released (TIME-WAIT) at once, on this host, at most.
    pub ports_peak: Option<u64>,
    /// The calibration of this host; `None` where there was none.
    pub calibration: Option<CalibrationQuote>,
    /// Wall time of the load, in seconds.
    pub wall_s: Option<f64>,
    /// CPU time of the process in user space, in seconds.
    pub cpu_user_s: Option<f64>,
    /// CPU time of the process in the kernel, in seconds.
    pub cpu_system_s: Option<f64>,
    /// Context switches of the process's own will (it waited).
    pub voluntary_switches: Option<u64>,
    /// Context switches forced on the process (others wanted its CPU).
    pub involuntary_switches: Option<u64>,
    /// Share of CPU time that the hypervisor withheld during the load.
    pub steal_share: Option<f64>,
    /// Limit on open file descriptors.
    pub fd_limit: Option<u64>,
    /// Most file descriptors open at once.
    pub fd_peak: Option<u64>,
    /// Local ports for outgoing connections.
    pub ephemeral_ports: Option<u64>,
    /// Connections opened.
    pub connections_opened: Option<u64>,
    /// Requests over a connection used before.
    pub connections_reused: Option<u64>,
    /// TLS handshakes in full.
    pub handshakes_full: Option<u64>,
    /// TLS handshakes that resumed an earlier session.
    pub handshakes_resumed: Option<u64>,
    /// Requests whose body waited for the target's flow-control windows (HTTP/2).
    pub send_stalls: Option<u64>,
    /// Answers that our own flow-control window may have held up (HTTP/2).
    pub receive_stalls: Option<u64>,
    /// Most requests under way at once.
    pub peak_in_flight: Option<u64>,
    /// Conversations.
    pub conversations: Option<Conversations>,
    /// Rows that there were for `results.jsonl`: one for each planned request. Written, left out and lost add up to it.
    pub sink_offered: Option<u64>,
    /// Rows written to `results.jsonl`.
    pub sink_written: Option<u64>,
    /// Rows left out by a rule while the disk or the CPU was too slow for all: those of conversations whose id, read
    /// as a fraction of the range of ids, is not below the share of the moment. Rows that did not end as they should
    /// are kept with 64 times the share. Each row says in `weight` how many it stands for.
    pub sink_left_out: Option<u64>,
    /// The smallest such share, as one conversation in so many; 1 where none was left out. Conversations with an id
    /// below it are complete.
    pub sink_least_share_one_in: Option<u32>,
    /// Rows that did not fit the queue to the disk, and are missing from `results.jsonl` by no rule.
    pub sink_overflowed: Option<u64>,
    /// Errors on the generator's side, by class.
    pub generator_errors: BTreeMap<String, u64>,
    /// Little's law, by stage.
    pub littles_law: Vec<LittlesLaw>,
}

impl InstrumentHealth {
    /// Fills in what the measurements of the whole run tell and the engine left open.
    pub(crate) fn observe(&mut self, run: &GroupStats) {
        let lag = |metric| run.distribution(metric).and_then(Lag::of);
        self.dispatch_lag_ms = self.dispatch_lag_ms.or_else(|| lag(Metric::DispatchLag));
        self.read_lag_ms = self.read_lag_ms.or_else(|| lag(Metric::ReadLag));
        let counters = run.counters();
        self.connections_opened.get_or_insert(counters.connections_opened);
        self.connections_reused.get_or_insert(counters.connections_reused);
        self.handshakes_full.get_or_insert(counters.handshakes_full);
        self.handshakes_resumed.get_or_insert(counters.handshakes_resumed);
        self.send_stalls.get_or_insert(counters.send_stalls);
        self.receive_stalls.get_or_insert(counters.receive_stalls);
        for (class, count) in run.errors().iter().filter(|(c, _)| c.side() == Side::Generator) {
            self.generator_errors.entry(class.name().to_owned()).or_insert(*count);
        }
    }

    /// The busiest worker's share of its CPU.
    pub fn busiest_worker(&self) -> Option<f64> {
        self.worker_cpu_shares.iter().copied().reduce(f64::max)
    }

    /// Of the worker that wanted its CPU most: the share of the time in which it had it or waited for
    /// it. A worker that others keep from its CPU is as saturated as one that uses all of it.
    pub fn most_wanted(&self) -> Option<f64> {
        let waits = self.worker_wait_shares.iter().copied().chain(std::iter::repeat(0.0));
        self.worker_cpu_shares.iter().zip(waits).map(|(cpu, wait)| cpu + wait).reduce(f64::max)
    }

    /// The generator's own lateness.
    pub fn lateness(&self) -> Option<Lag> {
        self.pacing_lag_ms.or(self.dispatch_lag_ms)
    }
}
