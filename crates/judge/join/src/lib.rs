//! Matches the requests of a run with a gateway's own log, request by request.
//!
//! ```text
//! results.jsonl -> Run (compact, by id) --.
//! log -> cells -> LogRow ------------------+-> Joiner -> books, times -> Join -> text, JSON
//!                    Map (shown) ---------'
//! ```
//!
//! - [`join()`]: the whole join
//! - log formats: JSON, CSV or Envoy's text, optionally compressed with gzip or zstd
//! - [`MapChoice`], [`Mapping`]: the meaning of columns, with presets for known gateways
//! - [`Join`]: the result, stored as `join.json`; [`text()`]: the result as text
//!
//! Memory grows with the requests of the run, not with the rows of the log, because the log is read
//! once, row by row. Only durations are compared, so clocks need not agree.

mod cell;
mod check;
mod error;
mod join;
mod map;
#[expect(clippy::excessive_nesting, reason = "one walk over rows, read from top to bottom")]
mod matcher;
mod rows;
mod run;
mod text;
mod time;
mod times;

pub use error::JoinError;
pub use join::{Options, join};
pub use map::{LogOf, Map, MapChoice, Mapping, preset_names};
pub use run::{Reading, RunChoice};
pub use text::text;
pub use time::Unit;
pub use times::{
    Disagreement, Examples, GroupTimes, Join, MatchCounts, Quantiles, SCHEMA, StageTimes, Verdict,
};
