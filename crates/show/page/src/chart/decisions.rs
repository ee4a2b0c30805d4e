//! Expected and actual policy decisions: a field of numbers for each target.

use std::collections::BTreeSet;

use maud::{Markup, html};
use plimsoll_measure::PolicyDecision;
use plimsoll_metrics::confusion_matrix::{Matrix, UNANSWERED};
use plimsoll_metrics::{Group, RunSummary};
use plimsoll_report::format::{count, share_of};
use plimsoll_report::printable;
use plimsoll_report::table::Table;

use crate::drawn_chart::Chart;
use crate::plot::{WIDTH, legend, place};

const LEFT: f64 = 112.0;
const CAPTION: f64 = 24.0;
const HEAD: f64 = 40.0;
const ROW: f64 = 34.0;

/// A matrix for each target, where scenarios expect policy decisions.
pub(super) fn chart(summary: &RunSummary) -> Option<Chart> {
    let groups: Vec<&Group> = summary
        .results
        .by_target
        .iter()
        .filter(|group| !group.policy_decisions.is_empty())
        .collect();
    if groups.is_empty() {
        return None;
    }
    let matrices: Vec<_> = groups.iter().map(|group| Field::from_group(group)).collect();
    let mut top = 0.0;
    let drawing = html! {
        @for field in &matrices {
            g transform=(format!("translate(0 {})", place(top))) { (field.draw()) }
            ({ top += field.height(); "" })
        }
    };
    let entries = [("right", "as expected"), ("wrong", "not as expected")];
    Some(Chart {
        id: "decisions".to_owned(),
        title: "Policy decisions: expected and actual".to_owned(),
        text: groups.iter().map(|group| sentence(group)).collect::<Vec<_>>().join(" "),
        drawing,
        height: Some(top),
        legend: legend(&entries.map(|(class, words)| (class.to_owned(), words.to_owned()))),
        table: table(&matrices),
    })
}

/// The matrix of a target: decisions that occur, in the order of reports.
struct Field<'a> {
    target: &'a str,
    matrix: &'a Matrix,
    expected: Vec<&'static str>,
    actual: Vec<&'static str>,
}

impl<'a> Field<'a> {
    fn from_group(group: &'a Group) -> Self {
        let matrix = &group.policy_decisions;
        let seen: BTreeSet<&str> =
            matrix.values().flat_map(|row| row.keys().map(String::as_str)).collect();
        let names = PolicyDecision::ALL.map(PolicyDecision::name).into_iter();
        // A decision that is expected has a column, also where nobody made it.
        Self {
            target: group.target.as_deref().unwrap_or_default(),
            matrix,
            expected: names.clone().filter(|name| matrix.contains_key(*name)).collect(),
            actual: names
                .chain([UNANSWERED])
                .filter(|name| seen.contains(name) || matrix.contains_key(*name))
                .collect(),
        }
    }

    fn requests(&self, expected: &str, actual: &str) -> u64 {
        let row = self.matrix.get(expected);
        row.and_then(|row| row.get(actual)).copied().unwrap_or_default()
    }

    fn of_row(&self, expected: &str) -> u64 {
        self.matrix.get(expected).map_or(0, |row| row.values().sum())
    }

    const fn height(&self) -> f64 {
        CAPTION + HEAD + ROW * self.expected.len() as f64 + 8.0
    }

    fn draw(&self) -> Markup {
        let width = ((WIDTH - LEFT - 6.0) / self.actual.len().max(1) as f64).min(110.0);
        let x = |column: usize| LEFT + width * column as f64;
        let y = |row: usize| CAPTION + HEAD + ROW * row as f64;
        html! {
            text.caption x="4" y="15" { (printable(self.target)) }
            text.soft x="4" y=(place(CAPTION + HEAD - 6.0)) { "expected" }
            @for (column, name) in self.actual.iter().enumerate() {
                // Neighbours stand at two heights, so that long words have room.
                @let up = if column % 2 == 1 { 18.0 } else { 0.0 };
                text.soft x=(place(x(column) + width / 2.0)) y=(place(CAPTION + HEAD - 6.0 - up)) text-anchor="middle" {
                    (words(name))
                }
            }
            @for (row, expected) in self.expected.iter().enumerate() {
                text x="4" y=(place(y(row) + 21.0)) { (words(expected)) }
                @for (column, actual) in self.actual.iter().enumerate() {
                    @let n = self.requests(expected, actual);
                    @let part = n as f64 / self.of_row(expected).max(1) as f64;
                    (cell(x(column), y(row), width, n, part, expected == actual))
                }
            }
        }
    }
}

/// A cell: the stronger its colour, the larger its share of the row.
fn cell(x: f64, y: f64, width: f64, n: u64, part: f64, right: bool) -> Markup {
    let [left, top, across, down] = [x + 1.5, y + 1.5, width - 3.0, ROW - 3.0].map(place);
    html! {
        rect.cell x=(left) y=(top) width=(across) height=(down) opacity=(format!("{:.2}", 0.04 + part * 0.4)) {}
        @if right { rect.right x=(left) y=(top) width=(across) height=(down) {} }
        @else if n > 0 { rect.wrong x=(left) y=(top) width=(across) height=(down) {} }
        text x=(place(x + width / 2.0)) y=(place(y + 21.0)) text-anchor="middle" { (count(n)) }
    }
}

fn words(name: &str) -> String {
    name.replace(['_', '-'], " ")
}

fn sentence(group: &Group) -> String {
    let counters = &group.counters;
    format!(
        "{}: {} of {} answered requests have the policy decision that their scenario expects ({}).",
        printable(group.target.as_deref().unwrap_or_default()),
        count(counters.as_expected),
        count(counters.judged),
        share_of(group.rates.policy_correctness)
    )
}

fn table(fields: &[Field<'_>]) -> Table {
    let mut table = Table::new(["target", "expected", "actual", "requests"]);
    for field in fields {
        for (expected, row) in field.matrix {
            let cells = row.iter().map(|(actual, n)| {
                vec![field.target.to_owned(), words(expected), words(actual), count(*n)]
            });
            table.rows.extend(cells);
        }
    }
    table
}
