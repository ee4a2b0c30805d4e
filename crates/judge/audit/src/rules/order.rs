//! Percentiles rise: min <= p50 <= p99 <= max; and the mean lies between min and max.

use super::{at, records, show};
use crate::finding::{Findings, Level};
use crate::heading::{Quantity, Stat};
use crate::reading::Reading;
use crate::record::Value;

/// A histogram may round a percentile up by its bucket, and the maximum not.
const BUCKET: f64 = 1.01;

pub(super) fn check(reading: &Reading, findings: &mut Findings) {
    for record in records(reading) {
        for of in record.subjects() {
            let ranked = record.quantiles(of);
            for ((_, lower), (_, upper)) in ranked.iter().zip(ranked.iter().skip(1)) {
                compare(lower, upper, findings);
            }
            let Some(mean) = record.mean(of) else { continue };
            if let Some(max) = record.get(Quantity::Time(Stat::Max), of) {
                compare(mean, max, findings);
            }
            if let Some(min) = record.get(Quantity::Time(Stat::Min), of) {
                compare(min, mean, findings);
            }
        }
    }
}

fn compare(lower: &Value, upper: &Value, findings: &mut Findings) {
    if lower.has_unit != upper.has_unit || lower.number.low <= upper.number.high * BUCKET {
        return;
    }
    let mut finding = at(lower, &[upper], Level::Impossible, "order");
    let (one, other) = (lower.quantity.name(), upper.quantity.name());
    let (least, most) = (lower.number.low, upper.number.high);
    finding.because = if lower.has_unit {
        let (least, most) = (show(least, lower.quantity), show(most, upper.quantity));
        format!("{one} is at least {least}, {other} at most {most}; {one} never exceeds {other}")
    } else {
        format!("{one} never exceeds {other} of the same samples")
    };
    finding.fix = format!(
        "{other} of at least {}, or {one} of at most {}",
        lower.number.text, upper.number.text
    );
    findings.add(finding);
}
