//! The last line: the judgement of the run, with its main finding.

use plimsoll_metrics::{BandLevel, Finding, Level, RunJudgement, RunSummary};

use super::thresholds::unit;
use crate::format::{count, share};
use crate::screen::Tone;

/// Codes of warnings that a verdict names.
const CODES: usize = 2;

/// The verdict of a run. An invalid run is called so however it ended.
pub fn run_verdict(summary: &RunSummary) -> (Tone, String) {
    let (tone, text) = match summary.judgement(false) {
        RunJudgement::Interrupted if !summary.is_valid() => {
            let invalid = main_finding(summary, Level::Invalid, "INVALID");
            return (Tone::Bad, format!("{invalid}; interrupted"));
        }
        RunJudgement::Interrupted => {
            (Tone::Unsure, "INTERRUPTED: results up to the interruption".to_owned())
        }
        RunJudgement::TargetFailed => (Tone::Bad, main_finding(summary, Level::Fail, "FAIL")),
        RunJudgement::Invalid => {
            return (Tone::Bad, main_finding(summary, Level::Invalid, "INVALID"));
        }
        RunJudgement::Failed(broken) => (Tone::Bad, failed(summary, &broken)),
        RunJudgement::Inconclusive(why) => (Tone::Unsure, format!("INCONCLUSIVE: {why}")),
        RunJudgement::Passed => (Tone::Good, passed(summary)),
    };
    if summary.is_valid() {
        return (tone, text);
    }
    let invalid = main_finding(summary, Level::Invalid, "INVALID");
    (Tone::Bad, format!("{text}; {invalid}"))
}

/// `FAIL: 40 of 40 requests failed: connect_refused (PL201, and 1 more)`.
fn main_finding(summary: &RunSummary, level: Level, word: &str) -> String {
    let mut found = summary.of_level(level);
    let Some(first) = found.next() else { return word.to_owned() };
    let more = match found.count() {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    format!("{word}: {} ({}{more})", first.text().trim_end_matches('.'), first.label())
}

fn failed(summary: &RunSummary, broken: &[String]) -> String {
    let limits = &summary.thresholds;
    let (all, unit) = (limits.len(), unit(limits));
    format!("FAIL: {} of {all} {unit} broken: {}", broken.len(), broken.join(", "))
}

fn passed(summary: &RunSummary) -> String {
    let limits = &summary.thresholds;
    let (all, unit) = (limits.len(), unit(limits));
    let degraded = limits.iter().filter(|limit| limit.level == Some(BandLevel::Degraded)).count();
    let but = if degraded > 0 { format!(", {degraded} degraded") } else { String::new() };
    let valid = format!("VALID: {}", requests(summary));
    if all == 0 {
        return valid;
    }
    format!("PASS: {} of {all} {unit} kept{but}. {valid}", all - degraded)
}

/// `40 of 2,030 requests failed (1.97%); PL204`.
fn requests(summary: &RunSummary) -> String {
    let counters = &summary.results.total.counters;
    let (ok, all) = (counters.ok(), counters.scheduled.saturating_sub(counters.cancelled));
    let bad = all.saturating_sub(ok);
    let text = match bad {
        0 => format!("{} of {} requests ok", count(ok), count(all)),
        bad => {
            let part = share(bad as f64 / all.max(1) as f64);
            format!("{} of {} requests not ok ({part})", count(bad), count(all))
        }
    };
    let codes: Vec<_> = summary.of_level(Level::Warning).map(Finding::label).collect();
    match codes.len() {
        0 => text,
        all if all <= CODES => format!("{text}; {}", codes.join(", ")),
        all => format!("{text}; {} and {} more", codes[..CODES].join(", "), all - CODES),
    }
}
