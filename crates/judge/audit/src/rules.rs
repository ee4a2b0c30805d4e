//! What cannot be true, one rule per file.

mod bands;
mod bytes;
mod changes;
mod little;
mod mean;
mod order;
mod samples;
mod shares;
mod subtraction;
mod targets;
mod total;
mod upstream;
mod whole;

use crate::finding::{Finding, Findings, Level};
use crate::heading::Quantity;
use crate::reading::Reading;
use crate::record::{Record, Value};

type Rule = fn(&Reading, &mut Findings);

const RULES: [Rule; 13] = [
    order::check,
    mean::check,
    little::check,
    total::check,
    shares::check,
    samples::check,
    changes::check,
    targets::check,
    bands::check,
    bytes::check,
    upstream::check,
    whole::check,
    subtraction::check,
];

/// Applies all rules.
pub(crate) fn check(reading: &Reading, findings: &mut Findings) {
    for rule in RULES {
        rule(reading, findings);
    }
}

/// Every record of every table.
fn records(reading: &Reading) -> impl Iterator<Item = &Record> {
    reading.tables.iter().flat_map(|table| &table.records)
}

/// A finding at a figure. What rests on a guess about a heading is undecided.
fn at(value: &Value, others: &[&Value], level: Level, rule: &'static str) -> Finding {
    let sure = value.sure && others.iter().all(|other| other.sure);
    let all = std::iter::once(&value).chain(others);
    let says: Vec<String> = all.map(|value| value.says()).collect();
    Finding {
        level: if sure { level } else { Level::CannotTell },
        rule,
        line: value.line,
        cell: value.cell.clone(),
        says: says.join(", "),
        because: String::new(),
        fix: String::new(),
    }
}

/// A figure in its base unit, with the digits that matter.
pub(crate) fn show(value: f64, quantity: Quantity) -> String {
    match quantity {
        Quantity::Time(_) | Quantity::Duration => time(value),
        Quantity::SuccessShare | Quantity::ErrorShare => format!("{}%", digits(value * 100.0)),
        Quantity::Rate | Quantity::OfferedRate => format!("{}/s", digits(value)),
        _ => digits(value),
    }
}

fn time(seconds: f64) -> String {
    let (scale, unit) = match seconds.abs() {
        size if size >= 1.0 => (1.0, "s"),
        size if size >= 1e-3 => (1e3, "ms"),
        size if size > 0.0 => (1e6, "us"),
        _ => (1.0, "s"),
    };
    format!("{}{unit}", digits(seconds * scale))
}

/// Four digits, or all of a whole number.
pub(crate) fn digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    if value.abs() >= 1000.0 {
        let whole = format!("{:.0}", value.abs());
        let mut text = String::new();
        for (at, digit) in whole.chars().enumerate() {
            if at > 0 && (whole.len() - at).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        return if value < 0.0 { format!("-{text}") } else { text };
    }
    let places = (0..12_i32).find(|places| value.abs() * 10f64.powi(*places) >= 1000.0);
    let places = usize::try_from(places.unwrap_or(12)).unwrap_or(0);
    let text = format!("{value:.places$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_shown_with_their_units() {
        assert_eq!(show(0.00459, Quantity::Duration), "4.59ms");
        assert_eq!(show(21_989.0, Quantity::Rate), "21,989/s");
        assert_eq!(show(0.0005, Quantity::ErrorShare), "0.05%");
        assert_eq!(
            (digits(0.0), digits(1_234_567.0), digits(999.96)),
            ("0".into(), "1,234,567".into(), "1000".into())
        );
    }
}
