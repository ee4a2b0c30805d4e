//! Compares old runs with new ones: is the new version worse than the margins allow?
//!
//! **The unit is the run, not the request.** Thousands of requests of one run share its
//! connections, its place in memory and the state of the machine; only repeated runs show the
//! variation from one run to the next.
//!
//! ```text
//! StoredRun (a folder) -> obstacles (other plan? other machine? invalid?)
//!                      -> gates: log(figure) of each run -> Change -> pass, fail, inconclusive
//!                      -> cells: worth a look -> Comparison -> text, Markdown, JUnit, JSON
//! ```
//!
//! The statistics come from `plimsoll-stats`; `docs/statistics.md` explains them.

pub mod comparison;
pub mod error;
mod format;
pub mod gates;
mod judge;
pub mod machine;
pub mod plan;
mod screen;
mod text;

pub use comparison::{Comparison, Options, RunRef, SCHEMA, Times, compare};
pub use error::CompareError;
pub use gates::GateResult;
pub use judge::Rule;
pub use machine::StoredRun;
pub use plimsoll_metrics::Verdict;
