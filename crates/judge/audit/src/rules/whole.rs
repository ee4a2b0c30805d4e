//! The row of the total against the rows of its parts: a percentile of all lies between those of
//! the parts, counts add up, and a mean of percentiles is none.

use super::{at, digits, show};
use crate::finding::{Findings, Level};
use crate::heading::{Quantity, Stat};
use crate::reading::Reading;
use crate::record::{Record, Table, Value};

pub(super) fn check(reading: &Reading, findings: &mut Findings) {
    for table in &reading.tables {
        let Some((last, parts)) = table.records.split_last() else { continue };
        let label = last.label.trim().to_lowercase();
        let name = label.split_whitespace().next().unwrap_or_default();
        let is_mean = matches!(name, "average" | "avg" | "mean");
        let is_total =
            matches!(name, "total" | "overall" | "all" | "sum" | "aggregate" | "combined");
        if !(is_mean || is_total) || parts.len() < 2 {
            continue;
        }
        for value in &last.values {
            match value.quantity {
                Quantity::Time(Stat::Percentile(_)) => percentile(value, parts, is_total, findings),
                Quantity::Requests | Quantity::Errors if is_total => {
                    count(value, table, parts, findings);
                }
                _ => {}
            }
        }
    }
}

fn same<'rec>(value: &Value, parts: &'rec [Record]) -> Option<Vec<&'rec Value>> {
    let found: Vec<&Value> =
        parts.iter().filter_map(|part| part.get(value.quantity, &value.of)).collect();
    let whole = found.len() == parts.len() && value.number.is_plain();
    let alike = found.iter().all(|part| part.has_unit == value.has_unit);
    (whole && alike).then_some(found)
}

fn percentile(value: &Value, parts: &[Record], is_total: bool, findings: &mut Findings) {
    let Some(parts) = same(value, parts) else { return };
    let low = parts.iter().map(|part| part.number.low).fold(f64::INFINITY, f64::min);
    let high = parts.iter().map(|part| part.number.high).fold(0.0, f64::max);
    let name = value.quantity.name();
    if is_total && (value.number.high * 1.01 < low || value.number.low > high * 1.01) {
        let mut finding = at(value, &parts, Level::Contradicted, "whole");
        finding.because = format!(
            "{name} of all lies between the least and the greatest {name} of the parts, {} to {}",
            show(low, value.quantity),
            show(high, value.quantity)
        );
        "a figure between them, or rows that are named as not being the parts"
            .clone_into(&mut finding.fix);
        findings.add(finding);
        return;
    }
    let mean = parts.iter().map(|part| part.number.value).sum::<f64>() / parts.len() as f64;
    let is_mean = value.number.low < mean && mean < value.number.high && high > low * 1.2;
    let fine = (value.number.high - value.number.low) < 0.02 * mean;
    if is_mean && fine {
        let mut finding = at(value, &parts, Level::CannotTell, "whole");
        finding.because =
            format!("it equals the mean of the {name}s, which is no percentile of anything");
        finding.fix = format!("{name} of all samples together");
        findings.add(finding);
    }
}

/// The least and the greatest sum that the values may have.
fn sum(values: &[&Value]) -> (f64, f64) {
    values
        .iter()
        .fold((0.0, 0.0), |(low, high), value| (low + value.number.low, high + value.number.high))
}

fn count(value: &Value, table: &Table, parts: &[Record], findings: &mut Findings) {
    let Some(numbers) = same(value, parts) else { return };
    let without: Vec<Record> = parts
        .iter()
        .filter(|record: &&Record| !record.label.to_lowercase().contains("warm"))
        .cloned()
        .collect();
    let (low, high) = sum(&numbers);
    let others = same(value, &without).map(|values| sum(&values));
    let meets = [Some((low, high)), others]
        .into_iter()
        .flatten()
        .any(|(low, high)| value.number.high >= low && value.number.low <= high);
    if meets || table.tool.is_some() {
        return;
    }
    let level = if value.number.high < low { Level::Contradicted } else { Level::CannotTell };
    let mut finding = at(value, &numbers, level, "whole");
    finding.because = format!("the rows above add up to {}", digits(low.midpoint(high)));
    finding.fix = format!("{}, or the rows that are missing", digits(low.midpoint(high)));
    findings.add(finding);
}
