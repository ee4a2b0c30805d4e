//! The last line: what happened to the target, and whether the measurement is good.

use plimsoll_metrics::{
    BandLevel, Finding, Judgement, Level, RunJudgement, RunSummary, ThresholdResult, Unit,
};

use crate::format::{self, count, share};
use crate::screen::{Item, Screen, Tone};

/// Codes that a verdict names.
const CODES: usize = 2;

/// The verdict of a run: `FAIL: 40 of 40 requests failed: connect_refused (PL201; measurement:
/// valid)`.
pub fn run_verdict(summary: &RunSummary) -> (Tone, String) {
    let requests = requests(summary);
    let after = |first: String| format!("{first}; {requests}");
    let (tone, word, text, level) = match summary.judgement(false) {
        RunJudgement::Interrupted => {
            (Tone::Unsure, "INTERRUPTED", main(summary, Level::Fail, requests), Level::Fail)
        }
        RunJudgement::TargetFailed => {
            (Tone::Bad, "FAIL", main(summary, Level::Fail, requests), Level::Fail)
        }
        RunJudgement::Invalid => {
            let reason = main(summary, Level::Invalid, String::new());
            (Tone::Bad, "INVALID", after(reason), Level::Invalid)
        }
        RunJudgement::Failed(broken) => {
            (Tone::Bad, "FAIL", after(failed(summary, &broken)), Level::Warning)
        }
        RunJudgement::Inconclusive(why) => {
            (Tone::Unsure, "INCONCLUSIVE", after(why), Level::Warning)
        }
        RunJudgement::Passed if summary.thresholds.is_empty() => {
            (Tone::Good, "DONE", requests, Level::Warning)
        }
        RunJudgement::Passed => (Tone::Good, "PASS", after(passed(summary)), Level::Warning),
    };
    let validity = if summary.is_valid() { "valid" } else { "invalid" };
    (tone, format!("{word}: {text} ({}measurement: {validity})", codes(summary, level)))
}

/// The first finding of a level, or else another text.
fn main(summary: &RunSummary, level: Level, other: String) -> String {
    let first = summary.of_level(level).next();
    first.map_or(other, |first| first.text().trim_end_matches('.').to_owned())
}

/// `PL204, PL205 and 3 more; `: the findings of a level.
fn codes(summary: &RunSummary, level: Level) -> String {
    let codes: Vec<_> = summary.of_level(level).map(Finding::label).collect();
    let named = codes[..CODES.min(codes.len())].join(", ");
    match codes.len() {
        0 => String::new(),
        all if all <= CODES => format!("{named}; "),
        all => format!("{named} and {} more; ", all - CODES),
    }
}

fn failed(summary: &RunSummary, broken: &[String]) -> String {
    let limits = &summary.thresholds;
    let (all, unit) = (limits.len(), unit(limits));
    format!("{} of {all} {unit} broken: {}", broken.len(), broken.join(", "))
}

fn passed(summary: &RunSummary) -> String {
    let limits = &summary.thresholds;
    let (all, unit) = (limits.len(), unit(limits));
    let degraded = limits.iter().filter(|limit| limit.level == Some(BandLevel::Degraded)).count();
    let but = if degraded > 0 { format!(", {degraded} degraded") } else { String::new() };
    format!("{} of {all} {unit} kept{but}", all - degraded)
}

/// The rules on requests that ended badly.
const BAD_ENDS: [u16; 8] = [202, 203, 204, 205, 206, 207, 208, 304];

/// `40 of 2,030 requests were rate limited (429)`.
fn requests(summary: &RunSummary) -> String {
    let counters = &summary.results.total.counters;
    let (ok, all) = (counters.ok(), counters.scheduled.saturating_sub(counters.cancelled));
    match all.saturating_sub(ok) {
        0 => format!("{} of {} requests ok", count(ok), count(all)),
        bad => {
            let part = share(bad as f64 / all.max(1) as f64);
            let text = format!("{} of {} requests not ok ({part})", count(bad), count(all));
            let ends = summary.of_level(Level::Warning);
            let ends = ends.into_iter().filter(|found| BAD_ENDS.contains(&found.code));
            let n = |found: &&Finding| found.values.get("n")?.replace(',', "").parse::<u64>().ok();
            let Some(first) = ends.max_by_key(n) else { return text };
            let why = first.text().trim_end_matches('.').to_owned();
            if first.values.get("n") == Some(&count(bad)) { why } else { format!("{text}: {why}") }
        }
    }
}

// The rules that fired, and the notes on the input.

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

// The limits, those that are broken first.

/// Broken ones that are left out last.
const LEAST: usize = 3;

pub(super) fn add_thresholds(screen: &mut Screen, summary: &RunSummary) {
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
        Unit::Share => share(value),
        Unit::RequestsPerSecond | Unit::TokensPerSecond => format!("{}/s", format::digits(value)),
        _ => format::digits(value),
    }
}
