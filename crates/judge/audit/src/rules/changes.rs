//! A change in per cent or times against the figures beside it. Any usual reading is accepted:
//! (b - a) / a, (a - b) / b, b / a, a / b, and points where both are shares.

use super::digits;
use crate::finding::{Finding, Findings, Level};
use crate::number::Number;
use crate::reading::Reading;
use crate::record::Change;
use crate::unit::Dimension;

pub(super) fn check(reading: &Reading, findings: &mut Findings) {
    for change in reading.tables.iter().flat_map(|table| &table.changes) {
        let explained = change.groups.iter().any(|group| {
            let [a, b] = group.as_slice() else { return true };
            explains(&change.number, a, b) || explains(&change.number, b, a)
        });
        if !explained {
            findings.add(finding(change));
        }
    }
}

/// Whether the change may be that from `a` to `b`.
pub(crate) fn explains(change: &Number, a: &Number, b: &Number) -> bool {
    if a.low <= 0.0 || b.low <= 0.0 {
        return true;
    }
    let (low, high) = (b.low / a.high, b.high / a.low);
    let is_share = change.unit.is_some_and(|unit| unit.dimension == Dimension::Share);
    let scale = if is_share { 0.01 } else { 1.0 };
    let one = change.low.abs() * scale;
    let other = change.high.abs() * scale;
    let wanted = (one.min(other), one.max(other));
    let meets = |low: f64, high: f64| wanted.0 <= high + 1e-9 && wanted.1 >= low - 1e-9;
    let (more_low, more_high) = (low - 1.0, high - 1.0);
    let relative = if more_low <= 0.0 && more_high >= 0.0 {
        (0.0, more_low.abs().max(more_high))
    } else {
        (more_low.abs().min(more_high.abs()), more_low.abs().max(more_high.abs()))
    };
    let points = (b.value - a.value).abs();
    meets(low, high)
        || meets(relative.0, relative.1)
        || (is_share && meets(points - (b.high - b.low), points + (b.high - b.low)))
}

fn finding(change: &Change) -> Finding {
    let pair = change.groups.first().map(Vec::as_slice).unwrap_or_default();
    let texts: Vec<&str> = pair.iter().map(|number| number.text.as_str()).collect();
    let (because, fix) = match pair {
        [a, b] => {
            let (up, down) = ((b.value / a.value - 1.0) * 100.0, (1.0 - a.value / b.value) * 100.0);
            let factor = (b.value / a.value).max(a.value / b.value);
            (
                format!(
                    "from {} to {}: {} % of the first, {} % of the second, {} times",
                    a.text,
                    b.text,
                    digits(up),
                    digits(down),
                    digits(factor)
                ),
                format!("{} % or {}x", digits(up), digits(factor)),
            )
        }
        _ => (String::new(), String::new()),
    };
    Finding {
        level: Level::Contradicted,
        rule: "changes",
        line: change.line,
        cell: change.cell.clone(),
        says: format!("{}, beside {}", change.number.text, texts.join(" and ")),
        because,
        fix,
    }
}
