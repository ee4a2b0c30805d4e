//! The thresholds with their judgements.

use plimsoll_metrics::{Judgement, ThresholdResult, Unit};

use super::{Page, format};
use crate::color::Color;

pub(super) fn write(page: &mut Page, thresholds: &[ThresholdResult]) {
    if thresholds.is_empty() {
        return;
    }
    page.heading("Thresholds");
    let bounds: Vec<_> =
        thresholds.iter().map(|t| format!("{} {}", t.metric, t.expression)).collect();
    let width = bounds.iter().map(|bound| bound.chars().count()).max().unwrap_or_default();
    for (threshold, bound) in thresholds.iter().zip(&bounds) {
        let word = judgement_word(page, &threshold.judgement);
        page.hang(&format!("  {word}  {bound:<width$}  "), width + 18, &measured(threshold));
    }
}

/// The judgement in 12 columns.
fn judgement_word(page: &Page, judgement: &Judgement) -> String {
    match judgement {
        Judgement::Pass => page.color(Color::Good, "PASS        "),
        Judgement::Fail => page.color(Color::Bad, "FAIL        "),
        Judgement::Inconclusive(_) => page.color(Color::Unsure, "INCONCLUSIVE"),
    }
}

pub(crate) fn measured(threshold: &ThresholdResult) -> String {
    match (&threshold.judgement, threshold.measured) {
        (Judgement::Inconclusive(why), _) => why.clone(),
        (_, Some(value)) => {
            let ours = threshold.generator.map(|bound| value_in(threshold.unit, bound));
            let ours = match threshold.unit {
                Unit::Time => ours.map(|bound| format!(" (up to {bound} ours)")),
                _ => ours.map(|bound| format!(" (up to {bound} more without the generator)")),
            };
            let value = value_in(threshold.unit, value);
            format!("measured {value}{}", ours.unwrap_or_default())
        }
        (_, None) => threshold.of_every_value().unwrap_or_default().to_owned(),
    }
}

pub(super) fn value_in(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Time => format::time(value),
        Unit::Share => format::share(value),
        Unit::RequestsPerSecond | Unit::TokensPerSecond => format!("{}/s", format::digits(value)),
        _ => format::digits(value),
    }
}
