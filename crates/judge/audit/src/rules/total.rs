//! Requests = rate x time.

use super::{at, digits, records, show};
use crate::finding::{Findings, Level};
use crate::heading::Quantity;
use crate::reading::Reading;

/// Starting and draining belong to the one window, and not to the other.
const SLACK: f64 = 1.1;

pub(super) fn check(reading: &Reading, findings: &mut Findings) {
    for record in records(reading) {
        let (Some(rate), Some(time), Some(count)) = (
            record.get(Quantity::Rate, ""),
            record.get(Quantity::Duration, "").filter(|time| time.has_unit),
            record.get(Quantity::Requests, ""),
        ) else {
            continue;
        };
        let least = rate.number.low * time.number.low / SLACK;
        let most = rate.number.high * time.number.high * SLACK;
        if count.number.high >= least && count.number.low <= most {
            continue;
        }
        let mut finding = at(count, &[rate, time], Level::Contradicted, "total");
        let product = rate.number.value * time.number.value;
        finding.because = format!(
            "{} x {} = {} requests, {} to {} with rounding and 10 % for other windows",
            rate.number.text,
            time.number.text,
            digits(product),
            digits(least.max(0.0)),
            digits(most)
        );
        let seconds = time.number.value.max(f64::MIN_POSITIVE);
        let wanted = show(count.number.value / seconds, Quantity::Rate);
        finding.fix = format!("{} requests, or {wanted}", digits(product));
        findings.add(finding);
    }
}
