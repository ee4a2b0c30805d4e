//! The parts of the runs: every stage x scenario x target, by several figures. They are many, and
//! none was asked for; so what stands out among them is worth a look, and never a verdict.

use plimsoll_metrics::{BoundedFigure, Group, LoadModel, Metric, QUANTILES, Quantile, RunSummary};
use plimsoll_stats::multiple::benjamini_hochberg;
use plimsoll_stats::runs::Change;
use plimsoll_stats::student_t::two_sided_p;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::judge::at_least_by_rounding;
use crate::stored_run::StoredRun;

/// False discovery rate up to which a cell is listed.
const LISTED: f64 = 0.05;

/// A figure of a part of the runs that changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// The stage.
    pub stage: String,
    /// The scenario.
    pub scenario: String,
    /// The target, where there are several: its name in the first old run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The figure, like `itl.p99`.
    pub figure: String,
    /// Its change, as a share of itself.
    pub change: f64,
    /// Lower end of the 95 % interval, not adjusted for the number of cells.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Adjusted p value (Benjamini and Hochberg): of the cells listed up to this one, about this
    /// share changed by chance.
    pub q: f64,
}

/// The parts of the runs that were compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cells {
    /// Figures of stages, scenarios and targets that could be compared.
    pub compared: usize,
    /// Those that changed, with q below 0.05, the clearest first.
    pub worth_a_look: Vec<Cell>,
}

/// The figures of a cell, in a run with this headline: metric and percentile; no metric is the
/// throughput.
fn figures(headline: Metric) -> impl Iterator<Item = (Option<Metric>, &'static Quantile)> {
    let [p50, _, _, p99, _] = &QUANTILES;
    let metrics = [headline, Metric::Ttft, Metric::Itl];
    let times = metrics.into_iter().flat_map(move |m| [(Some(m), p50), (Some(m), p99)]);
    times.chain([(None, p50)])
}

/// Compares every figure of every cell that all runs have. There is nothing to say without
/// repeats.
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

/// The logarithm of a figure of the cell that corresponds to `like` of the first old run. Targets
/// correspond by their place, because their names may differ.
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

/// The place of a cell's target among the targets of its run.
fn place(run: &RunSummary, cell: &Group) -> Option<usize> {
    let name = cell.target.as_ref()?;
    run.metadata.targets.iter().position(|target| target.name == *name)
}

/// The throughput of a closed stage; that of an open one is planned.
fn closed_throughput(run: &RunSummary, cell: &Group) -> Option<BoundedFigure> {
    let stage =
        run.metadata.stages.iter().find(|stage| cell.stage.as_ref() == Some(&stage.name))?;
    (stage.model == LoadModel::Closed).then(|| cell.named_rate("throughput")).flatten()
}
