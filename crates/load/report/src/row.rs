//! `results.jsonl`: one line per turn, in the order in which turns end.
//!
//! A member that does not apply (no first token, no connection set-up) is left out. Times are in
//! milliseconds with up to six decimals, which is exact to the nanosecond.
//!
//! Where the writer could not keep up, the file is a sample of the turns. A row that stands for several says so in
//! `weight`: the inverse of the probability with which a turn like it was kept.

mod parse;
mod write;

pub use parse::{ParsedRow, parse_row};
pub use write::{RowContext, RowNames, write_row};
