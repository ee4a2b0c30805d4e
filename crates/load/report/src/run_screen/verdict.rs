//! The last line: the judgement of the run, with its main reason.

use plimsoll_metrics::{BandLevel, Reason, RunJudgement, RunSummary, Validity};

use super::limits::valid_words;
use crate::screen::Tone;

/// The verdict of a run. That it is invalid is said however it ended.
pub fn run_verdict(summary: &RunSummary) -> (Tone, String) {
    match (summary.judgement(false), &summary.validity) {
        (RunJudgement::Interrupted, Validity::Invalid(reasons)) => {
            (Tone::Bad, format!("INVALID: {}; it was interrupted", main_reason(reasons)))
        }
        (RunJudgement::TooManyErrors(failure), Validity::Invalid(reasons)) => {
            (Tone::Bad, format!("FAIL: {failure}; INVALID: {}", main_reason(reasons)))
        }
        (judgement, _) => judged(summary, judgement),
    }
}

fn judged(summary: &RunSummary, judgement: RunJudgement) -> (Tone, String) {
    match judgement {
        RunJudgement::Interrupted => {
            (Tone::Unsure, "INTERRUPTED: the figures cover the time until then".to_owned())
        }
        RunJudgement::TooManyErrors(failure) => (Tone::Bad, format!("FAIL: {failure}")),
        RunJudgement::Invalid(reasons) => {
            (Tone::Bad, format!("INVALID: {}", main_reason(&reasons)))
        }
        RunJudgement::Failed(broken) => (Tone::Bad, failed(summary, &broken)),
        RunJudgement::Inconclusive(why) => (Tone::Unsure, format!("INCONCLUSIVE: {why}")),
        RunJudgement::Passed => (Tone::Good, passed(summary)),
    }
}

fn main_reason(reasons: &[Reason]) -> String {
    let more = match reasons.len() {
        0 | 1 => String::new(),
        count => format!(" (1 of {count} reasons)"),
    };
    let reason = reasons.first().map(|Reason { what, measured, .. }| format!("{what}: {measured}"));
    format!("{}{more}", reason.unwrap_or_else(|| "do not use these figures".to_owned()))
}

fn failed(summary: &RunSummary, broken: &[String]) -> String {
    let all = summary.thresholds.len() + summary.bands.len();
    format!("FAIL: {} of {all} {} broken: {}", broken.len(), unit(summary), broken.join(", "))
}

fn passed(summary: &RunSummary) -> String {
    let all = summary.thresholds.len() + summary.bands.len();
    let degraded = summary.bands.iter().filter(|band| band.level == BandLevel::Degraded).count();
    let but = if degraded > 0 { format!(", {degraded} degraded") } else { String::new() };
    let valid = format!("VALID: {}", valid_words(summary));
    if all == 0 {
        return valid;
    }
    format!("PASS: {} of {all} {} kept{but}. {valid}", all - degraded, unit(summary))
}

/// What the run was judged by.
const fn unit(summary: &RunSummary) -> &'static str {
    match (summary.bands.is_empty(), summary.thresholds.len()) {
        (true, 1) => "threshold",
        (true, _) => "thresholds",
        (false, _) => "bounds",
    }
}
