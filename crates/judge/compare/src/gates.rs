//! The gates of a comparison.

use plimsoll_metrics::{
    BoundedFigure, DistributionSummary, Gate, Judgement, LoadModel, Margin, Metric, MetricsError,
    Unit, Worse,
};
use plimsoll_stats::samples_needed;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::judge::Rule;
pub use crate::judge::{Judged, Repeated, SpreadSource, judge as repeats};
use crate::machine::StoredRun;

/// The unit of a gate's figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FigureUnit {
    /// Milliseconds.
    Ms,
    /// Microseconds of CPU time per request.
    CpuUs,
    /// Rate per second.
    PerS,
    /// A share, from 0 to 1.
    Share,
}

impl FigureUnit {
    pub(crate) fn of(gate: &Gate) -> Self {
        match gate.unit() {
            _ if gate.is_cpu() => Self::CpuUs,
            Unit::Time => Self::Ms,
            Unit::Share => Self::Share,
            _ => Self::PerS,
        }
    }
}

/// A judged gate. Changes and margins are relative (0.03 is 3 %); for a figure that is itself a
/// share, they are absolute differences.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GateResult {
    /// Name of the figure, such as `ttft.p99{scenario:simple}`.
    pub name: String,
    /// Unit of the figure.
    pub unit: FigureUnit,
    /// Whether larger values are worse, as for times.
    pub more_is_worse: bool,
    /// Mean over the old runs (geometric, except for shares).
    pub base: Option<f64>,
    /// Mean over the new runs.
    pub new: Option<f64>,
    /// Value of each old run.
    pub base_runs: Vec<f64>,
    /// Value of each new run.
    pub new_runs: Vec<f64>,
    /// Allowed regression.
    pub margin: f64,
    /// Result of the statistical test.
    #[serde(flatten)]
    pub judged: Judged,
}

impl GateResult {
    /// The margin with its kind.
    pub(crate) const fn margin(&self) -> Margin {
        match self.unit {
            FigureUnit::Share => Margin::Points(self.margin),
            _ => Margin::Relative(self.margin),
        }
    }

    fn new(gate: &Gate, figure: Option<&Repeated>, judged: Judged) -> Self {
        let (Margin::Relative(margin) | Margin::Points(margin)) = gate.margin();
        let [base_runs, new_runs] =
            figure.map_or_else(Default::default, |one| [one.base.clone(), one.new.clone()]);
        Self {
            name: gate.name().to_owned(),
            unit: FigureUnit::of(gate),
            more_is_worse: gate.worse() == Worse::Higher,
            base: mean(gate.margin(), &base_runs),
            new: mean(gate.margin(), &new_runs),
            base_runs,
            new_runs,
            margin,
            judged,
        }
    }
}

/// The mean of runs: geometric if changes are ratios.
pub(crate) fn mean(margin: Margin, values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let scaled = Repeated::scaled(margin, values);
    Some(match (margin, scaled) {
        (Margin::Relative(_), Some(logs)) => (logs.iter().sum::<f64>() / count).exp(),
        _ => values.iter().sum::<f64>() / count,
    })
    .filter(|mean| mean.is_finite())
}

/// The figure of a gate in all runs, each adjusted by `of`.
fn repeated(
    gate: &Gate,
    [base, new]: [&[StoredRun]; 2],
    of: impl Fn(&BoundedFigure) -> f64,
) -> Result<Repeated, String> {
    let values = |runs: &[StoredRun]| {
        runs.iter()
            .map(|run: &StoredRun| {
                let figure = gate.measure(&run.summary);
                figure
                    .map(|figure| of(&figure))
                    .map_err(|why| format!("{}: {why}", run.path.display()))
            })
            .collect::<Result<Vec<_>, _>>()
    };
    let trials =
        |runs: &[StoredRun]| runs.iter().map(|run| gate.trials(&run.summary)).sum::<Option<u64>>();
    Ok(Repeated {
        base: values(base)?,
        new: values(new)?,
        margin: gate.margin(),
        worse: gate.worse(),
        trials: trials(base).zip(trials(new)),
    })
}

/// The figure without the measurement error of a time, or the generator's limit on a rate.
fn without_generator(gate: &Gate, figure: &BoundedFigure) -> f64 {
    match gate.unit() {
        Unit::Time => figure.value - figure.bound,
        _ => figure.value + figure.bound,
    }
}

/// Judges all gates together, with and without the measurement error.
pub(crate) fn judge(gates: &[Gate], runs: [&[StoredRun]; 2], rule: Rule) -> Vec<GateResult> {
    let figures: Vec<_> = gates.iter().map(|gate| repeated(gate, runs, |one| one.value)).collect();
    let without: Vec<_> = gates
        .iter()
        .map(|gate| repeated(gate, runs, |figure| without_generator(gate, figure)))
        .collect();
    let judged = repeats(&figures, rule).into_iter().zip(repeats(&without, rule));
    let each = gates.iter().zip(&figures).zip(judged);
    each.map(|((gate, figure), (mut judged, without))| {
        if judged.judgement.verdict() != without.judgement.verdict() {
            let why = "the verdict depends on the measurement error";
            judged.judgement = Judgement::Inconclusive(why.to_owned());
        }
        GateResult::new(gate, figure.as_ref().ok(), judged)
    })
    .collect()
}

