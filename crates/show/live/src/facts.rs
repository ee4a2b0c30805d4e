//! What the view is told about a run.

use plimsoll_measure::Nanos;
use plimsoll_metrics::{Metric, Snapshot, ThresholdResult};
use plimsoll_schedule::Load;

/// What is known of a run before its load.
#[derive(Clone, Debug)]
pub struct RunFacts {
    /// Its name.
    pub name: String,
    /// Its stages, in the order of time.
    pub stages: Vec<StageFacts>,
    /// The names of its scenarios, by id.
    pub scenarios: Vec<String>,
    /// The names of its targets, by id.
    pub targets: Vec<String>,
    /// Whether it compares its targets.
    pub compares: bool,
    /// The time that heads its report.
    pub time: Metric,
    /// The number of measured requests that ends it before its stages do.
    pub max_requests: Option<u64>,
}

impl RunFacts {
    /// The length of all stages.
    pub fn duration(&self) -> Nanos {
        self.stages.last().map_or(Nanos::ZERO, |stage| stage.end)
    }

    /// How far the run is, of its length: by its time, or by the measured requests that have ended.
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
    /// Its name.
    pub name: String,
    /// Whether it is left out of results.
    pub warmup: bool,
    /// Its start, after the run's.
    pub start: Nanos,
    /// Its end, after the run's start.
    pub end: Nanos,
    /// Its load.
    pub load: Load,
}

/// What happened in the last interval, about a second.
#[derive(Debug)]
pub struct Update<'a> {
    /// Time since the run's start.
    pub elapsed: Nanos,
    /// The current stage; the last one while responses are still awaited.
    pub stage: usize,
    /// Length of the interval.
    pub length: Nanos,
    /// Its counts and times.
    pub cells: &'a Snapshot,
    /// Requests in flight.
    pub in_flight: u64,
    /// Measured requests that have ended since the start.
    pub ended: u64,
    /// Whether the run ends before its stages do.
    pub ending: bool,
    /// By target: when it was taken out of the comparison, after the run's start.
    pub taken_out: &'a [Option<Nanos>],
    /// The watched processes.
    pub processes: Vec<ProcessNow>,
    /// CPU time of Plimsoll divided by time.
    pub own_cores: Option<f64>,
}

/// What a process uses.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessNow {
    /// Its name.
    pub name: String,
    /// CPU time divided by time since the last look; `None` if it is gone.
    pub cores: Option<f64>,
    /// Resident memory.
    pub rss_bytes: Option<u64>,
}

/// What the verdict would be if the run ended now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SoFar {
    /// Why it would be invalid, one sentence each; empty if it is valid so far.
    pub invalid: Vec<String>,
    /// The thresholds, judged by what there is.
    pub thresholds: Vec<ThresholdResult>,
}

/// How much longer a target takes than another, request by request.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Index of the target.
    pub target: usize,
    /// Index of the target that it is measured against.
    pub reference: usize,
    /// The time that is compared, in words.
    pub figure: String,
    /// The median of the differences in milliseconds, and the ends of an interval that holds at all
    /// looks together; `None` if there are too few requests.
    pub millis: Option<[f64; 3]>,
}
