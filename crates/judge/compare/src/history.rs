//! The history of a machine: the figures of earlier runs, a line of JSON each. Runs that were
//! recorded together are of unchanged code, so that they show how much runs differ by themselves.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use plimsoll_metrics::{Gate, Margin, Metric};
use plimsoll_stats::runs::History as Spread;
use serde::{Deserialize, Serialize};

use crate::change_points::{self, FEWEST_RUNS, Found};
use crate::error::CompareError;
use crate::judge::Repeated;
use crate::machine::fingerprint;
use crate::stored_run::StoredRun;

/// Version of the layout of a line.
const SCHEMA: &str = "plimsoll.history/1";

/// The percentiles that are recorded of every distribution.
const RECORDED: [&str; 4] = ["p50", "p90", "p99", "mean"];

/// A run in the history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Line {
    schema: String,
    /// Hash of machine, instrument and plan.
    fingerprint: String,
    /// The run.
    run: String,
    /// The first run of those that were recorded together, of unchanged code.
    group: String,
    started_unix_ns: u64,
    name: String,
    figures: BTreeMap<String, f64>,
}

/// The history of a machine.
#[derive(Clone, Debug)]
pub struct History {
    path: PathBuf,
    lines: Vec<Line>,
}

/// A change in the history of a figure.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change {
    pub(crate) figure: String,
    /// The first run after it: its name and start.
    pub(crate) run: String,
    pub(crate) started_unix_ns: u64,
    pub(crate) by: f64,
    pub(crate) p: f64,
}

impl History {
    /// Reads a history; a file that does not exist yet is an empty one.
    ///
    /// # Errors
    /// [`CompareError::History`] if the file cannot be read, or has another line.
    pub fn read(path: &Path) -> Result<Self, CompareError> {
        Self::read_lines(path).map_err(|why| CompareError::History { path: path.to_owned(), why })
    }

    fn read_lines(path: &Path) -> Result<Self, String> {
        let text = match plimsoll_input::read_text(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error.to_string()),
        };
        let mut lines = Vec::new();
        for (index, text) in text.lines().enumerate().filter(|(_, text)| !text.trim().is_empty()) {
            let number = index + 1;
            let line: Line = serde_json::from_str(text)
                .map_err(|error| format!("line {number} is no line of a history: {error}"))?;
            if line.schema != SCHEMA {
                return Err(format!(
                    "line {number} is of layout `{}`, and this version reads `{SCHEMA}`",
                    line.schema
                ));
            }
            lines.push(line);
        }
        Ok(Self { path: path.to_owned(), lines })
    }

    /// Adds runs of unchanged code that are not in it yet, and writes them to the file.
    ///
    /// # Errors
    /// [`CompareError::History`] if the file cannot be written.
    pub fn record(&mut self, runs: &[StoredRun], gates: &[Gate]) -> Result<usize, CompareError> {
        let group = runs.iter().find_map(|run| self.line_of(run)).map(|line| line.group.clone());
        let Some(group) = group.or_else(|| Some(runs.first()?.id())) else { return Ok(0) };
        let new: Vec<_> = runs.iter().filter(|run| self.line_of(run).is_none()).collect();
        let new: Vec<_> = new.into_iter().map(|run| line(run, &group, gates)).collect();
        self.append(&new)?;
        let count = new.len();
        self.lines.extend(new);
        Ok(count)
    }

    fn line_of(&self, run: &StoredRun) -> Option<&Line> {
        self.lines.iter().find(|line| line.run == run.id())
    }

    /// Whole lines in one write: a reader never sees half of one that was written in time.
    fn append(&self, lines: &[Line]) -> Result<(), CompareError> {
        append_to(&self.path, lines).map_err(|error| CompareError::History {
            path: self.path.clone(),
            why: error.to_string(),
        })
    }

    /// Runs with this fingerprint.
    pub(crate) fn runs_of(&self, fingerprint: &str) -> usize {
        self.of(fingerprint).count()
    }

    fn of<'a>(&'a self, fingerprint: &'a str) -> impl Iterator<Item = &'a Line> {
        self.lines.iter().filter(move |line| line.fingerprint == fingerprint)
    }

    /// The spread of a figure between runs of unchanged code, without the runs in `except`.
    fn spread(&self, fingerprint: &str, gate: &Gate, except: &[String]) -> Option<Spread> {
        let mut groups: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for line in self.of(fingerprint).filter(|line| !except.contains(&line.run)) {
            let value = line.figures.get(gate.name()).copied();
            let scaled = value.and_then(|value| Repeated::scaled(gate.margin(), &[value]));
            groups.entry(&line.group).or_default().extend(scaled.into_iter().flatten());
        }
        let groups: Vec<_> = groups.values().map(Vec::as_slice).collect();
        Spread::from_groups(&groups)
    }

    /// The changes of a figure over time; nothing below [`FEWEST_RUNS`] runs.
    pub(crate) fn changes(&self, fingerprint: &str, gate: &Gate) -> Vec<Change> {
        let mut lines: Vec<_> = self.of(fingerprint).collect();
        // Runs of two groups may alternate: a group comes where its first run came.
        lines.sort_by_cached_key(|line| {
            let group = self.lines.iter().filter(|other| other.group == line.group);
            (group.map(|line| line.started_unix_ns).min(), line.started_unix_ns)
        });
        let known: Vec<_> = lines
            .iter()
            .filter_map(|line| {
                let value = line.figures.get(gate.name())?;
                Some((*line, *Repeated::scaled(gate.margin(), &[*value])?.first()?))
            })
            .collect();
        if known.len() < FEWEST_RUNS {
            return Vec::new();
        }
        let values: Vec<_> = known.iter().map(|(_, value)| *value).collect();
        change_points::find(&values)
            .into_iter()
            .map(|found: Found| {
                let (first, _) = known[found.index];
                Change {
                    figure: gate.name().to_owned(),
                    run: first.name.clone(),
                    started_unix_ns: first.started_unix_ns,
                    by: match gate.margin() {
                        Margin::Relative(_) => found.change.exp_m1(),
                        Margin::Points(_) => found.change,
                    },
                    p: found.p,
                }
            })
            .collect()
    }
}

