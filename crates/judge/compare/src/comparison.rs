//! A comparison of old and new runs, stored as `comparison.json`.

use plimsoll_metrics::{
    BoundedFigure, DistributionSummary, Gate, Group, Level, LoadModel, Metric, MetricsError,
    QUANTILES, Quantile, RunEnd, RunSummary, Verdict,
};
use plimsoll_report::screen::debug_build;
use plimsoll_run_files::{RunFileError, read_stored};
use plimsoll_stats::multiple::benjamini_hochberg;
use plimsoll_stats::runs::Change;
use plimsoll_stats::student_t::two_sided_p;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::CompareError;
use crate::gates::{self, GateResult};
use crate::judge::{Rule, at_least_by_rounding};
use crate::machine::{self, Difference, StoredRun};

/// Version of the layout of `comparison.json`.
pub const SCHEMA: &str = "plimsoll.comparison/1";

/// Options of a comparison.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Gates: figure and margin. If empty, the gates of the new runs' profile, or the default
    /// gates.
    pub gates: Vec<(String, String)>,
    /// Names of allowed differences, such as `cpu`.
    pub allow_different: Vec<String>,
    /// The simple rule: allowed relative regression of one new run against one old run.
    pub regress: Option<f64>,
}

/// A run that was compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunRef {
    /// Path of the folder, as given.
    pub path: String,
    /// Name of the run.
    pub name: String,
    /// Start of the run, in nanoseconds since 1970 UTC.
    pub started_unix_ns: u64,
    /// Hash of the plan; empty if unknown.
    pub plan_hash: String,
}

impl RunRef {
    fn of(run: &StoredRun) -> Self {
        Self {
            path: run.path.display().to_string(),
            name: run.summary.metadata.run.name.clone(),
            started_unix_ns: run.summary.metadata.run.started_unix_ns,
            plan_hash: run.plan_hash().unwrap_or_default(),
        }
    }
}

/// Whether the runs have the same plan, instrument and machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SameMachine {
    /// Whether all of them are equal.
    pub same: bool,
    /// Differences between the runs.
    pub differs: Vec<Difference>,
}

/// A comparison of old and new runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Version of the layout: `plimsoll.comparison/1`.
    pub schema: String,
    /// Verdict of the comparison.
    pub verdict: Verdict,
    /// Method of judging the gates.
    pub rule: Rule,
    /// The old runs.
    pub base: Vec<RunRef>,
    /// The new runs.
    pub new: Vec<RunRef>,
    /// Whether plan, instrument and machine are the same.
    pub same_machine: SameMachine,
    /// Whether old and new runs alternated, so that a drift of the machine affects both alike.
    /// `None` with one run on each side.
    pub alternating: Option<bool>,
    /// Reasons why the runs are not comparable; if there are any, no gates are judged.
    pub obstacles: Vec<String>,
    /// Whether these are the default gates, because neither flags nor profile name any.
    pub usual_gates: bool,
    /// The judged gates.
    pub gates: Vec<GateResult>,
    /// Parts of the runs that changed.
    pub cells: Cells,
    /// Times of the runs, for the page; absent if the runs are not comparable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<Times>,
    /// Further notes for the reader.
    pub notes: Vec<String>,
}

impl Comparison {
    /// Parses a `comparison.json`.
    ///
    /// # Errors
    /// [`RunFileError`] if it is damaged or has another layout.
    pub fn read_json(bytes: &[u8]) -> Result<Self, RunFileError> {
        read_stored(bytes, SCHEMA)
    }
}

