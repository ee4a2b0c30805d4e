//! Reports: renders summaries.
//!
//! - [`text`]: for people, everything; [`run_screen`]: the same on a [`screen`] of 80 x 24
//! - [`csv`], [`prometheus`]: for machines, from the one catalog of metrics
//! - [`exposition`]: a page in Prometheus' text format
//! - [`mod@format`] and [`table`]: numbers, dates and tables, the same wherever they are printed
//!
//! Nothing here knows how the load was generated.

mod color;
mod csv;
mod error;
mod escape;
pub mod exposition;
pub mod format;
mod load_levels;
mod prometheus;
mod run_screen;
pub mod screen;
mod shards;
mod stage_label;
pub mod table;
mod text;

pub use csv::{csv, stages_csv};
pub use error::ReportError;
pub use escape::{escape_label, printable};
pub use prometheus::prometheus;
pub use run_screen::{
    run_bounds, run_failures, run_notes, run_requests, run_screen, run_stands_out, run_verdict,
};
pub use shards::{odd_shards, shard_table};
pub use text::{Style, text};
