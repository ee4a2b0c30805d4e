//! Where the run stands in its bands, and what that means.

use plimsoll_metrics::{BandLevel, BandResult, RunSummary};

use super::Page;
use super::paint::Paint;
use super::thresholds::value_in;

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
    for (standing, bound) in bands.iter().zip(&bounds) {
        let word = level(page, &standing.level);
        page.hang(&format!("  {word}  {bound:<width$}  "), width + 18, &measured(standing));
    }
}

/// One word of 12 columns.
fn level(page: &Page, level: &BandLevel) -> String {
    match level {
        BandLevel::Target => page.paint(Paint::Good, "TARGET      "),
        BandLevel::Degraded => page.paint(Paint::Unsure, "DEGRADED    "),
        BandLevel::Critical => page.paint(Paint::Bad, "CRITICAL    "),
        BandLevel::Inconclusive(_) => page.paint(Paint::Unsure, "INCONCLUSIVE"),
    }
}

fn measured(standing: &BandResult) -> String {
    match (&standing.level, standing.measured) {
        (BandLevel::Inconclusive(why), _) => why.clone(),
        (_, Some(value)) => format!("measured {}", value_in(standing.unit, value)),
        (_, None) => String::new(),
    }
}
