//! Show: a summary in, bytes out.
//!
//! - [`text`]: what a person reads
//! - [`json`], [`csv`], [`prometheus`]: what machines read, all from the one catalog of metrics
//! - [`row`]: the lines of `results.jsonl`, written while the run lasts
//! - [`mod@format`] and [`table`]: numbers, dates and tables, the same in everything that is printed
//! - [`rebuild`]: a summary from those lines, where the run left none
//!
//! Nothing here knows how the run happened.

mod csv;
mod error;
pub mod format;
mod json;
mod prometheus;
mod rebuild;
pub mod row;
pub mod table;
mod text;

pub use csv::csv;
pub use error::ReportError;
pub use json::{json, read_json};
pub use prometheus::prometheus;
pub use rebuild::rebuild;
pub use row::{ParsedRow, RowContext, RowNames, parse_row, write_row};
pub use text::{Style, text};
