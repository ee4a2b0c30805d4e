//! The result of a run, and of the comparison that it made: how it is shown, kept and judged.

use std::collections::BTreeMap;

use anyhow::Result;
use plimsoll_metrics::{RunSummary, TimeRecord};
use plimsoll_report::levels::Levels;
use plimsoll_report::screen::{Rest, Screen};
use plimsoll_report::{Style, csv, prometheus, run_screen, stages_csv, text};
use plimsoll_run_files::{interval_log, summary_json, timeline_json};
use plimsoll_runner::folder::{RunDir, file};
use plimsoll_versus::{AddedThreshold, Conclusion, Versus};
use serde::Serialize;

use crate::console::{self, Show};
use crate::exit::{Exit, UsageError};

/// Columns of report.txt.
const WIDTH: usize = 120;

/// Result of a run.
#[derive(Clone, Copy)]
pub(crate) struct RunResult<'r> {
    pub(crate) summary: &'r RunSummary,
    /// Result of the comparison, if the run was one.
    pub(crate) versus: Option<&'r Versus>,
}

impl RunResult<'_> {
    /// The main figures; `rest` is where a reader finds the others.
    pub(crate) fn screen(&self, rest: Rest) -> Screen {
        match self.versus {
            Some(versus) => plimsoll_versus::screen(versus, self.summary, rest),
            None => run_screen(self.summary, rest),
        }
    }

    /// Prints as much of it as is wanted.
    pub(crate) fn print(&self, screen: &Screen, show: Show) -> Result<()> {
        match show {
            Show::Screen => console::print_screen(screen)?,
            Show::Full => {
                console::print(&self.text(console::full_style(WIDTH)))?;
            }
            Show::Json => console::print(&match self.versus {
                Some(versus) => plimsoll_versus::json(versus)?,
                None => levels_json(&Levels::new(self.summary))?,
            })?,
            Show::Nothing => {}
        }
        Ok(())
    }

    /// Writes the files that people and other programs read.
    pub(crate) fn write(&self, folder: &RunDir, record: &TimeRecord) -> Result<()> {
        let Self { summary, versus } = *self;
        let contents = summary_json(summary)?;
        folder.release_space();
        folder.write(file::SUMMARY, contents.as_bytes())?;
        folder.write(file::LEVELS, levels_json(&Levels::new(summary))?.as_bytes())?;
        folder.write(file::TEXT, self.text(Style::plain(WIDTH)).as_bytes())?;
        folder.write(file::CSV, csv(summary)?.as_bytes())?;
        folder.write(file::STAGES_CSV, stages_csv(summary)?.as_bytes())?;
        folder.write(file::PROMETHEUS, self.figures().as_bytes())?;
        folder.write(file::TIMELINE, timeline_json(&record.timeline)?.as_bytes())?;
        folder.write(file::INTERVAL_LOG, interval_log(record).as_bytes())?;
        if let Some(versus) = versus {
            folder.write(file::VERSUS, plimsoll_versus::json(versus)?.as_bytes())?;
            folder.write(file::VERSUS_CSV, plimsoll_versus::csv(versus).as_bytes())?;
        }
        let timeline = Some(&record.timeline);
        let page = plimsoll_page::Input { summary, timeline, versus };
        Ok(folder.write_page(|| plimsoll_page::page(&page))?)
    }

    /// Its figures in the format of Prometheus.
    pub(crate) fn figures(&self) -> String {
        let of_versus = self.versus.map(plimsoll_versus::prometheus);
        prometheus(self.summary) + &of_versus.unwrap_or_default()
    }

    /// The whole report, with one verdict; a comparison has the chapters of its run at its end.
    fn text(&self, style: Style) -> String {
        match self.versus {
            Some(versus) => plimsoll_versus::report(versus, self.summary).report(style),
            None => text(self.summary, style),
        }
    }

    /// The exit code of the run, or of the verdict of a comparison.
    pub(crate) fn exit(&self, allow_invalid: bool) -> Exit {
        let Some(versus) = self.versus else { return Exit::of_run(self.summary, allow_invalid) };
        match versus.conclusion(self.summary, allow_invalid) {
            Conclusion::Interrupted => Exit::Interrupted,
            Conclusion::Fail(_) => Exit::Fail,
            Conclusion::Inconclusive(_) if allow_invalid => Exit::of_run(self.summary, true),
            Conclusion::Invalid(_) => Exit::Invalid,
            Conclusion::Inconclusive(_) => Exit::Inconclusive,
            Conclusion::OtherAnswers | Conclusion::Pass => Exit::Pass,
        }
    }
}

/// A document on one line.
pub(crate) fn levels_json(levels: &(impl Serialize + ?Sized)) -> Result<String> {
    Ok(serde_json::to_string(levels)? + "\n")
}

/// Location of the details that a screen leaves out: in the folder, if there is one.
pub(crate) fn rest(folder: Option<&std::path::Path>) -> Rest {
    folder.map_or(Rest::Flag, |folder| Rest::Folder(folder.display().to_string()))
}

/// The plan's bounds on the overhead of targets.
pub(crate) fn parse_thresholds(
    written: &BTreeMap<String, Vec<String>>,
) -> Result<Vec<AddedThreshold>, UsageError> {
    let bounds =
        written.iter().flat_map(|(metric, bounds)| bounds.iter().map(move |one| (metric, one)));
    bounds
        .map(|(metric, bound): (&String, &String)| {
            AddedThreshold::parse(metric, bound)
                .map_err(|error| UsageError(format!("thresholds.{metric}: {error}")))
        })
        .collect()
}
