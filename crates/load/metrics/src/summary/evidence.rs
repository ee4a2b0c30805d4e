//! What the judge of the instrument looks at, drawn from what was counted.

use crate::accounting::Accounting;
use crate::catalog::Metric;
use crate::cell::{GroupKey, GroupStats};
use crate::distribution::Distribution;
use crate::facts::{LoadModel, RunMetadata, StageInfo};
use crate::health::Lag;
use crate::snapshot::Snapshot;
use crate::validity::{ClosedStage, Evidence};

/// The evidence of a run; `whole` is the sum of the snapshot's cells.
pub(super) fn of(facts: &RunMetadata, snapshot: &Snapshot, whole: &GroupStats) -> Evidence {
    Evidence {
        ended: facts.run.ended,
        unbalanced: unbalanced(facts, snapshot),
        scheduled: Some(whole.accounting().scheduled),
        open_model: facts.stages.iter().any(|stage| stage.model == LoadModel::Open),
        service_time_p50_ms: lag(whole, Metric::ServiceTime).map(|times| times.p50),
        gap_p50_ms: lag(whole, Metric::Itl).map(|gaps| gaps.p50),
        gaps: whole.distribution(Metric::Itl).map_or(0, Distribution::count),
        events_together: whole.counters().events_together,
        events_together_late: whole.counters().events_together_late,
        closed: closed(facts, snapshot),
    }
}

fn lag(cell: &GroupStats, metric: Metric) -> Option<Lag> {
    cell.distribution(metric).and_then(Lag::of)
}

/// Each cell on its own: a request too many in one must not hide one too few in another.
fn unbalanced(facts: &RunMetadata, snapshot: &Snapshot) -> Vec<(String, Accounting)> {
    let accounts = snapshot.cells().map(|(key, cell)| (key, cell.accounting()));
    let wrong = accounts.filter(|(_, accounting)| !accounting.balanced());
    wrong.map(|(key, accounting)| (name(facts, key), accounting)).collect()
}

fn name(facts: &RunMetadata, key: GroupKey) -> String {
    let stage = facts.stages.get(key.stage.index()).map(|stage| stage.name.as_str());
    let scenario = facts.scenarios.get(key.scenario.index()).map(String::as_str);
    let target = facts.targets.get(key.target.index()).map(|target| target.name.as_str());
    [stage, scenario, target].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn closed(facts: &RunMetadata, snapshot: &Snapshot) -> Vec<ClosedStage> {
    let is_judged = |stage: &StageInfo| stage.model == LoadModel::Closed && !stage.warmup;
    let stages = facts.stages.iter().enumerate().filter(|(_, stage)| is_judged(stage));
    stages
        .filter_map(|(index, stage)| {
            let cell = snapshot.total(|key| key.stage.index() == index);
            let counters = cell.counters();
            Some(ClosedStage {
                name: stage.name.clone(),
                duration_s: stage.duration_s,
                unfinished: counters.in_flight as f64 / counters.scheduled.max(1) as f64,
                generator: lag(&cell, Metric::DispatchLag)?,
                target: lag(&cell, Metric::ServiceTime)?,
            })
        })
        .collect()
}
