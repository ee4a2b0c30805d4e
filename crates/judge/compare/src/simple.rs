//! The simple rule: one new run may be worse than one old run by N percent. It compares two numbers
//! and knows nothing of chance; whatever shows it says so.

use plimsoll_metrics::{Gate, Judgement, Margin, Metric, MetricsError, Worse};

use crate::gates::{GateResult, measure, simple_result};
use crate::stored_run::StoredRun;

/// What the rule says of itself.
pub(crate) const LABEL: &str = "simple rule: two numbers, one run each; unchanged code can fail it, \
                                and changed code can pass";

/// Throughput and tails of every measured stage, and errors.
pub(crate) fn gates(runs: &[StoredRun]) -> Result<Vec<Gate>, MetricsError> {
    let Some(run) = runs.first() else { return Ok(Vec::new()) };
    let stages = run.summary.results.by_stage.iter().filter(|stage| !stage.warmup);
    let time = run.summary.metadata.headline_time().name();
    let mut gates = Vec::new();
    for stage in stages {
        let name = stage.stage.as_deref().unwrap_or_default();
        let mut figures = vec![
            ("throughput".to_owned(), "10%"),
            (format!("{time}.p50"), "10%"),
            (format!("{time}.p99"), "10%"),
        ];
        if stage.distribution(Metric::Ttft).is_some() {
            figures.push(("ttft.p99".to_owned(), "10%"));
        }
        figures.push(("error_rate".to_owned(), "0.1pp"));
        for (figure, margin) in figures {
            gates.push(Gate::parse(&format!("{figure}{{stage:{name}}}"), margin)?);
        }
    }
    Ok(gates)
}

/// Judges: a figure fails that is worse by more than `share`, a share of requests that is worse by
/// more than its own margin.
pub(crate) fn judge(
    gates: &[Gate],
    base: &StoredRun,
    new: &StoredRun,
    share: f64,
) -> Vec<GateResult> {
    gates
        .iter()
        .map(|gate: &Gate| {
            let margin = match gate.margin() {
                Margin::Relative(_) => share,
                Margin::Points(points) => points,
            };
            let values =
                measure(gate, base).and_then(|old| Ok((old.value, measure(gate, new)?.value)));
            let (values, judgement) = match values {
                Err(why) => (None, Judgement::Inconclusive(why)),
                Ok((old, _)) if old == 0.0 && matches!(gate.margin(), Margin::Relative(_)) => {
                    (None, Judgement::Inconclusive("the old value is 0".to_owned()))
                }
                Ok((old, new)) => {
                    let change = match gate.margin() {
                        Margin::Relative(_) => new / old - 1.0,
                        Margin::Points(_) => new - old,
                    };
                    let worse = match gate.worse() {
                        Worse::Higher => change,
                        Worse::Lower => -change,
                    };
                    let judgement = if worse > margin { Judgement::Fail } else { Judgement::Pass };
                    (Some((old, new, change)), judgement)
                }
            };
            simple_result(gate, margin, values, judgement)
        })
        .collect()
}
