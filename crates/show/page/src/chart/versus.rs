//! Overhead of each target: the differences of pairs, with their intervals.

use plimsoll_report::format::{DASH, difference, or_dash, p_value, time};
use plimsoll_versus::{Difference, Kind, Role, Versus};

use super::{Cell, Chart, Rows};

const NANOS: f64 = 1e6;

/// The differences of valid comparisons with their names.
pub(crate) fn added(title: String, comparisons: &[(&str, &Versus)]) -> Option<Chart> {
    let table = [
        "target",
        "against",
        "figure",
        "what",
        "percentile",
        "difference [95 %, with the generator's part]",
        "of that the generator's, at most",
        "p",
        "pairs",
    ];
    let drawing = ["row", "role", "added", "low", "high", "measured low", "measured high"];
    let mut rows = Rows::new(table, drawing);
    for (name, versus) in comparisons.iter().filter(|(_, versus)| versus.invalid.is_empty()) {
        rows.cells.extend(versus.differences.iter().map(|found| row(name, versus, found)));
    }
    let drawn = rows.cells.iter().any(|row| row[11].value.is_number());
    let text = "Each difference is between paired requests, with its 95 % interval; the pale one \
                contains the measurement error. An interval that includes 0 shows no difference. The median \
                of the differences is what the median request pays; the difference of the two \
                medians may differ from it. Answers of targets with * differ from those of the \
                reference, so these times are not of the same work.";
    drawn.then(|| {
        let spec = include_str!("../../assets/charts/added.json");
        Chart::new("added", spec, title, text.to_owned(), &rows)
    })
}

fn row(comparison: &str, versus: &Versus, found: &Difference) -> Vec<Cell> {
    let role = versus.targets.iter().find(|t| t.name == found.target).map(|target| target.role);
    // The drawing has one row per figure of a target, and one for its tail.
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

/// A difference with its limits, or the reason why it is unknown.
fn in_words(found: &Difference) -> String {
    found.limited().map_or_else(
        || format!("{DASH} {}", found.refused.as_deref().unwrap_or_default()),
        |(value, low, high)| difference(value / NANOS, low / NANOS, high / NANOS),
    )
}
