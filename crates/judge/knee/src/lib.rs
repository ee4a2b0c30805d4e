//! The knee of a target: the highest load at which enough requests keep an objective.
//!
//! - [`Objective`]: what each request must keep, and the share of requests that must
//! - [`Search`]: which load to try next; it knows no sockets and no clock
//! - [`Found`], [`Probe`]: its result
//!
//! `docs/statistics.md` explains the method for readers.

mod kept;
mod objective;
mod regression;
mod report;
mod result;
mod search;

pub use kept::{Counts, KeptShare, State};
pub use objective::{Objective, ObjectiveError};
pub use report::{AtLeast, FORMAT, KneeReport, Load, ProviderProbe};
pub use result::{Confirmed, Found, Kind, Phase, Probe, ProbeFigures};
pub use search::{Measured, Planned, Search, Settings};
