//! The shared ground of the calibration and the suites, which both start processes, put load on
//! them and judge what was measured.
//!
//! - [`affinity`]: which CPUs the calling thread may use
//! - [`ChildProcess`]: a process that ends with its owner
//! - [`execute`], [`CompletedRun`]: a plan, run by the engine
//! - [`Bound`]: a limit on a figure
//! - [`statistics`]: quantiles, medians and paired differences
//! - [`time`] has waits

pub mod affinity;
mod bound;
mod child;
mod run;
pub mod statistics;
pub mod time;

pub use bound::Bound;
pub use child::ChildProcess;
pub use run::{CompletedRun, Observer, RunOptions, execute};
