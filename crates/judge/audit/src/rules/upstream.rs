//! A stack that blames its upstream, and is far below what the upstream does alone.

use super::digits;
use crate::finding::{Finding, Findings, Level};
use crate::heading::Quantity;
use crate::reading::Reading;
use crate::record::{Record, Table, Value};

/// A stack within this share of its upstream may well be bound by it.
const NEAR: f64 = 0.9;

pub(super) fn check(reading: &Reading, findings: &mut Findings) {
    for table in &reading.tables {
        let mut worst: Option<(f64, Finding)> = None;
        for record in &table.records {
            let Some((share, finding)) = blames(table, record) else { continue };
            if worst.as_ref().is_none_or(|(least, _)| share < *least) {
                worst = Some((share, finding));
            }
        }
        if let Some((_, finding)) = worst {
            findings.add(finding);
        }
    }
}

fn blames(table: &Table, record: &Record) -> Option<(f64, Finding)> {
    let (heading, name) = record.words.iter().find(|(heading, _)| {
        let heading = heading.to_lowercase();
        ["bottleneck", "limited by", "bound by"].iter().any(|words| heading.contains(words))
    })?;
    let name = name.to_lowercase();
    let rate = record.only(Quantity::Rate)?;
    let direct = table.records.iter().find(|other| is_direct(&other.label, &name))?;
    let alone = direct.only(Quantity::Rate)?;
    let share = rate.number.high / alone.number.low.max(f64::MIN_POSITIVE);
    (share < NEAR).then(|| (share, finding(record, rate, alone, heading, &name)))
}

fn is_direct(label: &str, name: &str) -> bool {
    const ALONE: [&str; 5] = ["direct", "alone", "only", "baseline", "without"];
    let label = label.to_lowercase();
    let known = name.chars().any(char::is_alphanumeric);
    known && label.contains(name) && ALONE.iter().any(|word| label.contains(word))
}

fn finding(record: &Record, rate: &Value, alone: &Value, heading: &str, name: &str) -> Finding {
    let less = (1.0 - rate.number.value / alone.number.value.max(f64::MIN_POSITIVE)) * 100.0;
    Finding {
        level: Level::Contradicted,
        rule: "upstream",
        line: record.line,
        cell: rate.cell.clone(),
        says: format!(
            "{}, {heading}: {name}, which alone does {}",
            rate.number.text, alone.number.text
        ),
        because: format!(
            "{} % less than {name} alone: what stands before it is the limit",
            digits(less)
        ),
        fix: format!("about {}, or another bottleneck", alone.number.text),
    }
}