/// Compares old runs with new ones.
///
/// # Errors
/// Wrong usage: an unknown gate or name, a run given twice, or the simple rule for more than two
/// runs.
pub fn compare(
    base: &[StoredRun],
    new: &[StoredRun],
    options: &Options,
) -> Result<Comparison, CompareError> {
    machine::check_names(&options.allow_different)?;
    let all: Vec<_> = base.iter().chain(new).collect();
    check_distinct(&all)?;
    if options.regress.is_some() && (base.len(), new.len()) != (1, 1) {
        return Err(CompareError::SimpleRule(base.len(), new.len()));
    }
    let (gates, usual) = match options.regress {
        Some(_) if options.gates.is_empty() => (simple_gates(&base[0], &new[0])?, true),
        _ => gates::gates(&options.gates, base, new)?,
    };
    let differs = machine::differences(&all, &options.allow_different);
    let obstacles = obstacles(&all, &differs);
    let gates = match options.regress {
        Some(share) => gates.into_iter().map(|gate| gate.with_relative(share)).collect(),
        None => gates,
    };
    let rule = if options.regress.is_some() { Rule::Simple } else { Rule::Repeats };
    let (results, cells) = match (obstacles.is_empty(), rule) {
        (false, _) => (Vec::new(), Cells::default()),
        (true, Rule::Simple) => (gates::judge(&gates, [base, new], rule), Cells::default()),
        (true, Rule::Repeats) => {
            (gates::judge(&gates, [base, new], rule), compare_cells(base, new))
        }
    };
    let times = if obstacles.is_empty() { Times::of(base, new) } else { None };
    Ok(Comparison {
        schema: SCHEMA.to_owned(),
        verdict: if obstacles.is_empty() {
            Verdict::of(results.iter().map(|gate| &gate.judged.judgement))
        } else if has_failed(new) && !has_failed(base) {
            // Whatever the gates are: a target that fails in the new runs alone is worse.
            Verdict::Fail
        } else {
            Verdict::Inconclusive
        },
        rule,
        base: base.iter().map(RunRef::of).collect(),
        new: new.iter().map(RunRef::of).collect(),
        same_machine: SameMachine { same: differs.is_empty(), differs },
        alternating: alternating(base, new),
        notes: notes(base, new, usual && options.regress.is_none() && obstacles.is_empty()),
        obstacles,
        usual_gates: usual,
        gates: results,
        cells,
        times,
    })
}

fn notes(base: &[StoredRun], new: &[StoredRun], usual_gates: bool) -> Vec<String> {
    let is_debug = |run: &StoredRun| !debug_build(&run.summary.metadata.environment).is_empty();
    let notes = [
        (usual_gates, "these are the default gates: define your own as `gate` in the profile"),
        (
            alternating(base, new) == Some(false),
            "old and new runs did not alternate, so a drift of the machine looks like a change",
        ),
        (new.iter().any(is_debug), "debug builds, whose times differ from a release build's"),
    ];
    notes.iter().filter(|(applies, _)| *applies).map(|(_, note)| (*note).to_owned()).collect()
}

/// # Errors
/// [`CompareError::Twice`] for the first run that is given again.
pub(crate) fn check_distinct(runs: &[&StoredRun]) -> Result<(), CompareError> {
    for (index, run) in runs.iter().enumerate() {
        if let Some(other) = runs[..index].iter().find(|other| other.id() == run.id()) {
            return Err(CompareError::Twice(other.path.clone(), run.path.clone()));
        }
    }
    Ok(())
}

/// Reasons why runs are not comparable: differences that were not allowed, and runs with invalid
/// results.
pub(crate) fn obstacles(runs: &[&StoredRun], differs: &[Difference]) -> Vec<String> {
    let mut found: Vec<_> = runs.iter().filter_map(|run| unusable(run)).collect();
    let refused = differs.iter().filter(|difference| !difference.allowed);
    found.extend(refused.map(|difference| format!("different {}", difference.words())));
    found
}

fn unusable(run: &StoredRun) -> Option<String> {
    let path = run.path.display();
    let ended = match run.summary.metadata.run.ended {
        RunEnd::Complete => None,
        RunEnd::Interrupted => Some("was interrupted"),
        RunEnd::TooManyErrors => Some("was stopped because too many requests failed"),
        RunEnd::Decided => Some("was ended before its plan"),
        RunEnd::Aborted => Some("was aborted"),
        RunEnd::Unfinished => Some("did not finish"),
    };
    if let Some(ended) = ended {
        return Some(format!("{path} {ended}"));
    }
    let summary = &run.summary;
    let first = summary.of_level(Level::Fail).chain(summary.of_level(Level::Invalid)).next()?;
    Some(format!("{path} is unusable: {}", first.text()))
}

fn has_failed(runs: &[StoredRun]) -> bool {
    runs.iter().any(|run| run.summary.of_level(Level::Fail).next().is_some())
}

