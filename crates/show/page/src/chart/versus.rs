//! What each target adds: the differences of pairs, with their intervals.

use plimsoll_report::format::{DASH, difference, or_dash, p_value, time};
use plimsoll_versus::{Difference, Kind, Role, Versus};

use super::{Cell, Chart, Rows};

const NANOS: f64 = 1e6;

/// The differences of valid comparisons, each with its name.
pub(crate) fn added(title: &str, comparisons: &[(&str, &Versus)]) -> Option<Chart> {
    let mut rows = Rows::named("added");
    for (name, versus) in comparisons.iter().filter(|(_, versus)| versus.invalid.is_empty()) {
        rows.cells.extend(versus.differences.iter().map(|found| row(name, versus, found)));
    }
    let drawn = rows.cells.iter().any(|row| row[11].value.is_number());
    let spec = include_str!("../../assets/charts/added.json");
    drawn.then(|| Chart::named("added", title, spec, &rows))
}

fn row(comparison: &str, versus: &Versus, found: &Difference) -> Vec<Cell> {
    let role = versus.targets.iter().find(|t| t.name == found.target).map(|target| target.role);
    // The drawing has one row for each figure of a target, and one for its tail.
    let is_drawn = found.reference == versus.reference()
        && (found.kind == Kind::Added && found.quantile == "p50"
            || found.kind == Kind::Shift
                && found.figure == versus.headline
                && found.quantile == "p99");
    let limited = found.limited().filter(|_| is_drawn);
    let measured = found.measured().filter(|_| limited.is_some());
    let what = if found.kind == Kind::Added { "median" } else { "p99" };
    let place = if comparison.is_empty() { String::new() } else { format!("{comparison}: ") };
    let mark = if found.other_answers { " *" } else { "" };
    let words = format!("{}{mark}", in_words(found));
    let mut row = vec![
        Cell::text(&found.target),
        Cell::text(&found.reference),
        Cell::text(found.figure.title()),
        Cell::text(&found.kind.name().replace('_', " ")),
        Cell::text(&found.quantile),
        Cell::new((), words),
        Cell::new((), or_dash(found.generator_ns.map(|nanos| nanos / NANOS), time)),
        Cell::new((), or_dash(found.p, p_value)),
        Cell::count(found.pairs),
        Cell::text(&format!("{place}{}, {}, {what}", found.target, found.figure.title())),
        Cell::value(if role == Some(Role::Control) { "control" } else { "target" }),
    ];
    let ends = [
        limited.map(|(value, ..)| value),
        limited.map(|(_, low, _)| low),
        limited.map(|(.., high)| high),
        measured.map(|(_, low, _)| low),
        measured.map(|(.., high)| high),
    ];
    row.extend(ends.map(|nanos| Cell::value(nanos.map(|nanos| nanos / NANOS))));
    row
}

/// A difference with its limits, or why it is unknown.
fn in_words(found: &Difference) -> String {
    found.limited().map_or_else(
        || format!("{DASH} {}", found.refused.as_deref().unwrap_or_default()),
        |(value, low, high)| difference(value / NANOS, low / NANOS, high / NANOS),
    )
}
