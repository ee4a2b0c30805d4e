//! The outcome of a suite in a sentence.

use plimsoll_metrics::Judgement;

use super::{Accepted, Report, SuiteOutcome};
use crate::bound::BoundResult;

/// The verdict in a sentence.
pub(super) fn conclusion(report: &Report) -> String {
    let usable = "every measurement may be used";
    match (report.outcome(Accepted::default()), caveat(report)) {
        (SuiteOutcome::Pass, None) => format!("PASS: {usable}, and every deciding bound is kept"),
        (SuiteOutcome::Pass, Some(but)) => format!("PASS: every deciding bound is kept; {but}"),
        (SuiteOutcome::Complete, None) => {
            format!("COMPLETE: {usable}; this suite has no bound to pass or fail")
        }
        (SuiteOutcome::Complete, Some(but)) => {
            format!("COMPLETE: no bound to pass or fail; {but}")
        }
        (SuiteOutcome::Fail, _) => failed(report),
        (SuiteOutcome::Inconclusive, _) => inconclusive(report),
        (SuiteOutcome::Interrupted, _) => "INTERRUPTED: the measurements until then".to_owned(),
    }
}

/// The loads that were more than this machine sends, and those of a busy host.
fn caveat(report: &Report) -> Option<String> {
    let (results, all) = (&report.measurements, report.measurements.len());
    let past = results.iter().filter(|result| result.is_past_the_generator()).count();
    if past > 0 {
        return Some(format!("{past} of {all} loads cannot be sent from here"));
    }
    let busy = results.iter().filter(|result| result.busy_host().is_some()).count();
    (busy > 0).then(|| format!("{busy} of {all} measurements {BUSY}"))
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
    let (results, compared) = (&report.measurements, &report.comparisons);
    let all = results.len();
    let unusable = results.iter().filter(|result| result.why_lacking().is_some()).count();
    let busy = results.iter().filter(|result| result.busy_host().is_some()).count();
    let not_compared = compared.iter().filter(|result| result.why_unusable().is_some()).count();
    let deciding = report.bounds.iter().filter(|bound| bound.decides);
    let open = deciding
        .clone()
        .filter(|bound: &&BoundResult| matches!(bound.judgement, Judgement::Inconclusive(_)))
        .count();
    let parts = [
        (report.missing.len(), "left out for the target".to_owned()),
        (unusable, format!("of {all} measurements must not be used")),
        (busy, format!("of {all} measurements {BUSY}")),
        (not_compared, format!("of {} comparisons must not be used", compared.len())),
        (open, format!("of {} deciding bounds could not be judged", deciding.count())),
    ];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    let parts: Vec<_> = parts.map(|(count, what)| format!("{count} {what}")).collect();
    let why = if parts.is_empty() { "nothing was measured".to_owned() } else { parts.join(", ") };
    format!("INCONCLUSIVE: {why}")
}
