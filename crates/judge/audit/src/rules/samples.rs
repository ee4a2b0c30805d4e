//! A percentile p needs 10 samples beyond it: n (1 - p) >= 10.

use super::{at, digits};
use crate::finding::{Findings, Level};
use crate::heading::{Quantity, Stat};
use crate::number::{Locale, Number};
use crate::reading::Reading;
use crate::record::{Record, Value};

const BEYOND: f64 = 10.0;

pub(super) fn check(reading: &Reading, findings: &mut Findings) {
    let stated = stated(reading);
    for table in &reading.tables {
        for record in &table.records {
            let Some((count, source)) = count(record, &stated) else { continue };
            few(record, count, &source, findings);
        }
    }
}

/// The number of samples, and where it is from.
fn count(record: &Record, stated: &[(f64, f64, usize)]) -> Option<(f64, String)> {
    if let Some(count) = record.only(Quantity::Requests) {
        return Some((count.number.high, format!("{} samples", count.number.text)));
    }
    let rate = record.only(Quantity::Rate).or_else(|| record.only(Quantity::OfferedRate))?;
    if let Some(time) = record.only(Quantity::Duration).filter(|time| time.has_unit) {
        let count = rate.number.high * time.number.high;
        return Some((count, format!("{} x {}", rate.number.text, time.number.text)));
    }
    let (_, count, line) =
        stated.iter().find(|(known, ..)| (*known - rate.number.value).abs() < 1e-9)?;
    Some((*count, format!("{} samples (line {line})", digits(*count))))
}

fn few(record: &Record, count: f64, source: &str, findings: &mut Findings) {
    let mut short: Vec<(&Value, f64)> = Vec::new();
    for value in &record.values {
        let Quantity::Time(stat @ Stat::Percentile(_)) = value.quantity else { continue };
        let beyond = stat.share().map_or(f64::INFINITY, |share| count * (1.0 - share));
        if beyond < BEYOND - 1e-6 && value.number.is_plain() {
            short.push((value, beyond));
        }
    }
    let Some(((value, beyond), others)) = short.split_first() else { return };
    let others: Vec<&Value> = others.iter().map(|(value, _)| *value).collect();
    let mut finding = at(value, &others, Level::CannotTell, "samples");
    let share = *beyond / count.max(1.0);
    finding.because = format!("{source}: {} lie beyond {}", digits(*beyond), value.quantity.name());
    let needed = digits((BEYOND / share.max(1e-9)).round());
    finding.fix =
        format!("{needed} samples for {}, so that 10 lie beyond it", value.quantity.name());
    findings.add(finding);
}

/// What sentences say: rate, samples, line. `600 samples in the 20 RPS / 30 s profile`, and
/// `30 s (light, 20 RPS)`.
fn stated(reading: &Reading) -> Vec<(f64, f64, usize)> {
    let mut found = Vec::new();
    for line in reading.claims() {
        let text = line.text.replace(['(', ')', ',', ';'], " ");
        let words: Vec<&str> = text.split_whitespace().collect();
        for (at, word) in words.iter().enumerate() {
            let Some(rate) = rate_at(&words, at) else { continue };
            let before = words.get(at.saturating_sub(6)..at).unwrap_or_default();
            let samples = before.windows(2).rev().find_map(|two| match two {
                [count, "samples" | "requests"] => plain(count),
                _ => None,
            });
            let near = before.get(before.len().saturating_sub(3)..).unwrap_or_default();
            let seconds = near.windows(2).find_map(|two| match two {
                [time, "s" | "sec" | "seconds"] => plain(time),
                _ => None,
            });
            let count = samples.or_else(|| seconds.map(|seconds| seconds * rate));
            if let Some(count) = count.filter(|_| !word.is_empty()) {
                found.push((rate, count, line.number));
            }
        }
    }
    found
}

fn rate_at(words: &[&str], at: usize) -> Option<f64> {
    let unit = words.get(at + 1)?.to_lowercase();
    matches!(unit.as_str(), "rps" | "req/s" | "qps").then(|| plain(words.get(at)?)).flatten()
}

fn plain(word: &str) -> Option<f64> {
    let number = Number::parse(word, Locale::Point)?;
    number.rest.is_empty().then_some(number.value)
}
