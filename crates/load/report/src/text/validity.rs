//! Validity, warnings and notes.

use plimsoll_metrics::{Reason, RunSummary, Validity};

use super::Page;
use super::color::Color;

pub(super) fn write(page: &mut Page, summary: &RunSummary) {
    page.line("");
    match &summary.validity {
        Validity::Valid => {
            let word = page.color(Color::Good, "VALID");
            page.line(&format!("{word}: Plimsoll kept up; these figures describe the target"));
        }
        Validity::Invalid(reasons) => invalid(page, reasons),
    }
    if !summary.warnings.is_empty() {
        let word = page.color(Color::Unsure, "WARNING");
        page.line(&format!("{word}: limits of this measurement:"));
        list(page, &summary.warnings);
    }
    for note in &summary.metadata.notes {
        let word = page.color(Color::Unsure, "NOTE");
        page.hang(&format!("{word}: "), "NOTE: ".len(), note);
    }
}

fn invalid(page: &mut Page, reasons: &[Reason]) {
    let word = page.color(Color::Bad, "INVALID");
    page.line(&format!("{word}: DO NOT USE THESE NUMBERS:"));
    list(page, reasons);
}

fn list(page: &mut Page, reasons: &[Reason]) {
    for reason in reasons {
        let Reason { what, measured, bound, fix } = reason;
        page.hang("  - ", 4, &format!("{what}: {measured} (limit: {bound})"));
        page.paragraph(6, &format!("fix: {fix}"));
    }
}
