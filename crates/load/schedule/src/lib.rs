//! The schedule of a run: stages and a seed give the intended start times.
//!
//! - [`spec`]: the stages of a run, written `1:10s,@100..5000:60s,w10:5s`
//! - [`Rate`]: the rate of a stage, its integral and the inverse of the integral
//! - [`stage_table`]: the stages on the run's time axis, and the open model: intended starts,
//!   striped over workers and shards
//! - [`schedule`]: the public interface to all of it, with the closed model: when each virtual user
//!   is active
//! - [`pairs`]: the schedule of a comparison, in which every request goes to every target
//! - [`error`]: problems of the stages
//!
//! Everything here is a pure function of (spec, seed, index). No clock is read and no code sleeps.

mod arrival_process;
pub mod error;
pub mod pairs;
pub mod schedule;
pub mod spec;
pub mod stage_table;

pub use arrival_process::Rate;
pub use error::{ScheduleError, StageFault, StageProblem};
pub use pairs::{PairMode, PairOrder, PairSchedule, PairSpec, PairedArrivals, TargetWindow};
pub use schedule::{ActiveWindow, Schedule};
pub use spec::{Arrivals, Load, StageSpec, Stages};
pub use stage_table::{Arrival, ArrivalIter, StagePlan};
