//! The knee of a target: the highest load at which enough requests keep an objective.
//!
//! - [`Objective`]: the objective of a request, and the share of requests that must meet it
//! - [`Search`]: which load to try next; it knows no sockets and no clock
//! - [`Found`], [`Probe`]: its result
//! - [`in_turns`]: several searches, probe by probe
//! - [`KneeReport`]: `knee.json` and its text
//!
//! `docs/statistics.md` explains the method for readers.

mod kept;
mod objective;
mod regression;
mod report;
mod result;
mod search;
mod text;
mod turns;

pub use kept::{Counts, KeptShare, State};
pub use objective::{Objective, ObjectiveError};
pub use report::{AtLeast, CurvePoint, FORMAT, Goodput, KneeReport, ProviderProbe, TargetKnee};
pub use result::{Confirmed, Found, Kind, Load, Phase, Probe, ProbeFigures};
pub use search::{Measured, Planned, Search, Settings};
pub use turns::in_turns;
