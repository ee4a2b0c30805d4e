//! Overhead as a difference of percentiles: the p99 of what was added is not the p99 with it minus
//! the p99 without it, as these are different requests.

use super::at;
use crate::finding::{Findings, Level};
use crate::heading::{Quantity, Stat};
use crate::reading::Reading;
use crate::record::{Table, Value};

pub(super) fn check(reading: &Reading, findings: &mut Findings) {
    for table in &reading.tables {
        let values = table.records.iter().flat_map(|record| {
            let in_row = is_overhead(&record.label);
            record.values.iter().map(move |value| (value, in_row))
        });
        for (value, in_row) in values.filter(|(value, in_row)| *in_row || is_overhead(&value.of)) {
            difference(table, value, in_row, findings);
        }
    }
}

fn is_overhead(label: &str) -> bool {
    let label = label.to_lowercase();
    let mut words = label.split(|c: char| !c.is_alphanumeric());
    words.any(|word| matches!(word, "overhead" | "added" | "adds" | "cost" | "penalty"))
}

/// The median is left out: its differences are near enough for most.
fn difference(table: &Table, value: &Value, in_row: bool, findings: &mut Findings) {
    let Quantity::Time(Stat::Percentile(rank)) = value.quantity else { return };
    if rank <= 50_000 || !value.number.is_plain() {
        return;
    }
    let others = table.records.iter().flat_map(|record| {
        let usable = !is_overhead(&record.label)
            && (in_row || record.values.iter().any(|one| std::ptr::eq(one, value)));
        record.values.iter().filter(move |_| usable)
    });
    let others: Vec<&Value> = others
        .filter(|other| other.quantity == value.quantity && !is_overhead(&other.of))
        .filter(|other| other.has_unit == value.has_unit && (!in_row || other.of == value.of))
        .take(50)
        .collect();
    for one in &others {
        for other in &others {
            let low = other.number.low - one.number.high;
            let high = other.number.high - one.number.low;
            let is_it = value.number.low <= high && value.number.high >= low;
            let clear = other.number.value > one.number.value && value.number.value > 0.0;
            if !(is_it && clear) {
                continue;
            }
            let mut finding = at(value, &[other, one], Level::CannotTell, "subtraction");
            let name = value.quantity.name();
            finding.because = format!(
                "it is {} - {}; the {name} of what was added is not a difference of {name}s",
                other.number.text, one.number.text
            );
            finding.fix =
                format!("the {name} of differences of paired requests, or the word \"difference\"");
            findings.add(finding);
            return;
        }
    }
}
