//! "no overhead", "negligible": against the row without and the row with.

use super::Claim;
use crate::finding::{Finding, Findings, Level};
use crate::heading::{Quantity, Stat};
use crate::number::short;
use crate::reading::Reading;
use crate::record::{Record, Table, Value};
use crate::rules::digits;

/// Words, and the loss beyond which they are contradicted.
const CLAIMS: [(&str, f64); 9] = [
    ("no overhead", 0.03),
    ("zero overhead", 0.03),
    ("zero-overhead", 0.03),
    ("no measurable overhead", 0.03),
    ("no performance impact", 0.03),
    ("no latency penalty", 0.03),
    ("without overhead", 0.03),
    ("negligible overhead", 0.1),
    ("negligible impact", 0.1),
];

const WITHOUT: [&str; 7] =
    ["direct", "baseline", "bare", "without", "no proxy", "upstream only", "raw"];

pub(super) fn check(claim: &Claim<'_>, reading: &Reading, findings: &mut Findings) {
    let Some((_, most)) = CLAIMS.iter().find(|(word, _)| claim.text.contains(word)) else { return };
    let denied = claim.has(&["not ", "n't", "should", "goal", "aim", "memory", "cpu "]);
    if denied {
        return;
    }
    let pairs: Vec<(&Record, &Record)> = reading.tables.iter().filter_map(pair).collect();
    // Several comparisons: which one is meant is not known.
    let [(without, with)] = pairs.as_slice() else { return };
    let losses: Vec<(f64, f64, &Value)> = losses(without, with);
    let worst = losses.iter().max_by(|one, other| one.0.total_cmp(&other.0));
    let Some((least, printed, value)) = worst else { return };
    if least > most {
        let because = format!(
            "{} is {} % worse than {} ({})",
            with.label,
            digits(printed * 100.0),
            without.label,
            value.quantity.name()
        );
        findings.add(claim.finding("overhead words", because, "the overhead that was measured"));
    }
}

fn is_without(record: &Record) -> bool {
    let label = record.label.to_lowercase();
    WITHOUT.iter().any(|word| label.contains(word))
}

/// A table of two rows, one of them without.
fn pair(table: &Table) -> Option<(&Record, &Record)> {
    let [one, other] = table.records.as_slice() else { return None };
    match (is_without(one), is_without(other)) {
        (true, false) => Some((one, other)),
        (false, true) => Some((other, one)),
        _ => None,
    }
}

/// By how much each figure is worse: the least that the digits allow, as printed, and which.
fn losses<'rec>(without: &Record, with: &'rec Record) -> Vec<(f64, f64, &'rec Value)> {
    let matches = with.values.iter().filter_map(|value| {
        let before = without.get(value.quantity, &value.of)?;
        with.get(value.quantity, &value.of)?;
        let (old, new) = (&before.number, &value.number);
        let positive = old.low > 0.0 && new.low > 0.0 && before.has_unit == value.has_unit;
        if !positive {
            return None;
        }
        match value.quantity {
            Quantity::Rate => Some((1.0 - new.high / old.low, 1.0 - new.value / old.value, value)),
            Quantity::Time(Stat::Mean | Stat::Percentile(50_000)) => {
                Some((new.low / old.high - 1.0, new.value / old.value - 1.0, value))
            }
            _ => None,
        }
    });
    matches.collect()
}

/// The words in a row's own notes, against the row whose name it continues.
pub(super) fn cells(reading: &Reading, findings: &mut Findings) {
    for table in &reading.tables {
        for record in &table.records {
            let claim = record.words.iter().find_map(|(_, cell)| {
                let text = cell.to_lowercase();
                let claim = CLAIMS.iter().find(|(word, _)| text.contains(word))?;
                Some((cell, claim.1))
            });
            let Some((cell, most)) = claim else { continue };
            let Some(base) = base(table, record) else { continue };
            let losses = losses(base, record);
            let worst = losses.iter().max_by(|one, other| one.0.total_cmp(&other.0));
            if let Some((_, printed, value)) = worst.filter(|(least, ..)| *least > most) {
                findings.add(Finding {
                    level: Level::Contradicted,
                    rule: "overhead words",
                    line: record.line,
                    cell: value.cell.clone(),
                    says: format!("\"{}\"", short(cell)),
                    because: format!("{} % worse than {}", digits(printed * 100.0), base.label),
                    fix: "the overhead that was measured".to_owned(),
                });
            }
        }
    }
}

fn stem(label: &str) -> String {
    label.split('(').next().unwrap_or_default().trim().to_lowercase()
}

/// `gateway (200)` is the base of `gateway + auth`.
fn base<'tab>(table: &'tab Table, record: &Record) -> Option<&'tab Record> {
    let own = stem(&record.label);
    let (base, _) = own.split_once('+')?;
    let mut found = table.records.iter().filter(|other| stem(&other.label) == base.trim());
    found.next()
}
