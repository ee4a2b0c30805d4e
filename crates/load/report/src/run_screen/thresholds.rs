//! The thresholds and bands, those that are broken first.

use plimsoll_metrics::{BandLevel, BandResult, Judgement, RunSummary, ThresholdResult};

use crate::screen::{Item, Screen, Tone};
use crate::text::{band_measured, threshold_measured};

/// Broken ones that are left out last.
const LEAST: usize = 3;

pub(super) fn add(screen: &mut Screen, summary: &RunSummary) {
    let found = run_bounds(summary);
    let least = found.iter().filter(|item| item.tone() != Tone::Good).count().clamp(1, LEAST);
    let unit = if summary.bands.is_empty() { "thresholds" } else { "bounds" };
    screen.judged("", unit, found, least);
}

/// The thresholds and bands of a run with what was measured, those that are broken first.
pub fn run_bounds(summary: &RunSummary) -> Vec<Item> {
    let mut found: Vec<_> = summary.thresholds.iter().map(threshold).collect();
    found.extend(summary.bands.iter().map(band));
    found.sort_by_key(|item| std::cmp::Reverse(item.tone()));
    found
}

fn threshold(found: &ThresholdResult) -> Item {
    let (tone, word) = match &found.judgement {
        Judgement::Pass => (Tone::Good, "PASS"),
        Judgement::Fail => (Tone::Bad, "FAIL"),
        Judgement::Inconclusive(_) => (Tone::Unsure, "INCONCLUSIVE"),
    };
    let text = format!("{} {}: {}", found.metric, found.expression, threshold_measured(found));
    Item::judged(tone, word, &text)
}

fn band(found: &BandResult) -> Item {
    let (tone, word) = match &found.level {
        BandLevel::Target => (Tone::Good, "TARGET"),
        BandLevel::Degraded => (Tone::Unsure, "DEGRADED"),
        BandLevel::Critical => (Tone::Bad, "CRITICAL"),
        BandLevel::Inconclusive(_) => (Tone::Unsure, "INCONCLUSIVE"),
    };
    let text = format!("{} {}: {}", found.metric, found.expression, band_measured(found));
    Item::judged(tone, word, &text)
}
