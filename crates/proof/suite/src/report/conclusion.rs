//! The outcome of a suite in a line.

use plimsoll_metrics::Judgement;

use super::{Accepted, Report, SuiteOutcome};

/// The verdict, with the counts that it rests on.
pub(super) fn conclusion(report: &Report) -> String {
    let outcome = report.outcome(Accepted::default());
    let word = match outcome {
        SuiteOutcome::Pass => "PASS",
        SuiteOutcome::Complete => "COMPLETE",
        SuiteOutcome::Fail => "FAIL",
        SuiteOutcome::Inconclusive => "INCONCLUSIVE",
        SuiteOutcome::Interrupted => "INTERRUPTED",
    };
    let counts: Vec<_> = counts(report, outcome).collect();
    if counts.is_empty() { word.to_owned() } else { format!("{word}: {}", counts.join(", ")) }
}

/// Bounds by judgement, and measurements by the reason why they are not used.
fn counts(report: &Report, outcome: SuiteOutcome) -> impl Iterator<Item = String> {
    let deciding: Vec<_> = report.bounds.iter().filter(|bound| bound.decides).collect();
    let kept = deciding.iter().filter(|bound| bound.judgement == Judgement::Pass).count();
    let broken = deciding.iter().filter(|bound| bound.judgement == Judgement::Fail).count();
    let open = deciding.len() - kept - broken;
    let (results, compared) = (&report.measurements, &report.comparisons);
    let past = results.iter().filter(|result| result.is_past_the_generator()).count();
    let unusable = results.iter().filter(|result| result.why_lacking().is_some()).count();
    let busy = results.iter().filter(|result| result.busy_host().is_some()).count();
    let not_compared = compared.iter().filter(|result| result.why_unusable().is_some()).count();
    let names = deciding.iter().filter(|bound| bound.judgement == Judgement::Fail);
    let names: Vec<_> = names.map(|bound| &*bound.what).collect();
    let (bounds, all) = (deciding.len(), results.len());
    let rows = [
        (broken, format!("{broken} of {bounds} bounds broken ({})", names.join(", "))),
        (open, format!("{open} of {bounds} bounds open")),
        (kept, format!("{kept} of {bounds} bounds kept")),
        (report.missing.len(), format!("{} parts missing", report.missing.len())),
        (unusable, format!("{unusable} of {all} measurements unusable")),
        (busy, format!("{busy} of {all} measurements on a busy host")),
        (past, format!("{past} of {all} loads beyond this host")),
        (not_compared, format!("{not_compared} of {} comparisons unusable", compared.len())),
    ];
    let is_final = outcome != SuiteOutcome::Interrupted;
    rows.into_iter().filter(move |(count, _)| *count > 0 && is_final).map(|(_, row)| row)
}
