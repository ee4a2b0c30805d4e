//! Matches the requests of a run with a gateway's own log, request by request.
//!
//! ```text
//! results.jsonl -> Run (compact, by id) --.
//! log -> cells -> LogRow ------------------+-> Joiner -> books, times -> Join -> text, JSON
//!                    Map (shown) ---------'
//! ```
//!
//! - [`join()`]: all of it
//! - a log: JSON lines or CSV, also compressed by gzip
//! - [`MapChoice`], [`Mapping`]: which column means what; known gateways have a preset
//! - [`Join`]: the result, as `join.json` holds it; [`text()`]: for people
//!
//! Memory grows with the requests of the run, and not with the rows of the log: the log is read
//! once, row by row. Only lengths are compared, so clocks need not agree.

#[expect(clippy::excessive_nesting, reason = "one walk over rows, read from top to bottom")]
mod books;
mod caches;
mod cell;
mod check;
mod error;
mod id;
mod join;
mod json_row;
mod lines;
mod log_row;
mod map;
mod preset;
mod progress;
mod result;
mod rows;
mod run;
mod source;
mod stage_times;
mod stated_times;
mod text;
mod time;
mod times;

pub use error::JoinError;
pub use join::{Options, join};
pub use map::{LogOf, Map, Mapping};
pub use preset::{MapChoice, preset_names};
pub use progress::Reading;
pub use result::{
    Books, Disagreement, Examples, GroupTimes, Join, Quantiles, SCHEMA, StageTimes, Verdict,
};
pub use run::RunChoice;
pub use text::text;
pub use time::Unit;
