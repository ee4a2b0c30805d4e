//! The mean against the percentiles: a share `q - p` of the samples lies between the percentiles
//! `p` and `q`, so the mean is at least the sum of the lower ends, and at most that of the upper
//! ends (for one percentile this is Markov's inequality).

use super::{at, records, show};
use crate::finding::{Findings, Level};
use crate::heading::Quantity;
use crate::reading::Reading;
use crate::record::{Record, Value};

/// Percentiles of few samples are a sample off, by definition: assumed where the count is unknown.
const FEW: f64 = 100.0;

/// Definitions of percentiles and buckets of histograms differ by this much.
const SLACK: f64 = 0.01;

/// The least mean that the percentiles allow, in seconds.
pub(super) fn least(record: &Record, of: &str) -> f64 {
    let ranked = record.quantiles(of);
    let ends = ranked.iter().skip(1).map(|(share, _)| *share).chain([1.0]);
    let parts = ranked.iter().zip(ends).map(|((share, value), end)| {
        (end - share - 1.0 / samples(record)).max(0.0) * value.number.low
    });
    parts.sum::<f64>() * (1.0 - SLACK)
}

/// The largest; `None` without a maximum.
fn most(record: &Record, of: &str) -> Option<f64> {
    let ranked = record.quantiles(of);
    let max = ranked.last().filter(|(share, _)| *share >= 1.0)?.1.number.high;
    let (mut sum, mut before) = (0.0, 0.0);
    for (share, value) in &ranked {
        sum += (share - before + 1.0 / samples(record)) * value.number.high;
        before = *share;
    }
    Some(sum.min(max) * (1.0 + SLACK))
}

fn samples(record: &Record) -> f64 {
    let count = record.only(Quantity::Requests).map(|value| value.number.low);
    count.filter(|count| *count >= 1.0).unwrap_or(FEW)
}

pub(super) fn check(reading: &Reading, findings: &mut Findings) {
    for record in records(reading) {
        for of in record.subjects() {
            let Some(mean) = record.mean(of) else { continue };
            let ranked = record.quantiles(of);
            if ranked.is_empty() || ranked.iter().any(|(_, value)| value.has_unit != mean.has_unit)
            {
                continue;
            }
            compare(record, of, mean, findings);
        }
    }
}

fn compare(record: &Record, of: &str, mean: &Value, findings: &mut Findings) {
    let least = least(record, of);
    let ranked = record.quantiles(of);
    let others: Vec<&Value> = ranked.iter().map(|(_, value)| *value).collect();
    // Beyond min and max is the rule `order`.
    let beyond = others.iter().any(|value| {
        value.number.low > mean.number.high
            && value.quantity == Quantity::Time(crate::heading::Stat::Min)
    });
    if mean.number.high < least && !beyond {
        let mut finding = at(mean, &others, Level::Impossible, "mean");
        let bound = show(least, mean.quantity);
        finding.because = format!("these percentiles alone make a mean of at least {bound}");
        finding.fix = format!("a mean of at least {bound}, or lower percentiles");
        findings.add(finding);
    }
    let Some(most) = most(record, of) else { return };
    let max = others.last().map_or(f64::INFINITY, |value| value.number.high);
    if mean.number.low > most && mean.number.low <= max {
        let mut finding = at(mean, &others, Level::Impossible, "mean");
        let bound = show(most, mean.quantity);
        finding.because =
            format!("these percentiles and the maximum make a mean of at most {bound}");
        finding.fix = format!("a mean of at most {bound}, or higher percentiles");
        findings.add(finding);
    }
}
