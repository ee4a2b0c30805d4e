//! `results.jsonl`: one line per turn, in the order in which turns end.
//!
//! A member that does not apply (no first token, no connection set-up) is left out. Times are in
//! milliseconds with up to six decimals, which is exact to the nanosecond.

mod parse;
mod write;

pub use parse::{ParsedRow, parse_row};
pub use write::{RowContext, write_row};
