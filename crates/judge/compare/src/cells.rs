//! Compares the parts of the runs: every stage x scenario x target, by several figures. There are
//! many and nobody asked for them, so a change is a hint, never a verdict.

use plimsoll_metrics::{BoundedFigure, Group, LoadModel, Metric, QUANTILES, Quantile, RunSummary};
use plimsoll_stats::multiple::benjamini_hochberg;
use plimsoll_stats::runs::Change;
use plimsoll_stats::student_t::two_sided_p;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::judge::at_least_by_rounding;
use crate::machine::StoredRun;

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
pub(crate) fn compare(base: &[StoredRun], new: &[StoredRun]) -> Cells {
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
