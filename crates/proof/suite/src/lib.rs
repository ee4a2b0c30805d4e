//! Suites: whole measurements of a gateway with one command, from its start to the findings.
//!
//! ```text
//! SuiteOptions --> Suite::run --> SuiteRunner: gateway and provider on other cores,
//!                                   |          measurements x passes, interleaved
//!                                   v
//!                                 Report: tables, findings, bounds, sizing --> text, suite.json
//! ```
//!
//! - [`SuiteOptions`]: the user's choices
//! - [`Suite`]: the suites; each is a file that lists its measurements and concludes from them
//! - [`Report`]: the result
//! - [`become_child`]: the body of `plimsoll suite child`, so that no process outlives the suite
//!
//! The load itself is `plimsoll-engine`'s, the numbers are `plimsoll-metrics`'. Every sentence in a
//! report is made by a rule in `finding`, from figures alone.

mod baseline_diff;
mod bound;
mod child;
mod comparison_result;
mod cores;
mod error;
mod figures;
mod finding;
mod host;
mod http_get;
mod knee_result;
mod measurement;
mod options;
mod process_use;
mod prometheus;
mod ratio;
mod report;
mod result;
mod runner;
mod sizing;
mod suite;
mod target;
mod target_probe;

pub use bound::BoundResult;
pub use child::{become_child, supervise};
pub use comparison_result::ComparisonResult;
pub use cores::Cores;
pub use error::SuiteError;
pub use finding::{Finding, Tone};
pub use knee_result::KneeResult;
pub use options::SuiteOptions;
pub use prometheus::prometheus;
pub use report::{Accepted, Report, SCHEMA, Section, SuiteOutcome};
pub use result::{BusyShares, ERROR_GATE, Figures, MeasurementResult, Unusable};
pub use sizing::HEADROOM;
pub use suite::{GatewaysFile, GatewaysResult, Suite, layer_part};
pub use target::SuiteTarget;

#[cfg(test)]
mod fixtures;
