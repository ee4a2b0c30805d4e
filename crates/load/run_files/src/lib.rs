//! The files of a run's folder, written and read back.
//!
//! - [`summary_json`]: `summary.json`, the results
//! - [`row`]: the lines of `results.jsonl`, written during the run
//! - [`write_task_row`]: the lines of `tasks.jsonl`, likewise
//! - [`rebuild`]: a summary from those lines, if the run left none
//! - [`timeline_json`] and [`interval_log`]: what happened when
//! - [`counts_bytes`]: `counts.bin`, what a shard counted, to be added up with other shards
//! - [`shard_status_json`]: `shard.json`, the last file of a run or a shard: the digests of the
//!   others
//! - [`pairs`]: `pairs.bin`, the blocks of a comparison to the nanosecond
//!
//! This crate does not know how the load was generated, or how results are shown.

mod error;
pub mod pairs;
mod rebuild;
pub mod row;
mod row_file;
mod stored;
mod task_row;

pub use error::RunFileError;
pub use rebuild::{COUNTS_SCHEMA, Counts, CountsView, Rebuilt, counts_bytes, read_counts, rebuild};
pub use row::{ParsedRow, RowContext, RowNames, parse_row, row_time, write_row};
pub use row_file::{
    BoundedLines, MAX_LINE, RowFormat, RowWriter, find_rows, interval_log, open_rows,
};
pub use stored::{
    FileDigest, ShardProgress, ShardSign, ShardStatus, changed_files, changed_since,
    read as read_stored, read_shard_progress, read_shard_sign, read_shard_status, read_summary,
    read_timeline, shard_progress_json, shard_sign_json, shard_status_json, summary_json,
    timeline_json,
};
pub use task_row::{RebuiltTasks, rebuild_tasks, write_task_row};
