//! The capacity of a target: the highest load at which enough requests meet an objective.
//!
//! - [`Objective`]: the objective of a request, and the share of requests that must meet it
//! - [`Search`]: chooses the next load to probe, without sockets or a clock
//! - [`Found`], [`Probe`]: the result
//! - [`in_turns`]: runs several searches, probe by probe
//! - [`KneeReport`]: `knee.json` and its text
//!
//! `docs/statistics.md` explains the method for readers.

mod objective;
mod probe;
mod report;
mod result;
mod search;
mod text;

pub use objective::{Objective, ObjectiveError};
pub use plimsoll_rules::Finding;
pub use probe::{
    Counts, Failure, KeptShare, Measured, Phase, Planned, Probe, ProbeFigures, ProbeRequest, State,
};
pub use report::{AtLeast, FORMAT, Goodput, KneeReport, TargetKnee, in_turns};
pub use result::{Found, Kind, Load, Verdict};
pub use search::{Search, Settings};
