//! May the reader believe the numbers?

use plimsoll_metrics::{Reason, RunSummary, Validity};

use super::Page;
use super::paint::Paint;

pub(super) fn write(page: &mut Page, summary: &RunSummary) {
    page.line("");
    match &summary.validity {
        Validity::Valid => {
            let word = page.paint(Paint::Good, "VALID");
            page.line(&format!("{word}: the instrument kept all its own bounds"));
        }
        Validity::Invalid(reasons) => invalid(page, reasons),
    }
    if !summary.warnings.is_empty() {
        let word = page.paint(Paint::Unsure, "WARNING");
        page.line(&format!("{word}: what the instrument adds to these numbers, or may hide:"));
        list(page, &summary.warnings);
    }
    for note in &summary.notes {
        let word = page.paint(Paint::Unsure, "NOTE");
        page.hang(&format!("{word}: "), "NOTE: ".len(), note);
    }
}

fn invalid(page: &mut Page, reasons: &[Reason]) {
    let word = page.paint(Paint::Bad, "INVALID");
    page.line(&format!("{word}: DO NOT USE THESE NUMBERS. The instrument broke its own bounds:"));
    list(page, reasons);
}

fn list(page: &mut Page, reasons: &[Reason]) {
    for reason in reasons {
        let Reason { what, measured, bound, mend } = reason;
        page.hang("  - ", 4, &format!("{what}: {measured} (bound: {bound})"));
        page.paragraph(6, &format!("mend: {mend}"));
    }
}