/// Whether old and new runs alternated: in chronological order, the side changes at least as often
/// as the smaller side has runs.
fn alternating(base: &[StoredRun], new: &[StoredRun]) -> Option<bool> {
    let smaller = base.len().min(new.len());
    if smaller == 0 || base.len() + new.len() == 2 {
        return None;
    }
    let old = base.iter().map(|run| (run, false));
    let mut order: Vec<_> = old.chain(new.iter().map(|run| (run, true))).collect();
    order.sort_by_key(|(run, is_new)| (run.summary.metadata.run.started_unix_ns, *is_new));
    let changes = order.windows(2).filter(|pair| pair[0].1 != pair[1].1).count();
    Some(changes >= smaller)
}

// Times of the compared runs, stored so that a page can draw them without the run folders.

/// Times of all requests of each run, without warm-up, in the headline figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Times {
    /// Figure, such as `response_time_ms`.
    pub metric: String,
    /// Times of each old run; `null` if it has none.
    pub base: Vec<Option<DistributionSummary>>,
    /// Times of each new run.
    pub new: Vec<Option<DistributionSummary>>,
}

impl Times {
    /// Collects the times of comparable runs; `None` if no run has any.
    pub(crate) fn of(base: &[StoredRun], new: &[StoredRun]) -> Option<Self> {
        let metric: Metric = base.first()?.summary.metadata.headline_time();
        let [base, new] = [base, new].map(|runs| {
            runs.iter()
                .map(|run| run.summary.results.total.distribution(metric).cloned())
                .collect::<Vec<_>>()
        });
        let times = Self { metric: metric.key().to_owned(), base, new };
        let any = times.base.iter().chain(&times.new).any(Option::is_some);
        any.then_some(times)
    }
}

// The simple rule: one new run may be worse than one old run by N percent. It compares two numbers
// without regard to chance, and every output says so.

/// Label of the rule in outputs.
pub(crate) const LABEL: &str = "simple rule: two numbers, one run each; unchanged code can fail it, \
                                and changed code can pass";

/// Gates on throughput and times of every measured stage, and on errors. The tail is the rarest
/// percentile for which both runs have enough values.
pub(crate) fn simple_gates(base: &StoredRun, run: &StoredRun) -> Result<Vec<Gate>, MetricsError> {
    let stages = run.summary.results.by_stage.iter().filter(|stage| !stage.warmup);
    let time = run.summary.metadata.headline_time();
    let mut gates = Vec::new();
    for stage in stages {
        let name = stage.stage.as_deref().unwrap_or_default();
        let mut figures =
            vec![("throughput".to_owned(), "10%"), (format!("{}.p50", time.name()), "10%")];
        for metric in [time, Metric::Ttft] {
            let tail = rarest_of_both(base, stage, metric);
            figures.extend(tail.map(|tail| (format!("{}.{tail}", metric.name()), "10%")));
        }
        figures.push(("error_rate".to_owned(), "0.1pp"));
        for (figure, margin) in figures {
            gates.push(Gate::parse(&format!("{figure}{{stage:{name}}}"), margin)?);
        }
    }
    Ok(gates)
}

/// The rarest percentile that a stage has in both runs.
fn rarest_of_both(base: &StoredRun, stage: &Group, metric: Metric) -> Option<&'static str> {
    let same = base.summary.results.by_stage.iter().find(|other| other.stage == stage.stage);
    let both = [Some(stage), same].map(|stage| stage?.distribution(metric));
    let [Some(new), Some(old)] = both else { return None };
    gates::tail(if old.count < new.count { old } else { new })
}

// Compares the parts of the runs: every stage x scenario x target, by several figures. There are
// many and nobody asked for them, so a change is a hint, never a verdict.

/// False discovery rate up to which a cell is listed.
const LISTED: f64 = 0.05;

/// A part of the runs with a changed figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// Name of the stage.
    pub stage: String,
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the target in the first old run, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Figure, such as `itl.p99`.
    pub figure: String,
    /// Relative change.
    pub change: f64,
    /// Lower end of the 95 % interval, not adjusted for the number of cells.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Adjusted p value (Benjamini and Hochberg): the expected share of chance findings among the
    /// cells up to this one.
    pub q: f64,
}

