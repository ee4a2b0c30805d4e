//! Reports: renders summaries.
//!
//! - [`screen`]: the document of a result, rendered as the end of a command on 80 x 24, a file, a
//!   page and Markdown; [`run_screen`]: the document of a run, [`text`]: its file
//! - [`levels`]: the figures of each level of load, for programs, pages and the screen
//! - [`csv`], [`prometheus()`]: for machines, from the one catalog of metrics
//! - [`mod@format`] and [`table`]: numbers, dates and tables, the same wherever they are printed
//!
//! Independent of how the load was generated.

mod csv;
mod escape;
pub mod format;
pub mod levels;
pub mod prometheus;
mod run_screen;
pub mod screen;
mod shown_summary;
pub mod table;

pub use csv::{ReportError, csv, stages_csv};
pub use escape::printable;
pub use prometheus::prometheus;
pub use run_screen::{
    environment, figure_text, finding_item, run_bounds, run_findings, run_notes, run_requests,
    run_screen, run_verdict, text,
};
pub use screen::Style;
pub use shown_summary::{StageName, counted_stage, shown_summary};
