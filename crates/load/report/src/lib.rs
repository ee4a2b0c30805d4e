//! Reports: renders summaries, and writes and reads `results.jsonl`.
//!
//! - [`text`]: for people, everything; [`run_screen`]: the same on a [`screen`] of 80 x 24
//! - [`json`], [`csv`], [`prometheus`]: for machines, all from the one catalog of metrics
//! - [`exposition`]: a page in Prometheus' text format
//! - [`timeline_json`] and [`interval_log`]: what happened when
//! - [`exemplars_json`]: single requests with all their times
//! - [`pairs`]: `pairs.bin`, the blocks of a comparison to the nanosecond
//! - [`row`]: the lines of `results.jsonl`, written during the run
//! - [`write_task_row`]: the lines of `tasks.jsonl`, likewise
//! - [`mod@format`] and [`table`]: numbers, dates and tables, the same wherever they are printed
//! - [`rebuild`]: a summary from those lines, if the run left none
//!
//! Nothing here knows how the load was generated.

mod bounded_lines;
mod color;
mod csv;
mod error;
mod escape;
mod exemplars;
pub mod exposition;
pub mod format;
mod interval_log;
mod json;
pub mod pairs;
mod prometheus;
mod rebuild;
pub mod row;
mod run_screen;
pub mod screen;
mod stored;
pub mod table;
mod task_row;
mod text;
mod timeline;

pub use bounded_lines::{BoundedLines, MAX_LINE};
pub use csv::csv;
pub use error::ReportError;
pub use escape::{escape_label, printable};
pub use exemplars::{exemplars_json, read_exemplars};
pub use interval_log::interval_log;
pub use json::{json, read_json};
pub use prometheus::prometheus;
pub use rebuild::{Rebuilt, rebuild};
pub use row::{ParsedRow, RowContext, RowNames, parse_row, write_row};
pub use run_screen::{run_notes, run_screen, run_stands_out, run_verdict};
pub use task_row::{RebuiltTasks, rebuild_tasks, write_task_row};
pub use text::{Style, text};
pub use timeline::{read_timeline, timeline_json};
