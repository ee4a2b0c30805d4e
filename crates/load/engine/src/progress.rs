//! The progress of a run, for an observer such as the terminal display.

use plimsoll_measure::{Moment, Nanos, StageId};
pub use plimsoll_metrics::ProcessNow;
use plimsoll_metrics::{GroupStats, Snapshot, TimeSeries};

/// The progress of a run. An observer gets one about every second.
#[derive(Debug)]
pub struct Progress<'a> {
    /// When the load began, by the run's clock.
    pub origin: Moment,
    /// Time since the run's start.
    pub elapsed: Nanos,
    /// Length of all stages.
    pub duration: Nanos,
    /// The current stage; the last one while responses are still awaited.
    pub stage: StageId,
    /// Counts of the last interval, over all stages, scenarios and targets.
    pub interval: &'a GroupStats,
    /// Length of that interval.
    pub interval_length: Nanos,
    /// Counts since the start.
    pub total: &'a GroupStats,
    /// Requests in flight.
    pub in_flight: u64,
    /// Counts of the last interval, by stage, scenario and target.
    pub cells: &'a Snapshot,
    /// Counts since the start by stage, scenario and target, without the last interval.
    pub before: &'a Snapshot,
    /// Counts and times by second, including the last interval.
    pub series: &'a TimeSeries,
    /// The watched processes.
    pub processes: Vec<ProcessNow>,
    /// By target: when it was taken out of the comparison, after the run's start.
    pub taken_out: &'a [Option<Nanos>],
}