// Default gates for runs whose profile has none.

/// The effective gates, and whether they are the default ones: gates of flags, else of the new
/// runs' profile, else the default gates for the metrics of the old runs.
pub(crate) fn gates(
    given: &[(String, String)],
    base: &[StoredRun],
    new: &[StoredRun],
) -> Result<(Vec<Gate>, bool), MetricsError> {
    let of_profile = new.first().or_else(|| base.first()).map_or(&[][..], |run| &run.gates);
    let written = if given.is_empty() { of_profile } else { given };
    if !written.is_empty() {
        let parsed = written.iter().map(|(figure, margin)| Gate::parse(figure, margin));
        return Ok((parsed.collect::<Result<_, _>>()?, false));
    }
    let parsed = usual(base, new).into_iter().map(|(figure, margin)| Gate::parse(&figure, margin));
    Ok((parsed.collect::<Result<_, _>>()?, true))
}

/// The default gates: times of the headline, first tokens of streams, throughput of closed stages
/// (in open stages it is planned), CPU time if a process was monitored, and errors. A regression
/// must not influence its own verdict, so margins are derived from the old runs alone.
fn usual(base: &[StoredRun], new: &[StoredRun]) -> Vec<(String, &'static str)> {
    let Some(first) = base.first() else { return Vec::new() };
    let metadata = &first.summary.metadata;
    let headline = metadata.headline_time();
    let mut metrics = vec![headline, Metric::Ttft];
    metrics.dedup();
    let mut gates: Vec<_> =
        metrics.into_iter().flat_map(|metric| times(base.iter().chain(new), metric)).collect();
    let closed = metadata.stages.iter().any(|s| !s.warmup && s.model == LoadModel::Closed);
    gates.extend(closed.then(|| ("throughput".to_owned(), "2%")));
    let watched = first.summary.processes.iter().filter(|process| process.stage.is_none()).count();
    gates.extend((watched == 1).then(|| ("cpu".to_owned(), "3%")));
    gates.push(("error_rate".to_owned(), error_margin(base)));
    gates
}

/// Gates on the median of a time, and on the rarest percentile for which every run has enough
/// values.
fn times<'a>(
    runs: impl Iterator<Item = &'a StoredRun>,
    metric: Metric,
) -> Vec<(String, &'static str)> {
    let times = runs.filter_map(|run| run.summary.results.total.distribution(metric));
    let Some(fewest) = times.min_by_key(|times| times.count) else { return Vec::new() };
    let name = metric.name();
    let tail = tail(fewest).map(|tail| (format!("{name}.{tail}"), "10%"));
    std::iter::once((format!("{name}.p50"), "3%")).chain(tail).collect()
}

/// The rarest percentile for which there are enough values; `None` if there are too few for any.
pub(crate) fn tail(times: &DistributionSummary) -> Option<&'static str> {
    let tails = [("p99", 0.99), ("p95", 0.95), ("p90", 0.9)];
    let found = tails.into_iter().find(|(_, q)| times.count >= samples_needed(*q));
    found.map(|(tail, _)| tail)
}

/// The smallest margin that three unchanged runs on each side would pass with a probability of 80
/// %, because shares of few requests differ by chance.
fn error_margin(base: &[StoredRun]) -> &'static str {
    const MARGINS: [(f64, &str); 5] =
        [(0.001, "0.1pp"), (0.002, "0.2pp"), (0.005, "0.5pp"), (0.01, "1pp"), (0.02, "2pp")];
    const RUNS: f64 = 3.0;
    // Normal quantiles of 97.5 % (the interval) and of 80 %.
    const QUANTILES: f64 = 1.960 + 0.842;
    let counters = base.iter().map(|run| &run.summary.results.total.counters);
    let requests: u64 = counters.clone().map(|counters| counters.scheduled).sum();
    let errors: u64 = counters.map(|counters| counters.unexpected).sum();
    let each_side = RUNS * requests as f64 / base.len() as f64;
    // One request of each kind is added, because zero observed errors do not prove a zero error
    // rate.
    let share = errors as f64 / requests.max(1) as f64;
    let share = (2.0 * share * each_side + 1.0) / (2.0 * each_side + 2.0);
    let least = QUANTILES * (2.0 * share * (1.0 - share) / each_side.max(1.0)).sqrt();
    let kept = MARGINS.into_iter().find(|(margin, _)| *margin >= least);
    kept.map_or("5pp", |(_, margin)| margin)
}
