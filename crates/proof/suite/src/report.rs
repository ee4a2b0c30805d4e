//! The report of a suite: the contents of `suite.json`, and the text for people.

mod text;

use plimsoll_metrics::{Environment, Judgement};
use plimsoll_report::table::Table;
use serde::{Deserialize, Serialize};

use crate::bound::BoundResult;
use crate::finding::{self, Finding};
use crate::result::MeasurementResult;
use crate::runner::SuiteRunner;

/// Version of the layout of `suite.json`.
pub const SCHEMA: &str = "plimsoll.suite/2";

/// Older layouts, of which the keys are still read.
pub(crate) const OLDER_SCHEMAS: [&str; 1] = ["plimsoll.suite/1"];

/// A table under its title.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// Title.
    pub title: String,
    /// The table; it may be empty.
    pub table: Table,
    /// Notes below the table.
    pub notes: Vec<String>,
}

impl Section {
    pub(crate) fn new(title: impl Into<String>, table: Table) -> Self {
        Self { title: title.into(), table, notes: Vec::new() }
    }

    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
}

/// The outcome of a suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SuiteOutcome {
    /// Every bound that decides was kept.
    Pass,
    /// One was broken.
    Fail,
    /// A measurement is invalid or missing, or a bound could not be judged.
    Invalid,
    /// The user ended it early.
    Interrupted,
}

/// The report of a suite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "facts of a run, independent of each other")]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: String,
    /// Name of the suite.
    pub suite: String,
    /// Its subject, in a line.
    pub title: String,
    /// Wall-clock time of the start, `YYYYMMDDThhmmssZ`.
    pub started: String,
    /// The command line.
    pub command: String,
    /// Whether the measurements were short.
    pub quick: bool,
    /// Whether the binary is a debug build, whose figures must not be used.
    pub debug_build: bool,
    /// Whether the user ended it early.
    pub interrupted: bool,
    /// The gateway under test, and where everything ran.
    #[serde(alias = "subject")]
    pub setup: Vec<(String, String)>,
    /// The machine.
    pub environment: Environment,
    /// Every measurement.
    #[serde(alias = "cells")]
    pub measurements: Vec<MeasurementResult>,
    /// The tables.
    pub sections: Vec<Section>,
    /// Sentences that follow from the figures.
    pub findings: Vec<Finding>,
    /// The judged bounds.
    #[serde(alias = "gates")]
    pub bounds: Vec<BoundResult>,
    /// The number of instances for some rates.
    pub sizing: Option<Section>,
    /// Published figures of other gateways, on other hardware.
    pub references: Vec<Section>,
    /// Parts that were left out, and why.
    pub skipped: Vec<String>,
}

impl Report {
    /// A report about everything that was measured so far.
    pub(crate) fn begin(suite: &str, title: &str, runner: &SuiteRunner<'_>) -> Self {
        let options = runner.options;
        Self {
            schema: SCHEMA.to_owned(),
            suite: suite.to_owned(),
            title: title.to_owned(),
            started: options.started.clone(),
            command: options.command.clone(),
            quick: options.quick,
            debug_build: cfg!(debug_assertions),
            interrupted: runner.is_interrupted(),
            setup: setup(runner),
            environment: options.environment.clone(),
            measurements: runner.results.clone(),
            sections: Vec::new(),
            findings: Vec::new(),
            bounds: Vec::new(),
            sizing: None,
            references: Vec::new(),
            skipped: runner.skipped.clone(),
        }
    }

    /// Adds the findings that every suite has: errors, tails, Little's law, invalid measurements.
    pub(crate) fn conclude(mut self) -> Self {
        self.findings.extend(finding::errors(&self.measurements));
        self.findings.extend(finding::tails(&self.measurements));
        self.findings.extend(finding::littles_law(&self.measurements));
        self.findings.extend(finding::invalid(&self.measurements));
        self
    }

