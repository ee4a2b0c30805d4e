//! The limits, those that are broken first.

use plimsoll_metrics::{BandLevel, Judgement, RunSummary, ThresholdResult, Unit};

use crate::format;
use crate::screen::{Item, Screen, Tone};

/// Broken ones that are left out last.
const LEAST: usize = 3;

pub(super) fn add(screen: &mut Screen, summary: &RunSummary) {
    let found = run_bounds(summary);
    let least = found.iter().filter(|item| item.tone() != Tone::Good).count().clamp(1, LEAST);
    screen.judged("", unit(&summary.thresholds), found, least);
}

/// The name of the limits of a run.
pub(super) fn unit(limits: &[ThresholdResult]) -> &'static str {
    match limits {
        limits if limits.iter().any(ThresholdResult::is_band) => "bounds",
        [_] => "threshold",
        _ => "thresholds",
    }
}

/// The limits of a run with their measured values, failed limits first.
pub fn run_bounds(summary: &RunSummary) -> Vec<Item> {
    let mut found: Vec<_> = summary.thresholds.iter().map(threshold).collect();
    found.sort_by_key(|item| std::cmp::Reverse(item.tone()));
    found
}

fn threshold(found: &ThresholdResult) -> Item {
    let tone = match (&found.judgement, found.level) {
        (Judgement::Fail, _) => Tone::Bad,
        (Judgement::Inconclusive(_), _) | (_, Some(BandLevel::Degraded)) => Tone::Unsure,
        (Judgement::Pass, _) => Tone::Good,
    };
    let text = format!("{} {}: {}", found.metric, found.expression, threshold_measured(found));
    Item::judged(tone, found.word(), &text)
}

fn threshold_measured(threshold: &ThresholdResult) -> String {
    match (&threshold.judgement, threshold.measured) {
        (Judgement::Inconclusive(why), _) => why.clone(),
        (_, Some(value)) => {
            let ours = threshold.generator.map(|bound| value_in(threshold.unit, bound));
            let ours = match threshold.unit {
                Unit::Time => ours.map(|bound| format!(" (error: up to {bound})")),
                _ => ours.map(|bound| format!(" (up to {bound} more without the generator)")),
            };
            let value = value_in(threshold.unit, value);
            format!("measured {value}{}", ours.unwrap_or_default())
        }
        (_, None) => threshold.of_every_value().unwrap_or_default().to_owned(),
    }
}

fn value_in(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Time => format::time(value),
        Unit::Share => format::share(value),
        Unit::RequestsPerSecond | Unit::TokensPerSecond => format!("{}/s", format::digits(value)),
        _ => format::digits(value),
    }
}
