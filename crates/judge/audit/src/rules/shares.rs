//! Shares against the counts that they are of, and against each other.

use super::{at, digits, records, show};
use crate::finding::{Findings, Level};
use crate::heading::Quantity;
use crate::reading::Reading;
use crate::record::{Record, Value};

pub(super) fn check(reading: &Reading, findings: &mut Findings) {
    for record in records(reading) {
        let [errors, successes] = [Quantity::ErrorShare, Quantity::SuccessShare]
            .map(|quantity| record.get(quantity, "").filter(|share| share.has_unit));
        for share in [errors, successes].into_iter().flatten() {
            beyond_one(share, findings);
            granularity(record, share, findings);
        }
        if let (Some(errors), Some(successes)) = (errors, successes) {
            together(errors, successes, findings);
        }
        if let Some(share) = errors {
            of_counts(record, share, Quantity::Errors, findings);
        }
        if let Some(share) = successes {
            of_counts(record, share, Quantity::Successes, findings);
        }
        parts(record, findings);
    }
}

fn beyond_one(share: &Value, findings: &mut Findings) {
    if share.number.low > 1.0 {
        let mut finding = at(share, &[], Level::Impossible, "shares");
        "a share of requests is at most 100 %".clone_into(&mut finding.because);
        "at most 100 %".clone_into(&mut finding.fix);
        findings.add(finding);
    }
}

fn together(errors: &Value, successes: &Value, findings: &mut Findings) {
    let sum = errors.number.low + successes.number.low;
    if sum > 1.0 + 1e-9 {
        let mut finding = at(errors, &[successes], Level::Impossible, "shares");
        let sum = show(sum, Quantity::ErrorShare);
        finding.because =
            format!("together at least {sum}, and no request both fails and succeeds");
        let rest = show(1.0 - successes.number.value, Quantity::ErrorShare);
        finding.fix = format!("an error rate of at most {rest}");
        findings.add(finding);
    }
}

/// What may be the whole: all requests, or those that the other column leaves out.
fn wholes(record: &Record) -> Vec<f64> {
    let Some(requests) = record.get(Quantity::Requests, "") else { return Vec::new() };
    let requests = &requests.number;
    let mut wholes = vec![requests.low, requests.high];
    for quantity in [Quantity::Errors, Quantity::Successes] {
        if let Some(others) = record.get(quantity, "") {
            let others = &others.number;
            wholes.extend([requests.low + others.low, requests.high + others.high]);
        }
    }
    wholes
}

fn of_counts(record: &Record, share: &Value, quantity: Quantity, findings: &mut Findings) {
    let wholes = wholes(record);
    let (Some(part), Some(requests)) =
        (record.get(quantity, ""), record.get(Quantity::Requests, ""))
    else {
        return;
    };
    let least = part.number.low / wholes.iter().copied().fold(1.0, f64::max);
    let most = part.number.high / wholes.iter().copied().fold(f64::INFINITY, f64::min).max(1.0);
    if share.number.low <= most + 1e-12 && share.number.high >= least - 1e-12 {
        return;
    }
    let mut finding = at(share, &[part, requests], Level::Contradicted, "shares");
    let value = show(part.number.value / requests.number.value.max(1.0), share.quantity);
    finding.because = format!("{} of {} are {value}", part.number.text, requests.number.text);
    let count = digits((share.number.value * requests.number.value).round());
    finding.fix = format!("{value}, or {count} {}", part.quantity.name());
    findings.add(finding);
}

/// A share of n requests is a whole number over n.
fn granularity(record: &Record, share: &Value, findings: &mut Findings) {
    let Some(requests) = record.get(Quantity::Requests, "").filter(|count| count.number.whole)
    else {
        return;
    };
    let possible = wholes(record).into_iter().any(|n| {
        n > 1e9 || (share.number.low * n - 1e-6).ceil() <= (share.number.high * n + 1e-6).floor()
    });
    if possible {
        return;
    }
    let mut finding = at(share, &[requests], Level::Contradicted, "shares");
    let n = requests.number.value.max(1.0);
    let part = share.number.value * n;
    finding.because = format!(
        "{} of {} requests are {} requests, not a whole number",
        share.number.text,
        requests.number.text,
        digits(part)
    );
    let [below, above] = [part.floor(), part.ceil()].map(|count| show(count / n, share.quantity));
    finding.fix = format!("{below} or {above}");
    findings.add(finding);
}

fn parts(record: &Record, findings: &mut Findings) {
    let (Some(part), Some(whole)) =
        (record.get(Quantity::Successes, ""), record.get(Quantity::Requests, ""))
    else {
        return;
    };
    if part.number.low > whole.number.high {
        let mut finding = at(part, &[whole], Level::Impossible, "shares");
        "more requests succeeded than there were".clone_into(&mut finding.because);
        finding.fix = format!("at least {} requests", part.number.text);
        findings.add(finding);
    }
}