    /// The outcome. Validity comes before the bounds, as for a single run.
    pub fn outcome(&self, allow_invalid: bool) -> SuiteOutcome {
        let deciding = || self.bounds.iter().filter(|bound| bound.decides);
        let measured = self.measurements.iter().any(|result| !result.passes.is_empty());
        if self.interrupted {
            SuiteOutcome::Interrupted
        } else if !measured
            || (!allow_invalid && self.measurements.iter().any(MeasurementResult::is_invalid))
        {
            SuiteOutcome::Invalid
        } else if deciding().any(|bound| bound.judgement == Judgement::Fail) {
            SuiteOutcome::Fail
        } else if deciding().any(|bound| matches!(bound.judgement, Judgement::Inconclusive(_)))
            && !allow_invalid
        {
            SuiteOutcome::Invalid
        } else {
            SuiteOutcome::Pass
        }
    }

    /// The report as text, wrapped at `width` columns.
    pub fn text(&self, width: usize) -> String {
        text::render(self, width)
    }
}

fn setup(runner: &SuiteRunner<'_>) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    let mut line = |name: &str, value: String| lines.push((name.to_owned(), value));
    let reference = || {
        let version = env!("CARGO_PKG_VERSION");
        format!("the reference gateway of plimsoll {version}, one worker, in a separate process")
    };
    let target = runner.options.target.as_ref();
    line("under test", target.map_or_else(reference, |target| target.url.clone()));
    if let Some(build) = &runner.version {
        line("build", build.clone());
    }
    let placement = if runner.options.target.is_some() {
        "load on all cores of this machine; where the target runs is not known here".to_owned()
    } else {
        format!(
            "all on this machine over loopback, plain TCP unless a row says otherwise; {}",
            runner.cores.text()
        )
    };
    line("placement", placement);
    for (index, command) in runner.commands.iter().enumerate() {
        line(&format!("gateway {}", index + 1), command.clone());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bound::Requirement;
    use crate::result::Figures;
    use plimsoll_report::format::time;

    fn report(results: Vec<MeasurementResult>, bounds: Vec<BoundResult>) -> Report {
        Report {
            schema: SCHEMA.to_owned(),
            suite: "x".to_owned(),
            title: "x".to_owned(),
            started: "S".to_owned(),
            command: "plimsoll suite x".to_owned(),
            quick: false,
            debug_build: false,
            interrupted: false,
            setup: Vec::new(),
            environment: Environment::default(),
            measurements: results,
            sections: Vec::new(),
            findings: Vec::new(),
            bounds,
            sizing: None,
            references: Vec::new(),
            skipped: Vec::new(),
        }
    }

    fn result(invalid: bool) -> MeasurementResult {
        let invalid = invalid.then(|| "late".to_owned());
        MeasurementResult {
            passes: vec![Figures { invalid, ..Figures::default() }],
            ..MeasurementResult::default()
        }
    }

    #[test]
    fn the_outcome_is_that_of_a_single_run() {
        let requirement = Requirement::below(1.0, time);
        let bound = |value| BoundResult::value("b", value, requirement);
        for (results, bounds, expected, allowed) in [
            (vec![result(false)], vec![], SuiteOutcome::Pass, SuiteOutcome::Pass),
            (vec![], vec![], SuiteOutcome::Invalid, SuiteOutcome::Invalid),
            (vec![result(false)], vec![bound(Some(0.5))], SuiteOutcome::Pass, SuiteOutcome::Pass),
            (vec![result(false)], vec![bound(Some(2.0))], SuiteOutcome::Fail, SuiteOutcome::Fail),
            (
                vec![result(false)],
                vec![bound(Some(2.0)).into_goal()],
                SuiteOutcome::Pass,
                SuiteOutcome::Pass,
            ),
            (vec![result(false)], vec![bound(None)], SuiteOutcome::Invalid, SuiteOutcome::Pass),
            (vec![result(true)], vec![bound(Some(2.0))], SuiteOutcome::Invalid, SuiteOutcome::Fail),
        ] {
            let report = report(results, bounds);
            assert_eq!(report.outcome(false), expected, "{report:?}");
            assert_eq!(report.outcome(true), allowed, "{report:?}");
        }
        let ended = Report { interrupted: true, ..report(vec![result(true)], vec![]) };
        assert_eq!(ended.outcome(false), SuiteOutcome::Interrupted);
    }

    #[test]
    fn a_debug_build_is_said_first_and_a_report_reads_back() {
        let report = Report { debug_build: true, ..report(vec![result(false)], vec![]) };
        assert!(report.text(100).lines().nth(1).unwrap().contains("DEBUG BUILD"));
        let json = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&json).unwrap(), report);
    }
}
