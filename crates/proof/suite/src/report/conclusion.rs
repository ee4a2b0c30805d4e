//! The outcome of a suite in a sentence.

use plimsoll_metrics::Judgement;

use super::{Accepted, Report, SuiteOutcome};

/// The verdict in a sentence.
pub(super) fn conclusion(report: &Report) -> String {
    match report.outcome(Accepted::default()) {
        SuiteOutcome::Pass => match caveat(report) {
            None => "PASS: every measurement may be used, and every deciding bound is kept".into(),
            Some(but) => format!("PASS: every deciding bound is kept; {but}"),
        },
        SuiteOutcome::Complete => match caveat(report) {
            None => {
                "COMPLETE: every measurement may be used; this suite has no bound to pass or fail"
                    .into()
            }
            Some(but) => format!("COMPLETE: no bound to pass or fail; {but}"),
        },
        SuiteOutcome::Fail => failed(report),
        SuiteOutcome::Inconclusive => inconclusive(report),
        SuiteOutcome::Interrupted => "INTERRUPTED: the measurements until then".to_owned(),
    }
}

/// The loads that were more than this machine sends, and those of a busy host.
fn caveat(report: &Report) -> Option<String> {
    let all = report.measurements.len();
    let past = report.measurements.iter().filter(|result| result.is_past_the_generator()).count();
    let busy = report.measurements.iter().filter(|result| result.busy_host().is_some()).count();
    let past = (past > 0).then(|| format!("{past} of {all} loads cannot be sent from here"));
    past.or_else(|| (busy > 0).then(|| format!("{busy} of {all} measurements {BUSY}")))
}

const BUSY: &str = "came from a busy host";

fn failed(report: &Report) -> String {
    let deciding = report.bounds.iter().filter(|bound| bound.decides);
    let broken = deciding.clone().filter(|bound| bound.judgement == Judgement::Fail);
    let broken: Vec<_> = broken.map(|bound| &*bound.what).collect();
    let (count, all) = (broken.len(), deciding.count());
    format!("FAIL: {count} of {all} deciding bounds broken: {}", broken.join(", "))
}

fn inconclusive(report: &Report) -> String {
    let all = report.measurements.len();
    let unusable = report.measurements.iter().filter(|result| result.why_lacking().is_some());
    let busy = report.measurements.iter().filter(|result| result.busy_host().is_some());
    let deciding: Vec<_> = report.bounds.iter().filter(|bound| bound.decides).collect();
    let compared = report.comparisons.len();
    let not_compared = report.comparisons.iter().filter(|result| result.why_unusable().is_some());
    let parts = [
        (report.missing.len(), "left out for the target".to_owned()),
        (unusable.count(), format!("of {all} measurements must not be used")),
        (busy.count(), format!("of {all} measurements {BUSY}")),
        (not_compared.count(), format!("of {compared} comparisons must not be used")),
        (
            deciding
                .iter()
                .filter(|bound| matches!(bound.judgement, Judgement::Inconclusive(_)))
                .count(),
            format!("of {} deciding bounds could not be judged", deciding.len()),
        ),
    ];
    let parts: Vec<_> = parts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    let why = if parts.is_empty() { "nothing was measured".to_owned() } else { parts.join(", ") };
    format!("INCONCLUSIVE: {why}")
}
