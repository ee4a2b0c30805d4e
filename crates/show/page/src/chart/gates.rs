//! The gates of a comparison: their changes with the margins, and the runs that they come from.

use maud::html;
use plimsoll_compare::gates::FigureUnit;
use plimsoll_compare::{Comparison, GateResult, Rule};
use plimsoll_metrics::Judgement;
use plimsoll_report::format::{digits, percent, rate, time, time_us};
use plimsoll_report::table::Table as Texts;

use crate::axis::Axis;
use crate::drawn_chart::Chart;
use crate::forest::{Limit, Mark, Panel, Row, draw};
use crate::plot::{Plot, WIDTH, legend, place, without_zeros};
use crate::table::Table;

/// Gates as they were judged: what is a share of the figure, and what are points of a share, have
/// an axis each. `gates` is their table.
pub(super) fn forest(comparison: &Comparison, gates: &Texts) -> Option<Chart> {
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

/// A gate: its name and change, and in its table's last column the judgement.
fn row(gate: &GateResult, cells: &[String]) -> Row {
    let cell = |column: usize| cells.get(column).cloned().unwrap_or_default();
    let mark = match gate.judged.judgement {
        Judgement::Pass => Mark::Good,
        Judgement::Fail => Mark::Bad,
        Judgement::Inconclusive(_) => Mark::Open,
    };
    let word = cells.last().cloned().unwrap_or_default();
    Row {
        name: gate.name.clone(),
        words: format!("{} {word}", cell(3)),
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
        let word = cells.last().map_or("", String::as_str);
        Some(format!("{} {} ({word})", cells.first()?, cells.get(3)?))
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

const ROW: f64 = 52.0;
const AXIS: f64 = 46.0;

/// Every run of each gate, the old ones above the new ones: how much runs of one side differ.
pub(super) fn runs(comparison: &Comparison) -> Option<Chart> {
    let shown: Vec<&GateResult> = comparison
        .gates
        .iter()
        .filter(|gate| gate.base.is_some_and(|base| base > 0.0 && !gate.base_runs.is_empty()))
        .collect();
    if shown.is_empty() || comparison.base.len() + comparison.new.len() < 3 {
        return None;
    }
    let of_mean = |gate: &GateResult, value: f64| value / gate.base.unwrap_or(value) - 1.0;
    let values = || {
        shown.iter().flat_map(|gate| {
            gate.base_runs.iter().chain(&gate.new_runs).map(|value| of_mean(gate, *value))
        })
    };
    let (low, high) = (values().fold(0.0, f64::min), values().fold(0.0, f64::max));
    let sizes: Vec<f64> = shown
        .iter()
        .map(|gate| {
            let runs = gate.base_runs.iter().chain(&gate.new_runs);
            runs.map(|value| of_mean(gate, *value).abs()).fold(0.0, f64::max)
        })
        .collect();
    let plot = Plot { x: Axis::of_differences(low, high, &sizes), y: Axis::linear(0.0, 1.0) };
    let (bottom, height) = (ROW * shown.len() as f64 + 6.0, ROW * shown.len() as f64 + AXIS);
    let dots = |gate: &GateResult, values: &[f64]| -> Vec<String> {
        values.iter().map(|value| place(plot.x(of_mean(gate, *value)))).collect()
    };
    let label = |value: f64| {
        let sign = if value > 0.0 { "+" } else { "" };
        format!("{sign}{}%", without_zeros(&digits(value * 100.0)))
    };
    let ticks = plot.x.ticks();
    let symmetric = if plot.x.is_symmetric() { ", logarithmic from 0 outward" } else { "" };
    let drawing = html! {
        @for (nth, tick) in ticks.iter().enumerate() {
            @let x = place(plot.x(*tick));
            line.grid x1=(x) x2=(x) y1="4" y2=(place(bottom)) {}
            text.spare[ticks.len() > 6 && nth % 2 == 1] x=(x) y=(place(bottom + 16.0)) text-anchor="middle" { (label(*tick)) }
        }
        @for (nth, gate) in shown.iter().enumerate() {
            @let top = 4.0 + ROW * nth as f64;
            text.over x="4" y=(place(top + 14.0)) { (plimsoll_report::printable(&gate.name)) }
            @for x in dots(gate, &gate.base_runs) { circle.f0 cx=(x) cy=(place(top + 26.0)) r="4" opacity="0.75" {} }
            @for x in dots(gate, &gate.new_runs) {
                path.f1 d=(format!("M{x} {}l4.5 4.5l-4.5 4.5l-4.5 -4.5z", place(top + 35.5))) opacity="0.75" {}
            }
        }
        text.soft x=(place(WIDTH - 6.0)) y=(place(bottom + 36.0)) text-anchor="end" {
            "against the mean of the old runs" (symmetric)
        }
    };
    let entries = [("f0", "old runs (discs)"), ("f1", "new runs (diamonds)")];
    Some(Chart {
        id: "runs".to_owned(),
        title: "Every run".to_owned(),
        text: format!(
            "{} old and {} new runs. How far those of one side lie apart is what a change must be seen against.",
            comparison.base.len(),
            comparison.new.len()
        ),
        drawing,
        height: Some(height),
        legend: legend(&entries.map(|(class, words)| (class.to_owned(), words.to_owned()))),
        table: table(&shown),
    })
}

fn table(shown: &[&GateResult]) -> Table {
    let mut table = Table::new(&["gate", "side", "run", "value"]);
    for gate in shown {
        for (side, runs) in [("old", &gate.base_runs), ("new", &gate.new_runs)] {
            for (nth, found) in runs.iter().enumerate() {
                let number = (nth + 1).to_string();
                let value = value(gate.unit, *found);
                table.rows.push(vec![gate.name.clone(), side.to_owned(), number, value]);
            }
        }
    }
    table
}

fn value(unit: FigureUnit, value: f64) -> String {
    match unit {
        FigureUnit::Ms => time(value),
        FigureUnit::CpuUs => time_us(value),
        FigureUnit::PerS => format!("{}/s", rate(Some(value))),
        FigureUnit::Share => percent(value),
    }
}
