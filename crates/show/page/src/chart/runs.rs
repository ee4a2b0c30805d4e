//! The runs of a comparison, gate by gate: how much those of one side differ.

use maud::{Markup, html};
use plimsoll_compare::gates::FigureUnit;
use plimsoll_compare::{Comparison, GateResult};
use plimsoll_report::format::{digits, percent, rate, time, time_us};
use plimsoll_report::printable;
use plimsoll_report::table::Table;

use crate::axis::Axis;
use crate::drawn_chart::Chart;
use crate::plot::{Plot, legend, place, without_zeros};

const ROW: f64 = 52.0;
const AXIS: f64 = 46.0;

/// Every run of each gate, the old ones above the new ones.
pub(super) fn chart(comparison: &Comparison) -> Option<Chart> {
    let gates = comparison.gates.iter().filter(|gate| !gate.base_runs.is_empty());
    let rows: Vec<Row<'_>> =
        gates.filter(|gate| gate.base.is_some_and(|base| base > 0.0)).map(Row::from_gate).collect();
    if rows.is_empty() || comparison.base.len() + comparison.new.len() < 3 {
        return None;
    }
    let entries = [("f0", "old runs (discs)"), ("f1", "new runs (diamonds)")];
    Some(Chart {
        id: "runs".to_owned(),
        title: "Every run".to_owned(),
        text: format!(
            "{} old and {} new runs. How far those of one side lie apart is what a change must be seen against.",
            comparison.base.len(),
            comparison.new.len()
        ),
        drawing: draw(&rows),
        height: Some(ROW * rows.len() as f64 + AXIS),
        legend: legend(&entries.map(|(class, words)| (class.to_owned(), words.to_owned()))),
        table: table(&rows),
    })
}

/// A gate, and how far its runs lie from the mean of the old ones, as a share of it.
struct Row<'a> {
    gate: &'a GateResult,
    old: Vec<f64>,
    new: Vec<f64>,
}

impl<'a> Row<'a> {
    fn from_gate(gate: &'a GateResult) -> Self {
        let mean = gate.base.unwrap_or(1.0);
        let [old, new] = [&gate.base_runs, &gate.new_runs]
            .map(|runs| runs.iter().map(|value| value / mean - 1.0).collect());
        Self { gate, old, new }
    }

    fn all(&self) -> impl Iterator<Item = f64> {
        self.old.iter().chain(&self.new).copied()
    }
}

fn draw(rows: &[Row<'_>]) -> Markup {
    let low = rows.iter().flat_map(Row::all).fold(0.0, f64::min);
    let high = rows.iter().flat_map(Row::all).fold(0.0, f64::max);
    let sizes = rows.iter().map(|row| row.all().map(f64::abs).fold(0.0, f64::max));
    let x = Axis::of_differences(low, high, &sizes.collect::<Vec<_>>());
    let plot = Plot { x, y: Axis::linear(0.0, 1.0) };
    let bottom = ROW * rows.len() as f64 + 6.0;
    html! {
        (plot.upright(4.0, bottom, &change, "against the mean of the old runs"))
        @for (nth, row) in rows.iter().enumerate() {
            @let top = 4.0 + ROW * nth as f64;
            text.over x="4" y=(place(top + 14.0)) { (printable(&row.gate.name)) }
            @for x in row.old.iter().map(|share| place(plot.x(*share))) { circle.f0 cx=(x) cy=(place(top + 26.0)) r="4" opacity="0.75" {} }
            @for x in row.new.iter().map(|share| place(plot.x(*share))) {
                path.f1 d=(format!("M{x} {}l4.5 4.5l-4.5 4.5l-4.5 -4.5z", place(top + 35.5))) opacity="0.75" {}
            }
        }
    }
}

fn table(rows: &[Row<'_>]) -> Table {
    let mut table = Table::new(["gate", "side", "run", "value"]);
    for Row { gate, .. } in rows {
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

/// A share of change with its sign.
fn change(share: f64) -> String {
    let sign = if share > 0.0 { "+" } else { "" };
    format!("{sign}{}%", without_zeros(&digits(share * 100.0)))
}
