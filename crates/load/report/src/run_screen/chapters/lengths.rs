//! Tokens of requests: lengths, reasoning, and tokens per second of a user, per group.

use plimsoll_metrics::ValueSummary;

use super::Labelled;
use crate::format;
use crate::table::Table;

const HEADINGS: [&str; 10] = ["", "count", "sum", "mean", "min", "p50", "p90", "p95", "p99", "max"];

/// No rows where no request has tokens.
pub(super) fn table(groups: &[Labelled<'_>]) -> Table {
    let mut table = Table::new(HEADINGS);
    for (label, group) in groups {
        let Some(tokens) = &group.tokens else { continue };
        table.row(vec![(*label).to_owned()]);
        for (title, part) in tokens.parts() {
            table.row(row(title, part, title == "Tokens/s per user"));
        }
    }
    table
}

/// Lengths are whole numbers, and the sum of speeds says nothing.
fn row(title: &str, part: &ValueSummary, is_rate: bool) -> Vec<String> {
    let number: fn(f64) -> String =
        if is_rate { |speed| format::rate(Some(speed)) } else { |length| format!("{length:.0}") };
    let sum = if is_rate { String::new() } else { format::rate(Some(part.sum)) };
    let mut cells = vec![format!("  {title}"), format::count(part.count), sum];
    cells.push(format::rate(Some(part.mean)));
    cells.extend([part.min, part.p50, part.p90, part.p95, part.p99, part.max].map(number));
    cells
}