/// The parts of the runs that were compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cells {
    /// Figures of stages, scenarios and targets that could be compared.
    pub compared: usize,
    /// Changed parts with q below 0.05, the clearest first.
    pub worth_a_look: Vec<Cell>,
}

/// Metric and percentile of a cell's figures, for a run with this headline; no metric means the
/// throughput.
fn figures(headline: Metric) -> impl Iterator<Item = (Option<Metric>, &'static Quantile)> {
    let [p50, _, _, p99, _] = &QUANTILES;
    let metrics = [headline, Metric::Ttft, Metric::Itl];
    let times = metrics.into_iter().flat_map(move |m| [(Some(m), p50), (Some(m), p99)]);
    times.chain([(None, p50)])
}

/// Compares every figure of every cell that all runs have. Without repeats the result is empty.
pub(crate) fn compare_cells(base: &[StoredRun], new: &[StoredRun]) -> Cells {
    let Some(first) = base.first() else { return Cells::default() };
    let several = first.summary.metadata.targets.len() > 1;
    let mut found: Vec<(Cell, f64)> = Vec::new();
    for cell in first.summary.results.cells.iter().filter(|cell| !cell.warmup) {
        let place = place(&first.summary, cell);
        for (metric, quantile) in figures(first.summary.metadata.headline_time()) {
            let [base, new] = [base, new].map(|runs| {
                runs.iter()
                    .map(|run| figure(&run.summary, cell, place, metric, quantile))
                    .collect::<Option<Vec<_>>>()
            });
            let change = base.zip(new).and_then(|(b, n)| Change::between(&b, &n));
            let Some(change) = change.map(at_least_by_rounding) else { continue };
            let interval = change.interval(0.95);
            let p = two_sided_p(change.estimate / change.standard_error, change.degrees_of_freedom);
            let figure = metric.map_or_else(
                || "throughput".to_owned(),
                |metric| format!("{}.{}", metric.name(), quantile.label),
            );
            let cell = Cell {
                stage: cell.stage.clone().unwrap_or_default(),
                scenario: cell.scenario.clone().unwrap_or_default(),
                target: cell.target.clone().filter(|_| several),
                figure,
                change: change.estimate.exp_m1(),
                low: interval.low.exp_m1(),
                high: interval.high.exp_m1(),
                q: f64::NAN,
            };
            found.push((cell, p));
        }
    }
    listed(found)
}

fn listed(found: Vec<(Cell, f64)>) -> Cells {
    let p: Vec<_> = found.iter().map(|(_, p)| *p).collect();
    let compared = p.iter().filter(|p| !p.is_nan()).count();
    let q = benjamini_hochberg(&p);
    let cells = found.into_iter().zip(q).map(|((cell, _), q)| Cell { q, ..cell });
    let mut worth_a_look: Vec<_> = cells.filter(|cell| cell.q < LISTED).collect();
    worth_a_look.sort_by(|a, b| a.q.total_cmp(&b.q));
    Cells { compared, worth_a_look }
}

/// The logarithm of a figure in the cell that corresponds to `like` of the first old run. Targets
/// correspond by position, because their names may differ.
fn figure(
    run: &RunSummary,
    like: &Group,
    place_of_target: Option<usize>,
    metric: Option<Metric>,
    quantile: &Quantile,
) -> Option<f64> {
    let cell = run.results.cells.iter().find(|cell: &&Group| {
        cell.stage == like.stage
            && cell.scenario == like.scenario
            && place(run, cell) == place_of_target
    })?;
    let found = match metric {
        Some(metric) => cell.distribution(metric)?.figure(quantile)?,
        None => closed_throughput(run, cell)?,
    };
    found.sound().filter(|value| *value > 0.0).map(f64::ln)
}

/// The position of a cell's target among the targets of its run.
fn place(run: &RunSummary, cell: &Group) -> Option<usize> {
    let name = cell.target.as_ref()?;
    run.metadata.targets.iter().position(|target| target.name == *name)
}

/// The throughput of a closed stage; in an open stage it is planned.
fn closed_throughput(run: &RunSummary, cell: &Group) -> Option<BoundedFigure> {
    let stage =
        run.metadata.stages.iter().find(|stage| cell.stage.as_ref() == Some(&stage.name))?;
    (stage.model == LoadModel::Closed).then(|| cell.named_rate("throughput")).flatten()
}
