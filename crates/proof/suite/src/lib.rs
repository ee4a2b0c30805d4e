//! Suites: whole measurements of a gateway with one command, from its start to the findings.
//!
//! ```text
//! SuiteOptions --> Suite::run --> Bench: children on cores of their own, cells = jobs x passes, interleaved
//!                            |
//!                            v
//!                          Report: tables, findings, bounds, sizing, references --> text, suite.json
//! ```
//!
//! - [`SuiteOptions`]: what the user asked for
//! - [`Suite`]: the suites; each is a file that lists its cells and says what follows from them
//! - [`Report`]: the result
//! - [`become_child`]: what `plimsoll suite child` does, so that no process outlives the suite
//!
//! The load itself is `plimsoll-engine`'s, the numbers are `plimsoll-metrics`'. A sentence in a report is made by a
//! rule in `finding`, from figures alone.

mod bench;
mod cell;
mod child;
mod cores;
mod error;
mod finding;
mod gate;
mod job;
mod order;
mod regress;
mod report;
mod sizing;
mod statistics;
mod subject;
mod suite;
mod table;
mod words;

pub use cell::{Busy, Figures, MeasurementResult};
pub use child::become_child;
pub use cores::Cores;
pub use error::SuiteError;
pub use finding::{Finding, Tone};
pub use gate::Gate;
pub use order::{ExternalTarget, SuiteOptions};
pub use report::{Report, SCHEMA, Section, SuiteOutcome};
pub use suite::Suite;
pub use table::Table;
