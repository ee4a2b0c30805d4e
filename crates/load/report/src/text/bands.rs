//! The bands with the level reached in each, and the interpretation.

use plimsoll_metrics::{BandLevel, BandResult, RunSummary};

use super::Page;
use super::thresholds::value_in;
use crate::color::Color;

pub(super) fn write(page: &mut Page, summary: &RunSummary) {
    bands(page, &summary.bands);
    if !summary.interpretation.is_empty() {
        page.heading("Interpretation");
        for sentence in &summary.interpretation {
            page.hang("  ", 2, sentence);
        }
    }
}

fn bands(page: &mut Page, bands: &[BandResult]) {
    if bands.is_empty() {
        return;
    }
    page.heading("Bands (target | degraded, beyond it critical)");
    let bounds: Vec<_> = bands.iter().map(|b| format!("{} {}", b.metric, b.expression)).collect();
    let width = bounds.iter().map(|bound| bound.chars().count()).max().unwrap_or_default();
    for (band, bound) in bands.iter().zip(&bounds) {
        let word = level(page, &band.level);
        page.hang(&format!("  {word}  {bound:<width$}  "), width + 18, &measured(band));
    }
}

/// The level in 12 columns.
fn level(page: &Page, level: &BandLevel) -> String {
    match level {
        BandLevel::Target => page.color(Color::Good, "TARGET      "),
        BandLevel::Degraded => page.color(Color::Unsure, "DEGRADED    "),
        BandLevel::Critical => page.color(Color::Bad, "CRITICAL    "),
        BandLevel::Inconclusive(_) => page.color(Color::Unsure, "INCONCLUSIVE"),
    }
}

pub(crate) fn measured(band: &BandResult) -> String {
    match (&band.level, band.measured) {
        (BandLevel::Inconclusive(why), _) => why.clone(),
        (_, Some(value)) => format!("measured {}", value_in(band.unit, value)),
        (_, None) => String::new(),
    }
}
