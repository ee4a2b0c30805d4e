//! Old runs against new ones: the change of each gate, and the percentiles of every run.

use plimsoll_compare::gates::FigureUnit;
use plimsoll_compare::{Comparison, GateResult, Rule};
use plimsoll_metrics::Metric;
use serde_json::{Map, Value, json};

use super::Chart;
use super::percentiles::{self, Times};

/// The change of each gate with its margin.
pub(crate) fn gates(comparison: &Comparison) -> Option<Chart> {
    let rows: Vec<Value> = comparison.gates.iter().filter_map(gate).collect();
    let text = match comparison.rule {
        Rule::Repeats => {
            "A gate passes if the worse end of its 95 % interval is within the margin."
        }
        Rule::Simple => "Two numbers are compared, without regard to chance.",
    };
    (!rows.is_empty()).then(|| Chart {
        id: "gates",
        title: "Change of each gate".to_owned(),
        text: text.to_owned(),
        spec: include_str!("../../assets/charts/gates.json"),
        data: Map::from_iter([("rows".to_owned(), rows.into())]),
        table: comparison.table(),
    })
}

/// A gate with a known change, in percent, or in percentage points for a share.
fn gate(gate: &GateResult) -> Option<Value> {
    let change = gate.judged.change?;
    let unit = if gate.unit == FigureUnit::Share { "percentage points" } else { "%" };
    let margin = if gate.more_is_worse { gate.margin } else { -gate.margin };
    let [low, high] = [gate.judged.low, gate.judged.high].map(|end| Some(end? * 100.0));
    Some(json!({
        "row": format!("{} ({unit})", gate.name),
        "gate": gate.name,
        "judgement": gate.judged.judgement.verdict(),
        "change": change * 100.0,
        "margin": margin * 100.0,
        "low": low,
        "high": high,
    }))
}

/// A line per run, which shows the variation between the runs of each side.
pub(crate) fn runs_by_percentile(comparison: &Comparison) -> Option<Chart> {
    let times = comparison.times.as_ref()?;
    let metric = Metric::ALL.into_iter().find(|metric| metric.key() == times.metric)?;
    let sides = [("old", &times.base), ("new", &times.new)];
    let runs = sides.into_iter().flat_map(|(of, runs)| {
        runs.iter().enumerate().filter_map(move |(run, distribution)| {
            Some(Times { of, run: run + 1, metric, distribution: distribution.as_ref()? })
        })
    });
    let title = format!("{} of every run by percentile", metric.title());
    percentiles::chart(&title, &runs.collect::<Vec<_>>())
}
