//! The gates of a comparison.

use plimsoll_metrics::{BoundedFigure, Gate, Judgement, Margin, Unit, Worse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// Per second.
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

/// The change between two single runs as the requests within them show it. What repeated runs
/// would add to it is not known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WithinRun {
    /// Lower end of its 95 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// A judged gate. Changes and margins are shares of the figure (0.03 is 3 %); of a figure that is
/// a share itself, they are differences.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GateResult {
    /// The figure, like `ttft.p99{scenario:simple}`.
    pub name: String,
    /// Its unit.
    pub unit: FigureUnit,
    /// Whether more is worse, as of times, or less.
    pub more_is_worse: bool,
    /// Mean over the old runs (geometric, but for shares).
    pub base: Option<f64>,
    /// Mean over the new runs.
    pub new: Option<f64>,
    /// Each old run.
    pub base_runs: Vec<f64>,
    /// Each new run.
    pub new_runs: Vec<f64>,
    /// How much worse it may get.
    pub margin: f64,
    /// What the runs say about it.
    #[serde(flatten)]
    pub judged: Judged,
    /// One run on each side: the change as the requests within the runs show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_run: Option<WithinRun>,
}

impl GateResult {
    /// Its margin, with its kind.
    pub(crate) const fn margin(&self) -> Margin {
        match self.unit {
            FigureUnit::Share => Margin::Points(self.margin),
            _ => Margin::Relative(self.margin),
        }
    }

    /// A gate that could not be measured in a run.
    fn without_value(gate: &Gate, why: String) -> Self {
        Self::judged(gate, Judged::without_interval(None, Judgement::Inconclusive(why)))
    }

    fn judged(gate: &Gate, judged: Judged) -> Self {
        let (Margin::Relative(margin) | Margin::Points(margin)) = gate.margin();
        Self {
            name: gate.name().to_owned(),
            unit: FigureUnit::of(gate),
            more_is_worse: gate.worse() == Worse::Higher,
            base: None,
            new: None,
            base_runs: Vec::new(),
            new_runs: Vec::new(),
            margin,
            judged,
            within_run: None,
        }
    }

    fn of(gate: &Gate, figure: &Repeated, judged: Judged) -> Self {
        Self {
            base: mean(figure.margin, &figure.base),
            new: mean(figure.margin, &figure.new),
            base_runs: figure.base.clone(),
            new_runs: figure.new.clone(),
            ..Self::judged(gate, judged)
        }
    }
}

/// A gate of the simple rule; `values` are the old and the new one, and the change.
pub(crate) fn simple_result(
    gate: &Gate,
    margin: f64,
    values: Option<(f64, f64, f64)>,
    judgement: Judgement,
) -> GateResult {
    let judged = Judged::without_interval(values.map(|(.., change)| change), judgement);
    GateResult {
        base: values.map(|(old, ..)| old),
        new: values.map(|(_, new, _)| new),
        base_runs: values.iter().map(|(old, ..)| *old).collect(),
        new_runs: values.iter().map(|(_, new, _)| *new).collect(),
        margin,
        ..GateResult::judged(gate, judged)
    }
}

/// The mean of runs: geometric where changes are ratios.
pub(crate) fn mean(margin: Margin, values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let scaled = Repeated::scaled(margin, values);
    Some(match (margin, scaled) {
        (Margin::Relative(_), Some(logs)) => (logs.iter().sum::<f64>() / count).exp(),
        _ => values.iter().sum::<f64>() / count,
    })
    .filter(|mean| mean.is_finite())
}

/// The figures of a gate in the runs of both sides.
struct Measured {
    base: Vec<BoundedFigure>,
    new: Vec<BoundedFigure>,
    trials: Option<(u64, u64)>,
}

impl Measured {
    fn of(gate: &Gate, base: &[StoredRun], new: &[StoredRun]) -> Result<Self, String> {
        let [base_trials, new_trials] = [base, new]
            .map(|runs| runs.iter().map(|run| gate.trials(&run.summary)).sum::<Option<u64>>());
        Ok(Self {
            base: base.iter().map(|run| measure(gate, run)).collect::<Result<_, _>>()?,
            new: new.iter().map(|run| measure(gate, run)).collect::<Result<_, _>>()?,
            trials: base_trials.zip(new_trials),
        })
    }

