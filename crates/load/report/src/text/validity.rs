//! Validity, warnings and notes.

use plimsoll_metrics::{Reason, Refusal, RefusedFigure, RunSummary, Validity};

use super::Page;
use super::color::Color;

pub(super) fn write(page: &mut Page, summary: &RunSummary) {
    page.line("");
    match &summary.validity {
        Validity::Valid => {
            let word = page.color(Color::Good, "VALID");
            match refused(summary) {
                None => {
                    page.line(&format!(
                        "{word}: Plimsoll kept up; these figures describe the target"
                    ));
                }
                Some(text) => page.hang(&format!("{word}, "), "VALID, ".len(), &text),
            }
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

/// Each reason in a line of its own; causes and advice only where they differ from the next.
fn invalid(page: &mut Page, reasons: &[Reason]) {
    let word = page.color(Color::Bad, "INVALID");
    for (index, reason) in reasons.iter().enumerate() {
        let Reason { what, measured, bound, fix, causes } = reason;
        let line = format!("{what}: {measured} (limit: {bound})");
        page.hang(&format!("{word}: "), "INVALID: ".len(), &line);
        if reasons.get(index + 1).is_some_and(|next| next.fix == *fix && next.causes == *causes) {
            continue;
        }
        if !causes.is_empty() {
            page.paragraph(2, &format!("causes: {}", causes.join("; ")));
        }
        page.paragraph(2, &format!("fix: {fix}"));
    }
}

/// Refused figures that are named; the others are counted.
const NAMED: usize = 6;

/// `3 of 24 figures refused: TTFT p99 of 8:60s (the generator), ...`; `None` if there is none.
fn refused(summary: &RunSummary) -> Option<String> {
    let (count, refused) = summary.results.refused_figures();
    if refused.is_empty() {
        return None;
    }
    let name = |figure: &RefusedFigure| {
        let why = match figure.why {
            Refusal::Generator => "the generator",
            Refusal::Censored => "requests without an end",
        };
        let words = [figure.title, figure.label].join(" ");
        format!("{} of {} ({why})", words.trim_end(), figure.stage)
    };
    let mut names: Vec<_> = refused.iter().take(NAMED).map(name).collect();
    if refused.len() > NAMED {
        names.push(format!("and {} more", refused.len() - NAMED));
    }
    Some(format!("{} of {count} figures refused: {}", refused.len(), names.join(", ")))
}

fn list(page: &mut Page, reasons: &[Reason]) {
    for reason in reasons {
        let Reason { what, measured, bound, fix, .. } = reason;
        page.hang("  - ", 4, &format!("{what}: {measured} (limit: {bound})"));
        page.paragraph(6, &format!("fix: {fix}"));
    }
}
