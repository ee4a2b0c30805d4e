//! Input of the view.

use plimsoll_measure::Nanos;
use plimsoll_metrics::{Metric, Snapshot, ThresholdResult};
use plimsoll_schedule::Load;

/// Facts about a run, known before its load.
#[derive(Clone, Debug)]
pub struct RunFacts {
    /// Name of the run.
    pub name: String,
    /// Stages in chronological order.
    pub stages: Vec<StageFacts>,
    /// Names of its scenarios, by id.
    pub scenarios: Vec<String>,
    /// Names of its targets, by id.
    pub targets: Vec<String>,
    /// Whether the run compares its targets.
    pub compares: bool,
    /// The report's headline time.
    pub time: Metric,
    /// Number of measured requests that ends the run before its stages do.
    pub max_requests: Option<u64>,
}

impl RunFacts {
    /// Total length of all stages.
    pub fn duration(&self) -> Nanos {
        self.stages.last().map_or(Nanos::ZERO, |stage| stage.end)
    }

    /// Progress of the run within its length: by its time, or by the measured requests that have
    /// ended.
    pub fn position(&self, elapsed: Nanos, ended: u64) -> Nanos {
        let of_requests = self.max_requests.map_or(0, |most| {
            let done = u128::from(self.duration().as_u64()) * u128::from(ended.min(most));
            u64::try_from(done / u128::from(most.max(1))).unwrap_or_default()
        });
        elapsed.min(self.duration()).max(Nanos::new(of_requests))
    }
}

/// A stage.
#[derive(Clone, Debug)]
pub struct StageFacts {
    /// Name of the stage.
    pub name: String,
    /// Whether results exclude it.
    pub warmup: bool,
    /// Start, as an offset from the run's start.
    pub start: Nanos,
    /// End, as an offset from the run's start.
    pub end: Nanos,
    /// Load of the stage.
    pub load: Load,
}

/// Results of the last interval, about a second.
#[derive(Debug)]
pub struct Update<'a> {
    /// Time since the run's start.
    pub elapsed: Nanos,
    /// Index of the current stage; the last one while waiting for responses.
    pub stage: usize,
    /// Length of the interval.
    pub length: Nanos,
    /// Counts and times of the interval.
    pub cells: &'a Snapshot,
    /// Requests in flight.
    pub in_flight: u64,
    /// Measured requests that have ended since the start.
    pub ended: u64,
    /// Whether the run ends before its stages do.
    pub ending: bool,
    /// By target: time at which it was dropped from the comparison, since the run's start.
    pub taken_out: &'a [Option<Nanos>],
    /// Monitored processes.
    pub processes: Vec<ProcessNow>,
    /// CPU time of Plimsoll divided by time.
    pub own_cores: Option<f64>,
}

/// Resource usage of a process.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessNow {
    /// Name of the process.
    pub name: String,
    /// CPU time divided by time since the last check; `None` if the process is gone.
    pub cores: Option<f64>,
    /// Resident memory.
    pub rss_bytes: Option<u64>,
}

/// The verdict so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SoFar {
    /// Reasons why the run is invalid so far, one sentence each; empty if it is valid.
    pub invalid: Vec<String>,
    /// Thresholds, judged by the data so far.
    pub thresholds: Vec<ThresholdResult>,
}

/// Overhead of a target over another, request by request.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Index of the target.
    pub target: usize,
    /// Index of the target it is compared with.
    pub reference: usize,
    /// Name of the compared time.
    pub figure: String,
    /// The median of the differences in milliseconds, and the ends of an always-valid interval;
    /// `None` if there are too few requests.
    pub millis: Option<[f64; 3]>,
}
