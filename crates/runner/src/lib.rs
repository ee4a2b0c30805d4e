//! The shared ground of the calibration, the suites and comparisons, which start processes, put
//! load on them and judge what was measured.
//!
//! - [`affinity`]: which CPUs the calling thread may use
//! - [`ChildProcess`]: a process that ends with its owner
//! - [`execute`], [`CompletedRun`]: a plan, run by the engine
//! - [`execute_comparison`], [`CompletedComparison`]: the same for a plan that compares targets
//! - [`facts`]: what the judge of a comparison must know besides its blocks
//! - [`knee`]: probes of a search for the highest load that keeps an objective
//! - [`RunWatcher`]: sees the runs of a search or a suite while they go on
//! - [`Bound`]: a limit on a figure
//! - [`time`] has waits

pub mod affinity;
mod bound;
mod child;
pub mod facts;
pub mod knee;
mod run;
pub mod time;
mod watcher;

pub use bound::Bound;
pub use child::ChildProcess;
pub use run::{
    CompletedComparison, CompletedRun, Observer, RunOptions, execute, execute_comparison,
    execute_watched,
};
pub use watcher::RunWatcher;
