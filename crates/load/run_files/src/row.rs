//! `results.jsonl`: one line per turn, in the order in which turns end.
//!
//! A key that does not apply (no first token, no connection opened) is left out. Times are in
//! milliseconds with up to six decimals, which is exact to the nanosecond.
//!
//! If the writer cannot keep up, the file is a sample of the turns. The `weight` of a row is then
//! the number of turns that it represents.

mod columns;
mod parse;
mod write;

pub use columns::{COLUMNS, Column, ParsedRow, row_time};
pub use parse::parse_row;
pub use write::{RowContext, RowNames, write_row};
