//! Results in the worst band of the document's own table of bands.

use super::show;
use crate::finding::{Finding, Findings, Level};
use crate::heading::Quantity;
use crate::number::Bound;
use crate::reading::Reading;
use crate::record::{Band, Record, Value};

/// The document says itself that it misses its limits.
const ADMITTED: [&str; 6] = [
    "not met",
    "misses the",
    "exceeds the target",
    "above target",
    "above the target",
    "critical band",
];

pub(super) fn check(reading: &Reading, findings: &mut Findings) {
    if reading.claims().any(|line| {
        let text = line.text.to_lowercase();
        ADMITTED.iter().any(|word| text.contains(word))
    }) {
        return;
    }
    for band in reading.tables.iter().flat_map(|table| &table.bands) {
        if !matches!(band.quantity, Quantity::Time(_) | Quantity::ErrorShare) {
            continue;
        }
        let tables = reading.tables.iter().filter(|table| table.bands.is_empty());
        let records = tables.flat_map(|table| &table.records).filter(|record| !is_marked(record));
        let same: Vec<&Value> =
            records.filter_map(|record| record.get(band.quantity, &band.of)).collect();
        report(band, &same, findings);
    }
}

/// The row says itself that it is bad.
fn is_marked(record: &Record) -> bool {
    record.words.iter().any(|(_, cell)| {
        let cell = cell.to_lowercase();
        ["critical", "fail", "degraded", "miss", "cold"].iter().any(|word| cell.contains(word))
    })
}

fn report(band: &Band, values: &[&Value], findings: &mut Findings) {
    let limit = band.critical.value;
    let bad: Vec<&&Value> = values
        .iter()
        .filter(|value: &&&Value| match band.critical.bound {
            Bound::Above => value.has_unit && value.number.low > limit,
            _ => value.has_unit && value.number.high < limit,
        })
        .collect();
    let worst = bad.iter().max_by(|one, other| one.number.value.total_cmp(&other.number.value));
    let Some(worst) = worst else { return };
    findings.add(Finding {
        level: Level::Contradicted,
        rule: "bands",
        line: worst.line,
        cell: worst.cell.clone(),
        says: format!("{}, and line {} calls {} critical", worst.says(), band.line, band.text),
        because: format!(
            "{} of {} figures for {} are beyond {}",
            bad.len(),
            values.len(),
            band.name,
            show(limit, band.quantity)
        ),
        fix: "other limits, or a sentence that says that they are missed".to_owned(),
    });
}
