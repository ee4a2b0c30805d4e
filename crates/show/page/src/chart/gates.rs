//! The gates of a comparison: their changes, with the margins.

use plimsoll_compare::gates::FigureUnit;
use plimsoll_compare::{Comparison, GateResult, Rule};
use plimsoll_metrics::Judgement;
use plimsoll_report::format::digits;
use plimsoll_report::table::Table;

use crate::drawn_chart::Chart;
use crate::forest::{Limit, Panel, Row, draw};
use crate::mark::Mark;
use crate::plot::{legend, without_zeros};

/// Gates as they were judged: what is a share of the figure, and what are points of a share, have
/// an axis each.
pub(super) fn chart(comparison: &Comparison) -> Option<Chart> {
    let gates = comparison.table();
    let (shares, others): (Vec<_>, Vec<_>) = comparison
        .gates
        .iter()
        .zip(&gates.rows)
        .partition(|(gate, _)| gate.unit == FigureUnit::Share);
    let panels = [
        panel(&others, &|value| format!("{}%", signed_percent(value))),
        panel(&shares, &|value| format!("{}pp", signed_percent(value))),
    ];
    let panels: Vec<_> = panels.into_iter().filter(Panel::has_value).collect();
    if panels.is_empty() {
        return None;
    }
    let (drawing, height) = draw(&panels);
    Some(Chart {
        id: "gates".to_owned(),
        title: "How each gate changed".to_owned(),
        text: text(comparison, &gates),
        drawing,
        height: Some(height),
        legend: legend(&entries(comparison)),
        table: gates,
    })
}

fn entries(comparison: &Comparison) -> Vec<(String, String)> {
    let has_within = comparison.gates.iter().any(|gate| gate.within_run.is_some());
    let within = has_within
        .then_some(("l within", "within the two runs only: less than repeats would show"));
    let entries = [("ok", "within the margin")].into_iter().chain(within);
    entries.map(|(class, words)| (class.to_owned(), words.to_owned())).collect()
}

/// Where a gate's change and its judgement stand in its table.
const JUDGEMENT: usize = 1;
const CHANGE: usize = 4;

fn panel<'a>(gates: &[(&GateResult, &Vec<String>)], label: &'a dyn Fn(f64) -> String) -> Panel<'a> {
    Panel {
        caption: String::new(),
        rows: gates.iter().map(|(gate, cells)| row(gate, cells)).collect(),
        label,
        axis: "change, new against old",
    }
}

fn signed_percent(value: f64) -> String {
    let sign = if value > 0.0 { "+" } else { "" };
    format!("{sign}{}", without_zeros(&digits(value * 100.0)))
}

/// A gate: its name, its change and its judgement.
fn row(gate: &GateResult, cells: &[String]) -> Row {
    let [change, judgement] =
        [CHANGE, JUDGEMENT].map(|column| cells.get(column).map_or("", String::as_str));
    let mark = match gate.judged.judgement {
        Judgement::Pass => Mark::Good,
        Judgement::Fail => Mark::Bad,
        Judgement::Inconclusive(_) => Mark::Open,
    };
    Row {
        name: gate.name.clone(),
        words: format!("{change} {judgement}"),
        mark,
        value: gate.judged.change,
        interval: gate.judged.low.zip(gate.judged.high),
        within: gate.within_run.map(|within| (within.low, within.high)),
        limit: Some(Limit {
            at: if gate.more_is_worse { gate.margin } else { -gate.margin },
            more_is_worse: gate.more_is_worse,
        }),
    }
}

fn text(comparison: &Comparison, gates: &Table) -> String {
    let shown: Vec<_> = gates
        .rows
        .iter()
        .take(6)
        .filter_map(|cells: &Vec<String>| {
            Some(format!("{} {} ({})", cells.first()?, cells.get(CHANGE)?, cells.get(JUDGEMENT)?))
        })
        .collect();
    let how = match comparison.rule {
        Rule::Repeats => {
            "A gate passes if the worse end of its 95 % interval is within the margin."
        }
        Rule::Simple => "Two numbers are compared, which knows nothing of chance.",
    };
    format!("{}. {how}", shown.join("; "))
}
