//! The gates of a comparison.

use plimsoll_metrics::{BoundedFigure, Gate, Judgement, Margin, Unit, Worse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::judge::Rule;
pub use crate::judge::{Judged, Repeated, SpreadSource, judge as repeats};
use crate::stored_run::StoredRun;

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
