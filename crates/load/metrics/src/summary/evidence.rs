//! Collects from the counts what the judgement of the instrument needs.

use crate::catalog::Counters;
use crate::group_stats::{GroupKey, GroupStats};
use crate::run_metadata::{LoadModel, RunMetadata};
use crate::snapshot::Snapshot;
use crate::validity::{Evidence, StageOpenings};

/// The evidence of a run; `whole` is the sum of the snapshot's cells.
pub(super) fn collect(metadata: &RunMetadata, snapshot: &Snapshot, whole: &GroupStats) -> Evidence {
    Evidence {
        ended: metadata.run.ended,
        unbalanced: unbalanced(metadata, snapshot),
        scheduled: Some(whole.counters().scheduled),
        openings: openings(metadata, snapshot),
        closed: closed(metadata),
    }
}

/// Checks each cell by itself: one request too many in one cell must not hide one too few in
/// another.
fn unbalanced(metadata: &RunMetadata, snapshot: &Snapshot) -> Vec<(String, Counters)> {
    let wrong = snapshot.cells().filter(|(_, cell)| !cell.counters().balanced());
    wrong.map(|(key, cell)| (name(metadata, key), *cell.counters())).collect()
}

fn name(metadata: &RunMetadata, key: GroupKey) -> String {
    let stage = metadata.stages.get(key.stage.index()).map(|stage| stage.name.as_str());
    let scenario = metadata.scenarios.get(key.scenario.index()).map(String::as_str);
    let target = metadata.targets.get(key.target.index()).map(|target| target.name.as_str());
    let operation = key.operation.map(plimsoll_measure::Operation::name);
    [stage, scenario, target, operation].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn closed(metadata: &RunMetadata) -> Vec<String> {
    let closed = metadata.stages.iter().filter(|stage| stage.model == LoadModel::Closed);
    closed.map(|stage| stage.name.clone()).collect()
}

fn openings(metadata: &RunMetadata, snapshot: &Snapshot) -> Vec<StageOpenings> {
    let measured = metadata.stages.iter().enumerate().filter(|(_, stage)| !stage.warmup);
    measured
        .map(|(index, stage)| {
            let stats = snapshot.total(|key| key.stage.index() == index);
            let counters = stats.counters();
            // Twice the mean, for a ramp.
            let users = 2.0 * stage.users.unwrap_or(0.0) * metadata.targets.len() as f64;
            StageOpenings {
                name: stage.name.clone(),
                requests: counters.scheduled - counters.never_sent.min(counters.scheduled),
                opened: counters.connections_opened,
                cut_off: counters.failed + counters.timed_out + counters.cancelled,
                answered: counters.completed + counters.rejected,
                needed: users,
                peak: stage.peak_in_flight.unwrap_or_default(),
            }
        })
        .collect()
}
