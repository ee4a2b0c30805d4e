//! The one way to run a plan, for the program, the suites, the calibration and other programs.
//!
//! - [`Runner`], [`Finished`]: a plan is prepared, probed, carried out and summed up
//! - [`folder`]: the folder of a run; it is removed again where no load begins
//! - [`CommonStart`]: shards that begin at one instant
//! - [`facts`]: what the judge of a comparison must know besides its blocks
//! - [`ShardFacts`], [`ComparedShards`]: the same of a comparison that is divided
//! - [`knee`]: probes of a search for the highest load that keeps an objective
//! - [`Secrets`]: keeps credentials out of texts of the target
//! - [`affinity`], [`ChildProcess`], [`time`]: processes beside the load, their CPUs, and waits
//! - [`Bound`]: a limit on a figure

pub mod affinity;
mod child;
mod error;
pub mod facts;
pub mod folder;
pub mod knee;
mod runner;
mod secrets;
mod start;
pub mod time;

pub use child::ChildProcess;
pub use error::RunnerError;
pub use facts::{ComparedShards, ShardFacts};
pub use knee::Bound;
pub use runner::{Finished, Runner};
pub use secrets::Secrets;
pub use start::{CommonStart, StartAt};
