//! Collects from the counts what the judgement of the instrument needs.

use crate::accounting::Accounting;
use crate::catalog::Metric;
use crate::group_stats::{GroupKey, GroupStats};
use crate::health::Lag;
use crate::run_metadata::{LoadModel, RunMetadata, StageInfo};
use crate::snapshot::Snapshot;
use crate::validity::{ClosedStage, Evidence};

/// The evidence of a run; `whole` is the sum of the snapshot's cells.
pub(super) fn of(metadata: &RunMetadata, snapshot: &Snapshot, whole: &GroupStats) -> Evidence {
    Evidence {
        ended: metadata.run.ended,
        unbalanced: unbalanced(metadata, snapshot),
        scheduled: Some(whole.accounting().scheduled),
        open_model: metadata.stages.iter().any(|stage| stage.model == LoadModel::Open),
        service_time_p50_ms: lag(whole, Metric::ServiceTime).map(|times| times.p50),
        closed: closed(metadata, snapshot),
    }
}

fn lag(stats: &GroupStats, metric: Metric) -> Option<Lag> {
    stats.distribution(metric).and_then(Lag::of)
}

/// Checks each cell by itself: one request too many in one cell must not hide one too few in
/// another.
fn unbalanced(metadata: &RunMetadata, snapshot: &Snapshot) -> Vec<(String, Accounting)> {
    let accounts = snapshot.cells().map(|(key, cell)| (key, cell.accounting()));
    let wrong = accounts.filter(|(_, accounting)| !accounting.balanced());
    wrong.map(|(key, accounting)| (name(metadata, key), accounting)).collect()
}

fn name(metadata: &RunMetadata, key: GroupKey) -> String {
    let stage = metadata.stages.get(key.stage.index()).map(|stage| stage.name.as_str());
    let scenario = metadata.scenarios.get(key.scenario.index()).map(String::as_str);
    let target = metadata.targets.get(key.target.index()).map(|target| target.name.as_str());
    [stage, scenario, target].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn closed(metadata: &RunMetadata, snapshot: &Snapshot) -> Vec<ClosedStage> {
    let is_judged = |stage: &StageInfo| stage.model == LoadModel::Closed && !stage.warmup;
    let stages = metadata.stages.iter().enumerate().filter(|(_, stage)| is_judged(stage));
    stages
        .filter_map(|(index, stage)| {
            let stats = snapshot.total(|key| key.stage.index() == index);
            let counters = stats.counters();
            Some(ClosedStage {
                name: stage.name.clone(),
                duration_s: stage.duration_s,
                unfinished: counters.in_flight as f64 / counters.scheduled.max(1) as f64,
                generator: lag(&stats, Metric::DispatchLag)?,
                target: lag(&stats, Metric::ServiceTime)?,
            })
        })
        .collect()
}
