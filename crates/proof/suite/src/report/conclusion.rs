//! The outcome of a suite in a line.

use plimsoll_metrics::Judgement;

use super::{Accepted, Report, SuiteOutcome};

impl Report {
    /// The outcome in a sentence, its word first, with the counts that it rests on.
    pub fn conclusion(&self) -> String {
        let outcome = self.outcome(Accepted::default());
        let word = match outcome {
            SuiteOutcome::Pass => "PASS",
            SuiteOutcome::Complete => "COMPLETE",
            SuiteOutcome::Fail => "FAIL",
            SuiteOutcome::Inconclusive => "INCONCLUSIVE",
            SuiteOutcome::Interrupted => "INTERRUPTED",
        };
        let [target, measured] = counts(self, outcome);
        let target = if target.is_empty() { String::new() } else { format!(": {target}") };
        let measured = if measured.is_empty() { "valid" } else { &measured };
        format!("{word}{target} (measurement: {measured})")
    }
}

/// What the target did, with bounds by judgement; and the measurements that are not used.
fn counts(report: &Report, outcome: SuiteOutcome) -> [String; 2] {
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
    let failed: Vec<_> = results.iter().filter(|result| result.has_failed()).collect();
    let worst = failed.first().map_or_else(String::new, |result| {
        let kinds = result.passes.iter().find_map(|pass| pass.error_kinds.clone());
        format!("{} ({})", result.label, kinds.unwrap_or_default())
    });
    let left_out = usize::from(report.is_empty()).min(report.missing.len());
    let others = report.missing.len() - left_out;
    let of_target = [
        (
            failed.len(),
            format!("requests failed in {} of {all} measurements: {worst}", failed.len()),
        ),
        (left_out, report.missing.first().cloned().unwrap_or_default()),
        (broken, format!("{broken} of {bounds} bounds broken ({})", names.join(", "))),
        (open, format!("{open} of {bounds} bounds open")),
        (kept, format!("{kept} of {bounds} bounds kept")),
        (others, format!("{others} part{} missing", if others == 1 { "" } else { "s" })),
    ];
    let of_measurement = [
        (unusable, format!("{unusable} of {all} measurements unusable")),
        (busy, format!("{busy} of {all} measurements on a busy host")),
        (past, format!("{past} of {all} loads beyond this host")),
        (not_compared, format!("{not_compared} of {} comparisons unusable", compared.len())),
    ];
    let is_final = outcome != SuiteOutcome::Interrupted;
    [&of_target[..], &of_measurement[..]].map(|rows| {
        let rows = rows.iter().filter(|(count, _)| *count > 0 && is_final);
        rows.map(|(_, row)| row.as_str()).collect::<Vec<_>>().join(", ")
    })
}
