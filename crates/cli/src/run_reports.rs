//! The files of a run that people and other programs read.

use anyhow::Result;
use plimsoll_metrics::TimeRecord;
use plimsoll_report::{Style, csv, prometheus, stages_csv};
use plimsoll_run_files::{exemplars_json, interval_log, summary_json, timeline_json};
use plimsoll_runner::folder::{RunDir, file};

/// Columns of report.txt.
pub(crate) const FILE_WIDTH: usize = 120;

/// The results of a run.
pub(crate) struct RunReports<'r> {
    /// All that a page has.
    pub(crate) page: plimsoll_page::Input<'r>,
    /// What happened when.
    pub(crate) record: &'r TimeRecord,
    /// The report as text.
    pub(crate) text: String,
}

/// How report.txt is written.
pub(crate) const PLAIN: Style = Style::plain(FILE_WIDTH);

impl RunReports<'_> {
    /// Writes every file.
    pub(crate) fn write(&self, folder: &RunDir) -> Result<()> {
        let summary = self.page.summary;
        let contents = summary_json(summary)?;
        folder.release_space();
        folder.write(file::SUMMARY, contents.as_bytes())?;
        folder.write(file::TEXT, self.text.as_bytes())?;
        folder.write(file::CSV, csv(summary)?.as_bytes())?;
        folder.write(file::STAGES_CSV, stages_csv(summary)?.as_bytes())?;
        folder.write(file::PROMETHEUS, prometheus(summary).as_bytes())?;
        folder.write(file::TIMELINE, timeline_json(&self.record.timeline)?.as_bytes())?;
        folder.write(file::INTERVAL_LOG, interval_log(self.record).as_bytes())?;
        if let Some(exemplars) = self.page.exemplars {
            folder.write(file::EXEMPLARS, exemplars_json(exemplars)?.as_bytes())?;
        }
        Ok(folder.write_page(|| plimsoll_page::page(&self.page))?)
    }
}
