//! The result of a suite: what `suite.json` holds, and the text that a person reads.

mod text;

use plimsoll_metrics::{Environment, Judgement};
use serde::{Deserialize, Serialize};

use crate::bench::Bench;
use crate::cell::MeasurementResult;
use crate::finding::{self, Finding};
use crate::gate::Gate;
use crate::table::Table;

/// Version of the layout of `suite.json`.
pub const SCHEMA: &str = "plimsoll.suite/1";

/// A table under its title.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// Title.
    pub title: String,
    /// The table; it may be empty.
    pub table: Table,
    /// What a reader must know of it.
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

/// What a suite came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SuiteOutcome {
    /// Every bound that decides was kept.
    Pass,
    /// One was broken.
    Fail,
    /// A measurement is invalid or missing, or a bound could not be judged.
    Invalid,
    /// The user ended it.
    Interrupted,
}

/// The result of a suite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "facts of a run, independent of each other")]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: String,
    /// Name of the suite.
    pub suite: String,
    /// What it measures, in a line.
    pub title: String,
    /// Wall-clock time of the start, `YYYYMMDDThhmmssZ`.
    pub started: String,
    /// The command line.
    pub command: String,
    /// Were the measurements short?
    pub quick: bool,
    /// Is the binary a debug build, whose figures are worth nothing?
    pub debug_build: bool,
    /// Did the user end it early?
    pub interrupted: bool,
    /// What was under test, and where it ran.
    pub subject: Vec<(String, String)>,
    /// The machine.
    pub environment: Environment,
    /// Every measurement.
    pub cells: Vec<MeasurementResult>,
    /// The tables.
    pub sections: Vec<Section>,
    /// What follows from the data.
    pub findings: Vec<Finding>,
    /// Bounds and what became of them.
    pub gates: Vec<Gate>,
    /// Instances for rates.
    pub sizing: Option<Section>,
    /// Figures of others, on other hardware.
    pub references: Vec<Section>,
    /// What was left out, and why.
    pub skipped: Vec<String>,
}

impl Report {
    /// A report about what a bench has measured so far.
    pub(crate) fn begin(suite: &str, title: &str, bench: &Bench<'_>) -> Self {
        let order = bench.order;
        Self {
            schema: SCHEMA.to_owned(),
            suite: suite.to_owned(),
            title: title.to_owned(),
            started: order.started.clone(),
            command: order.command.clone(),
            quick: order.quick,
            debug_build: cfg!(debug_assertions),
            interrupted: bench.is_over(),
            subject: subject(bench),
            environment: order.environment.clone(),
            cells: bench.cells.clone(),
            sections: Vec::new(),
            findings: Vec::new(),
            gates: Vec::new(),
            sizing: None,
            references: Vec::new(),
            skipped: bench.skipped.clone(),
        }
    }

    /// Adds the findings that every suite has: errors, tails, Little's law, and what is not to be used.
    pub(crate) fn conclude(mut self) -> Self {
        self.findings.extend(finding::errors(&self.cells));
        self.findings.extend(finding::tails(&self.cells));
        self.findings.extend(finding::littles_law(&self.cells));
        self.findings.extend(finding::invalid(&self.cells));
        self
    }

    /// What it comes to. Invalid is looked at before the bounds, as for a single run.
    pub fn outcome(&self, allow_invalid: bool) -> SuiteOutcome {
        let deciding = || self.gates.iter().filter(|gate| gate.decides);
        let measured = self.cells.iter().any(|cell| !cell.passes.is_empty());
        if self.interrupted {
            SuiteOutcome::Interrupted
        } else if !measured
            || (!allow_invalid && self.cells.iter().any(MeasurementResult::is_invalid))
        {
            SuiteOutcome::Invalid
        } else if deciding().any(|gate| gate.judgement == Judgement::Fail) {
            SuiteOutcome::Fail
        } else if deciding().any(|gate| matches!(gate.judgement, Judgement::Inconclusive(_)))
            && !allow_invalid
        {
            SuiteOutcome::Invalid
        } else {
            SuiteOutcome::Pass
        }
    }

