//! The files of a run's folder, written and read back.
//!
//! - [`summary_json`]: `summary.json`, the results
//! - [`row`]: the lines of `results.jsonl`, written during the run
//! - [`write_task_row`]: the lines of `tasks.jsonl`, likewise
//! - [`rebuild`]: a summary from those lines, if the run left none
//! - [`timeline_json`] and [`interval_log`]: what happened when
//! - [`exemplars_json`]: single requests with all their times
//! - [`pairs`]: `pairs.bin`, the blocks of a comparison to the nanosecond
//!
//! Nothing here knows how the load was generated, or how results are shown.

mod bounded_lines;
mod error;
mod exemplars;
mod interval_log;
pub mod pairs;
mod rebuild;
pub mod row;
mod stored;
mod summary;
mod task_row;
mod timeline;

pub use bounded_lines::{BoundedLines, MAX_LINE};
pub use error::RunFileError;
pub use exemplars::{exemplars_json, read_exemplars};
pub use interval_log::interval_log;
pub use rebuild::{Rebuilt, rebuild};
pub use row::{ParsedRow, RowContext, RowNames, parse_row, write_row};
pub use summary::{read_summary, summary_json};
pub use task_row::{RebuiltTasks, rebuild_tasks, write_task_row};
pub use timeline::{read_timeline, timeline_json};