    /// The values, each changed by `of`.
    fn repeated(&self, gate: &Gate, of: impl Fn(&BoundedFigure) -> f64) -> Repeated {
        Repeated {
            base: self.base.iter().map(&of).collect(),
            new: self.new.iter().map(&of).collect(),
            margin: gate.margin(),
            worse: gate.worse(),
            trials: self.trials,
        }
    }

    fn has_bound(&self) -> bool {
        self.base.iter().chain(&self.new).any(|figure| figure.bound > 0.0)
    }
}

pub(crate) fn measure(gate: &Gate, run: &StoredRun) -> Result<BoundedFigure, String> {
    gate.measure(&run.summary).map_err(|why| format!("{}: {why}", run.path.display()))
}

/// The figure without what the generator may have added to a time, or prevented of a rate.
fn without_generator(gate: &Gate, figure: &BoundedFigure) -> f64 {
    match gate.unit() {
        Unit::Time => figure.value - figure.bound,
        _ => figure.value + figure.bound,
    }
}

/// Judges all gates together.
pub(crate) fn judge(gates: &[Gate], base: &[StoredRun], new: &[StoredRun]) -> Vec<GateResult> {
    let measured: Vec<_> = gates.iter().map(|gate| Measured::of(gate, base, new)).collect();
    let known = gates.iter().zip(&measured).filter_map(|(gate, m)| Some((gate, m.as_ref().ok()?)));
    let as_measured: Vec<_> =
        known.clone().map(|(gate, m)| m.repeated(gate, |figure| figure.value)).collect();
    let without: Vec<_> =
        known.map(|(gate, m)| m.repeated(gate, |figure| without_generator(gate, figure))).collect();
    let mut judged = as_measured.iter().zip(repeats(&as_measured)).zip(repeats(&without));
    gates
        .iter()
        .zip(&measured)
        .map(|(gate, measured): (&Gate, &Result<Measured, String>)| match measured {
            Err(why) => GateResult::without_value(gate, why.clone()),
            Ok(measured) => judged.next().map_or_else(
                || GateResult::without_value(gate, "it was not judged".to_owned()),
                |((figure, found), without)| {
                    let mut result = GateResult::of(gate, figure, found);
                    if measured.has_bound() && differs(&result.judged.judgement, &without.judgement)
                    {
                        let why = "what the generator itself added to the figures decides";
                        result.judged.judgement = Judgement::Inconclusive(why.to_owned());
                    }
                    result.within_run =
                        within_run(gate, base, new).filter(|_| result.judged.low.is_none());
                    result
                },
            ),
        })
        .collect()
}

/// Whether two judgements are different words.
fn differs(one: &Judgement, other: &Judgement) -> bool {
    std::mem::discriminant(one) != std::mem::discriminant(other)
}

/// The logarithms of a figure and of the ends of its interval: low, value, high.
fn logarithms(gate: &Gate, run: &StoredRun) -> Option<[f64; 3]> {
    let value = gate.measure(&run.summary).ok()?.value;
    let (low, high) = gate.interval(&run.summary)?;
    (low > 0.0).then(|| [low.ln(), value.ln(), high.ln()])
}

/// The change between two single runs with an interval from those within the runs: each end moves
/// by the square root of the sum of squares of the two distances (Zou and Donner, 2008), on the
/// logarithmic scale.
fn within_run(gate: &Gate, base: &[StoredRun], new: &[StoredRun]) -> Option<WithinRun> {
    let ([base], [new]) = (base, new) else { return None };
    let [base_low, base, base_high] = logarithms(gate, base)?;
    let [new_low, new, new_high] = logarithms(gate, new)?;
    let change = new - base;
    let below = (new - new_low).hypot(base_high - base);
    let above = (new_high - new).hypot(base - base_low);
    Some(WithinRun { low: (change - below).exp_m1(), high: (change + above).exp_m1() })
}
