//! What a stage is called on a screen.

use plimsoll_metrics::{Group, RunSummary};

/// The notation of a stage, `64:10s`. Where a number of requests ended it, its load and that number
/// as it is typed, `64, -n 1000`: the time that the stage might have taken says nothing.
pub(crate) fn stage_label(summary: &RunSummary, stage: &Group) -> String {
    let name = stage.stage.as_deref().unwrap_or_default();
    let measured = summary.results.by_stage.iter().filter(|stage| !stage.warmup).count();
    let most = summary.metadata.max_requests.filter(|most| stage.counters.scheduled >= *most);
    match (most, name.rsplit_once(':')) {
        (Some(most), Some((load, _))) if measured == 1 => format!("{load}, -n {most}"),
        _ => name.to_owned(),
    }
}
