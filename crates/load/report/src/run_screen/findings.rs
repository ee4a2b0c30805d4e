//! The rules that fired, and the notes on the input.

use plimsoll_metrics::{Finding, Level, RunSummary};

use crate::screen::{Item, Tone};

/// The findings of these levels, in the order of the screen.
pub(super) fn of_levels(summary: &RunSummary, levels: &[Level]) -> Vec<Item> {
    let found = summary.findings.iter().filter(|finding| levels.contains(&finding.level));
    found.map(item).collect()
}

/// A finding with its code and what to do.
pub fn item(finding: &Finding) -> Item {
    let tone = match finding.level {
        Level::Fail | Level::Invalid => Tone::Bad,
        Level::Warning | Level::Note => Tone::Unsure,
    };
    Item::judged(tone, &finding.label(), &finding.text()).fix(&finding.fix())
}

/// All findings, and the notes on the input.
pub fn run_findings(summary: &RunSummary) -> Vec<Item> {
    summary.findings.iter().map(item).chain(notes(summary)).collect()
}

/// Warnings and notes: findings that leave the figures valid.
pub fn run_notes(summary: &RunSummary) -> Vec<Item> {
    let mut found = of_levels(summary, &[Level::Warning, Level::Note]);
    found.extend(notes(summary));
    found
}

pub(super) fn notes(summary: &RunSummary) -> impl Iterator<Item = Item> {
    summary.metadata.notes.iter().map(|note| Item::new(Tone::Unsure, note))
}
