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

pub mod cells;
pub mod comparison;
mod defaults;
pub mod error;
mod format;
mod gate_words;
pub mod gates;
mod judge;
mod junit;
pub mod machine;
mod markdown;
pub mod plan;
mod screen;
mod simple;
mod stored_run;
mod text;

pub use comparison::Times;
pub use comparison::{Comparison, Options, RunRef, SCHEMA, compare};
pub use error::CompareError;
pub use gates::GateResult;
pub use judge::Rule;
pub use plimsoll_metrics::Verdict;
pub use stored_run::StoredRun;
