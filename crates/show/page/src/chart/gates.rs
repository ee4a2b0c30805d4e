//! The gates of a comparison: their changes, with the margins.

use plimsoll_compare::gates::FigureUnit;
use plimsoll_compare::{Comparison, GateResult, Rule};
use plimsoll_metrics::Judgement;
use plimsoll_report::format::digits;
use plimsoll_report::table::Table as Texts;

use crate::drawn_chart::Chart;
use crate::forest::{Limit, Panel, Row, draw};
use crate::mark::Mark;
use crate::plot::{legend, without_zeros};
use crate::table::Table;

/// Gates as they were judged: what is a share of the figure, and what are points of a share, have
/// an axis each. `gates` is their table.
pub(super) fn chart(comparison: &Comparison, gates: &Texts) -> Option<Chart> {
    let rows = |points: bool| -> Vec<Row> {
        let found = comparison.gates.iter().zip(&gates.rows);
        let found = found.filter(|(gate, _)| (gate.unit == FigureUnit::Share) == points);
        found.map(|(gate, cells)| row(gate, cells)).collect()
    };
    let label = |unit: &'static str| {
        move |value: f64| {
            let sign = if value > 0.0 { "+" } else { "" };
            format!("{sign}{}{unit}", without_zeros(&digits(value * 100.0)))
        }
    };
    let (shares, points) = (label("%"), label("pp"));
    let axis = "change, new against old";
    let panels = [
        Panel { caption: String::new(), rows: rows(false), label: &shares, axis },
        Panel { caption: String::new(), rows: rows(true), label: &points, axis },
    ];
    let panels: Vec<_> = panels.into_iter().filter(Panel::has_value).collect();
    if panels.is_empty() {
        return None;
    }
    let (drawing, height) = draw(&panels);
    Some(Chart {
        id: "gates".to_owned(),
        title: "How each gate changed".to_owned(),
        text: text(comparison, gates),
        drawing,
        height: Some(height),
        legend: legend(&entries(comparison)),
        table: Table { head: gates.head.clone(), rows: gates.rows.clone() },
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

/// A gate: its name, its change and its judgement.
fn row(gate: &GateResult, cells: &[String]) -> Row {
    let cell = |column: usize| cells.get(column).cloned().unwrap_or_default();
    let mark = match gate.judged.judgement {
        Judgement::Pass => Mark::Good,
        Judgement::Fail => Mark::Bad,
        Judgement::Inconclusive(_) => Mark::Open,
    };
    Row {
        name: gate.name.clone(),
        words: format!("{} {}", cell(CHANGE), cell(JUDGEMENT)),
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

fn text(comparison: &Comparison, gates: &Texts) -> String {
    let of = |cells: &Vec<String>| {
        Some(format!("{} {} ({})", cells.first()?, cells.get(CHANGE)?, cells.get(JUDGEMENT)?))
    };
    let shown: Vec<_> = gates.rows.iter().take(6).filter_map(of).collect();
    let how = match comparison.rule {
        Rule::Repeats => {
            "A gate passes if the worse end of its 95 % interval is within the margin."
        }
        Rule::Simple => "Two numbers are compared, which knows nothing of chance.",
    };
    format!("{}. {how}", shown.join("; "))
}
