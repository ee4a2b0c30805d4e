//! What each target adds, with 95 % intervals: the differences of pairs of a comparison.

use plimsoll_report::format::{DASH, count, difference, or_dash, p_value, time};
use plimsoll_report::printable;
use plimsoll_report::table::Table;
use plimsoll_versus::{Difference, Figure, Kind, Role, Versus};

use crate::drawn_chart::Chart;
use crate::forest::{Panel, Row, draw};
use crate::mark::Mark;
use crate::plot::{legend, signed_time};

const NANOS: f64 = 1e6;

/// What is added by target and figure; of an invalid comparison nothing.
pub(super) fn chart(versus: &Versus) -> Option<Chart> {
    let title = format!("What each target adds to the {}", versus.headline.title());
    chart_of("added".to_owned(), title, versus)
}

/// The same of a comparison of a suite.
pub(super) fn in_suite(nth: usize, name: &str, versus: &Versus) -> Option<Chart> {
    chart_of(format!("added-{nth}"), format!("What is added: {}", printable(name)), versus)
}

fn chart_of(id: String, title: String, versus: &Versus) -> Option<Chart> {
    if !versus.invalid.is_empty() {
        return None;
    }
    let panels: Vec<_> = groups(versus)
        .into_iter()
        .map(|(caption, rows)| Panel { caption, rows, label: &signed_time, axis: "added time" })
        .filter(Panel::has_value)
        .collect();
    if panels.is_empty() {
        return None;
    }
    let (drawing, height) = draw(&panels);
    Some(Chart {
        id,
        title,
        text: text(versus),
        drawing,
        height: Some(height),
        legend: legend(&[]),
        table: table(versus),
    })
}

/// The rows of each panel, with what they have in common: the headline first, then other figures,
/// then its shift at the 99th percentile.
fn groups(versus: &Versus) -> Vec<(String, Vec<Row>)> {
    let others = Figure::ALL.into_iter().filter(|figure| *figure != versus.headline);
    let mut groups: Vec<_> = std::iter::once(versus.headline)
        .chain(others)
        .map(|figure| {
            let caption = format!("{}, median of the differences", figure.title());
            (caption, rows_to_reference(versus, Kind::Added, figure, "p50"))
        })
        .collect();
    let tail = format!("{}, difference of the p99", versus.headline.title());
    groups.push((tail, rows_to_reference(versus, Kind::Shift, versus.headline, "p99")));
    groups.retain(|(_, rows)| !rows.is_empty());
    groups
}

fn rows_to_reference(versus: &Versus, kind: Kind, figure: Figure, quantile: &str) -> Vec<Row> {
    let shown = versus.differences.iter().filter(|found| {
        found.reference == versus.reference()
            && (found.kind, found.figure) == (kind, figure)
            && found.quantile == quantile
    });
    shown.map(|found| row(versus, found)).collect()
}

fn row(versus: &Versus, found: &Difference) -> Row {
    let is_control =
        versus.targets.iter().any(|t| t.name == found.target && t.role == Role::Control);
    let limited = found.limited().map(|(v, low, high)| (v / NANOS, low / NANOS, high / NANOS));
    let sampled = found.measured().map(|(_, low, high)| (low / NANOS, high / NANOS));
    Row {
        name: found.target.clone(),
        words: limited.map_or_else(
            || format!("{DASH} ({})", found.refused.as_deref().unwrap_or("not known")),
            |(value, low, high)| difference(value, low, high),
        ),
        mark: if is_control { Mark::Control } else { Mark::Disc },
        value: limited.map(|(value, ..)| value),
        interval: limited.map(|(_, low, high)| (low, high)),
        within: sampled.filter(|_| found.generator_ns.is_some()),
        ..Row::default()
    }
}

fn text(versus: &Versus) -> String {
    let shown: Vec<_> = versus
        .headline_added()
        .filter_map(|found| Some(format!("{} {}", printable(&found.target), in_words(found)?)))
        .collect();
    format!(
        "{}: {}. Against {}, request by request, with 95 % intervals that contain what may be the \
         generator's; one that holds 0 shows no difference. The median of the differences is what \
         the median request pays. It is not the difference of the two medians, and may even have \
         the other sign where requests differ much from each other.",
        versus.headline.title(),
        shown.join(", "),
        printable(versus.reference())
    )
}

/// A difference with its limits, where it may be told.
fn in_words(found: &Difference) -> Option<String> {
    let (value, low, high) = found.limited()?;
    Some(difference(value / NANOS, low / NANOS, high / NANOS))
}

/// Every difference to the reference and between targets.
fn table(versus: &Versus) -> Table {
    let mut table = Table::new([
        "target",
        "against",
        "figure",
        "what",
        "percentile",
        "difference [95 %, with the generator's part]",
        "of that the generator's, at most",
        "p",
        "pairs",
    ]);
    for of in &versus.differences {
        table.rows.push(vec![
            of.target.clone(),
            of.reference.clone(),
            of.figure.title().to_owned(),
            of.kind.name().replace('_', " "),
            of.quantile.clone(),
            in_words(of)
                .unwrap_or_else(|| format!("{DASH} {}", of.refused.clone().unwrap_or_default())),
            or_dash(of.generator_ns.map(|nanos| nanos / NANOS), time),
            or_dash(of.p, p_value),
            count(of.pairs),
        ]);
    }
    table
}
