//! A comparison that was judged, and the run that it rests on: how it is shown and kept.

use std::collections::BTreeMap;

use anyhow::Result;
use plimsoll_metrics::{Judgement, RunExemplars, RunSummary, TimeRecord};
use plimsoll_report::screen::Screen;
use plimsoll_report::{Style, prometheus as summary_prometheus, text as summary_text};
use plimsoll_runner::folder::{RunDir, file};
use plimsoll_versus::{AddedThreshold, Versus, csv, json, prometheus, text};

use crate::console::{self, Show};
use crate::exit::{Exit, UsageError};
use crate::run_reports::{FILE_WIDTH, PLAIN, RunReports};

/// Columns of the result in files.
pub(crate) const WIDTH: usize = 80;

/// A comparison that was judged, and the run that it rests on.
#[derive(Clone, Copy)]
pub(crate) struct Judged<'r> {
    pub(crate) versus: &'r Versus,
    pub(crate) summary: &'r RunSummary,
    pub(crate) record: &'r TimeRecord,
    pub(crate) exemplars: Option<&'r RunExemplars>,
}

impl Judged<'_> {
    /// Prints as much of it as is wanted.
    pub(crate) fn print(&self, screen: &Screen, show: Show) -> Result<()> {
        match show {
            Show::Screen => console::print_screen(screen)?,
            Show::Full => {
                let [own, runs] = [WIDTH, FILE_WIDTH].map(console::full_style);
                console::print(&self.text(own.width, runs))?;
            }
            Show::Json => console::print(&json(self.versus)?)?,
            Show::Nothing => {}
        }
        Ok(())
    }

    /// Writes its files.
    pub(crate) fn write(&self, run_dir: &RunDir) -> Result<()> {
        let (timeline, versus) = (Some(&self.record.timeline), Some(self.versus));
        let (summary, exemplars) = (self.summary, self.exemplars);
        let page = plimsoll_page::Input { summary, timeline, exemplars, versus, server: &[] };
        let text = self.text(WIDTH, PLAIN);
        RunReports { page, record: self.record, text }.write(run_dir)?;
        run_dir.write(file::VERSUS, json(self.versus)?.as_bytes())?;
        run_dir.write(file::VERSUS_CSV, csv(self.versus).as_bytes())?;
        Ok(run_dir.write(file::PROMETHEUS, self.figures().as_bytes())?)
    }

    /// Its figures in the format of Prometheus.
    pub(crate) fn figures(&self) -> String {
        format!("{}{}", summary_prometheus(self.summary), prometheus(self.versus))
    }

    /// The comparison, and the report of its run below it.
    fn text(&self, width: usize, style: Style) -> String {
        format!("{}\n{}", text(self.versus, self.summary, width), summary_text(self.summary, style))
    }

    /// The exit code: that of the run, and that of the comparison.
    pub(crate) fn exit(&self, allow_invalid: bool) -> Exit {
        let versus = self.versus;
        let judgement =
            if allow_invalid { versus.judgement_of_bounds() } else { versus.judgement() };
        let of_versus = match judgement {
            Judgement::Pass => Exit::Pass,
            Judgement::Fail => Exit::Fail,
            Judgement::Inconclusive(_) if allow_invalid => Exit::Pass,
            Judgement::Inconclusive(_) => Exit::Invalid,
        };
        // Whether the run is valid is in the comparison's own judgement.
        Exit::of_run(self.summary, true).worst(of_versus)
    }
}

/// The bounds as the plan has them.
pub(crate) fn parse_thresholds(
    written: &BTreeMap<String, Vec<String>>,
) -> Result<Vec<AddedThreshold>, UsageError> {
    written
        .iter()
        .flat_map(|(metric, bounds): (&String, &Vec<String>)| {
            bounds
                .iter()
                .map(|bound: &String| {
                    AddedThreshold::parse(metric, bound)
                        .map_err(|error| UsageError(format!("thresholds.{metric}: {error}")))
                })
                .collect::<Vec<_>>()
        })
        .collect()
}