fn append_to(path: &Path, lines: &[Line]) -> io::Result<()> {
    let mut text = String::new();
    for line in lines {
        text += &serde_json::to_string(line)?;
        text.push('\n');
    }
    fs::OpenOptions::new().create(true).append(true).open(path)?.write_all(text.as_bytes())
}

fn line(run: &StoredRun, group: &str, gates: &[Gate]) -> Line {
    let metrics = Metric::ALL.into_iter().filter(|metric| metric.is_bounded());
    let times = metrics.flat_map(|metric| RECORDED.map(|of| format!("{}.{of}", metric.name())));
    let usual = times.map(|name| (name, "1%")).chain([
        ("throughput".to_owned(), "1%"),
        ("cpu".to_owned(), "1%"),
        ("error_rate".to_owned(), "1pp"),
    ]);
    let usual = usual.filter_map(|(name, margin)| Gate::parse(&name, margin).ok());
    let metadata = &run.summary.metadata.run;
    Line {
        schema: SCHEMA.to_owned(),
        fingerprint: fingerprint(run),
        run: run.id(),
        group: group.to_owned(),
        started_unix_ns: metadata.started_unix_ns,
        name: metadata.name.clone(),
        figures: usual
            .chain(gates.iter().cloned())
            .filter_map(|gate: Gate| {
                let value = gate.measure(&run.summary).ok()?.value;
                Some((gate.name().to_owned(), value))
            })
            .collect(),
    }
}

/// What is known of the spread between runs, besides the runs that are compared.
#[derive(Debug)]
pub(crate) enum Spreads<'a> {
    /// Nothing.
    Unknown,
    /// Stated by hand, as a share of the figure.
    Stated(f64),
    /// A history: of this fingerprint, and without these runs.
    History(&'a History, String, Vec<String>),
}

impl Spreads<'_> {
    /// For a figure, on the scale of the statistics. What is stated is a share; of figures that are
    /// shares themselves, chance alone is then known.
    pub(crate) fn of(&self, gate: &Gate) -> Option<Spread> {
        match self {
            Self::Unknown => None,
            Self::Stated(share) => Some(Spread {
                sd: match gate.margin() {
                    Margin::Relative(_) => *share,
                    Margin::Points(_) => 0.0,
                },
                degrees_of_freedom: f64::INFINITY,
            }),
            Self::History(history, fingerprint, except) => {
                history.spread(fingerprint, gate, except)
            }
        }
    }
}