    /// The report as a person reads it, broken at `width` columns.
    pub fn text(&self, width: usize) -> String {
        text::render(self, width)
    }
}

fn subject(bench: &Bench<'_>) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    let mut line = |name: &str, value: String| lines.push((name.to_owned(), value));
    let ours = || {
        let version = env!("CARGO_PKG_VERSION");
        format!("the reference gateway of plimsoll {version}, one worker, in a process of its own")
    };
    let target = bench.order.target.as_ref();
    line("under test", target.map_or_else(ours, |target| target.url.clone()));
    if let Some(build) = &bench.version {
        line("build", build.clone());
    }
    let placement = if bench.order.target.is_some() {
        "load on all cores of this machine; where the target runs is not known here".to_owned()
    } else {
        format!(
            "all on this machine over loopback, plain TCP unless a row says otherwise; {}",
            bench.cores.words()
        )
    };
    line("placement", placement);
    for (index, command) in bench.commands.iter().enumerate() {
        line(&format!("gateway {}", index + 1), command.clone());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Figures;
    use crate::gate::Bound;
    use crate::words::millis;

    fn report(cells: Vec<MeasurementResult>, gates: Vec<Gate>) -> Report {
        Report {
            schema: SCHEMA.to_owned(),
            suite: "x".to_owned(),
            title: "x".to_owned(),
            started: "S".to_owned(),
            command: "plimsoll suite x".to_owned(),
            quick: false,
            debug_build: false,
            interrupted: false,
            subject: Vec::new(),
            environment: Environment::default(),
            cells,
            sections: Vec::new(),
            findings: Vec::new(),
            gates,
            sizing: None,
            references: Vec::new(),
            skipped: Vec::new(),
        }
    }

    fn cell(invalid: bool) -> MeasurementResult {
        let invalid = invalid.then(|| "late".to_owned());
        MeasurementResult {
            passes: vec![Figures { invalid, ..Figures::default() }],
            ..MeasurementResult::default()
        }
    }

    #[test]
    fn the_outcome_is_that_of_a_single_run() {
        let bound = Bound::below(1.0, millis);
        let gate = |value| Gate::value("g", value, bound);
        for (cells, gates, expected, allowed) in [
            (vec![cell(false)], vec![], SuiteOutcome::Pass, SuiteOutcome::Pass),
            (vec![], vec![], SuiteOutcome::Invalid, SuiteOutcome::Invalid),
            (vec![cell(false)], vec![gate(Some(0.5))], SuiteOutcome::Pass, SuiteOutcome::Pass),
            (vec![cell(false)], vec![gate(Some(2.0))], SuiteOutcome::Fail, SuiteOutcome::Fail),
            (
                vec![cell(false)],
                vec![gate(Some(2.0)).target()],
                SuiteOutcome::Pass,
                SuiteOutcome::Pass,
            ),
            (vec![cell(false)], vec![gate(None)], SuiteOutcome::Invalid, SuiteOutcome::Pass),
            (vec![cell(true)], vec![gate(Some(2.0))], SuiteOutcome::Invalid, SuiteOutcome::Fail),
        ] {
            let report = report(cells, gates);
            assert_eq!(report.outcome(false), expected, "{report:?}");
            assert_eq!(report.outcome(true), allowed, "{report:?}");
        }
        let ended = Report { interrupted: true, ..report(vec![cell(true)], vec![]) };
        assert_eq!(ended.outcome(false), SuiteOutcome::Interrupted);
    }

    #[test]
    fn a_debug_build_is_said_first_and_a_report_reads_back() {
        let report = Report { debug_build: true, ..report(vec![cell(false)], vec![]) };
        assert!(report.text(100).lines().nth(1).unwrap().contains("DEBUG BUILD"));
        let json = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&json).unwrap(), report);
    }
}
