//! Validity, warnings and notes.

use plimsoll_metrics::{Reason, Refusal, RefusedFigure, RunSummary, Validity};

use super::Page;
use crate::color::Color;

pub(super) fn write(page: &mut Page, summary: &RunSummary) {
    page.line("");
    match &summary.validity {
        Validity::Valid => {
            let word = page.color(Color::Good, "VALID");
            match refused(summary) {
                None => {
                    let text = "Plimsoll kept up; these figures describe the target";
                    page.hang(&format!("{word}: "), "VALID: ".len(), text);
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
        let Reason { what, measured, bound, fix, causes, .. } = reason;
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

/// Kinds of refused figures that are named for one reason; the others are counted.
const NAMED: usize = 4;

/// `3 of 24 figures refused: TTFT, Response time (the generator)`; `None` if there is none. The
/// tables mark each of them.
pub(crate) fn refused(summary: &RunSummary) -> Option<String> {
    let (count, refused) = summary.results.refused_figures();
    let reasons = [
        (Refusal::Generator, "the generator may have added too much"),
        (Refusal::Censored, "requests without an end"),
    ];
    let parts: Vec<_> = reasons
        .into_iter()
        .filter_map(|(why, words)| {
            let titles = titles(refused.iter().filter(|figure| figure.why == why));
            (!titles.is_empty()).then(|| format!("{titles} ({words})"))
        })
        .collect();
    let parts = parts.join("; ");
    (!refused.is_empty()).then(|| format!("{} of {count} figures refused: {parts}", refused.len()))
}

/// The kinds of these figures, each once, in their order.
fn titles<'f>(figures: impl Iterator<Item = &'f RefusedFigure>) -> String {
    let mut titles: Vec<&str> = Vec::new();
    for figure in figures {
        if !titles.contains(&figure.title) {
            titles.push(figure.title);
        }
    }
    let more = titles.len().saturating_sub(NAMED);
    titles.truncate(NAMED);
    let named = titles.join(", ");
    if more > 0 { format!("{named} and {more} more") } else { named }
}

fn list(page: &mut Page, reasons: &[Reason]) {
    for reason in reasons {
        let Reason { what, measured, bound, fix, .. } = reason;
        page.hang("  - ", 4, &format!("{what}: {measured} (limit: {bound})"));
        page.paragraph(6, &format!("fix: {fix}"));
    }
}
