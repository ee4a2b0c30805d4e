//! "sub-millisecond", "sub-10 ms average": against every mean and median of the document.

use super::{Claim, typical_times};
use crate::finding::Findings;
use crate::heading::{Quantity, Stat};
use crate::number::{Locale, Number};
use crate::reading::Reading;
use crate::record::Value;
use crate::unit::Dimension;

pub(super) fn check(claim: &Claim<'_>, reading: &Reading, findings: &mut Findings) {
    // What is added is not what a request takes.
    let added = ["overhead", "added", "adds", "additional", "extra", "resolution", "precision"];
    if claim.has(&added) || claim.is_hedged() {
        return;
    }
    let Some(bound) = bound(&claim.text) else { return };
    let values: Vec<&Value> = stated(claim, reading);
    let least = values.iter().min_by(|one, other| one.number.low.total_cmp(&other.number.low));
    let Some(least) = least.filter(|least| least.number.low > bound) else { return };
    let because = format!(
        "the least such figure of the document is {} ({}, line {})",
        least.says(),
        least.cell,
        least.line
    );
    findings.add(claim.finding("latency words", because, "a time that a figure bears out"));
}

/// The statistic that the sentence names, else means and medians.
fn stated<'doc>(claim: &Claim<'_>, reading: &'doc Reading) -> Vec<&'doc Value> {
    let percentile = [("p99", 99_000), ("p95", 95_000), ("p90", 90_000), ("99th", 99_000)];
    let named = percentile.iter().find(|(name, _)| claim.text.contains(name));
    let Some((_, rank)) = named else { return typical_times(reading) };
    let wanted = Quantity::Time(Stat::Percentile(*rank));
    let records = reading.tables.iter().flat_map(|table| &table.records);
    let values = records.flat_map(|record| &record.values);
    values
        .filter(|value| value.quantity == wanted && value.has_unit && value.number.is_plain())
        .collect()
}

/// In seconds.
fn bound(text: &str) -> Option<f64> {
    const WORDS: [(&str, f64); 6] = [
        ("sub-millisecond", 1e-3),
        ("submillisecond", 1e-3),
        ("sub millisecond", 1e-3),
        ("sub-microsecond", 1e-6),
        ("sub-second", 1.0),
        ("less than a millisecond", 1e-3),
    ];
    if let Some((_, bound)) = WORDS.iter().find(|(word, _)| text.contains(word)) {
        return Some(*bound);
    }
    let (_, after) = text.split_once("sub-")?;
    let number = Number::parse(after.trim_start(), Locale::Point)?;
    let unit = number.unit.or_else(|| {
        let rest = number.rest.trim_start_matches('-');
        crate::unit::leading(rest).0
    })?;
    (unit.dimension == Dimension::Time).then_some(number.value * unit.scale)
}
