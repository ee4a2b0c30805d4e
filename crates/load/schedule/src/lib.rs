//! When: stages and pacers turn a spec and a seed into intended start times.
//!
//! - [`spec`]: what a user can ask for, and its notation `1:10s,@100..5000:60s,w10:5s`
//! - [`rate`]: the rate of a stage, its integral and the inverse of that
//! - [`schedule`]: the stages on the run's time axis
//! - [`arrivals`]: the open model: intended starts, striped over workers and shards
//! - [`clients`]: the closed model: when each virtual user is active
//! - [`error`]: what can be wrong with the stages
//!
//! Everything here is a pure function of (spec, seed, index). No clock is read and nothing sleeps.

pub mod arrivals;
pub mod clients;
pub mod error;
mod fingerprint;
mod pace;
pub mod rate;
pub mod schedule;
pub mod spec;

pub use arrivals::{Arrival, ArrivalIter};
pub use clients::ActiveWindow;
pub use error::{ScheduleError, StageFault, StageProblem};
pub use rate::Rate;
pub use schedule::{Schedule, StagePlan};
pub use spec::{Arrivals, Load, StageSpec, Stages};
