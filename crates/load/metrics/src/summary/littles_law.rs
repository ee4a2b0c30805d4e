//! Little's law on the stages of a run.

use crate::health::LittlesLaw;
use crate::run_metadata::{LoadModel, RunMetadata, StageInfo};
use crate::snapshot::Snapshot;

/// Little's law on every closed stage whose requests in flight were watched. In the open model
/// requests wait for the pacer before they count as in flight, so there is nothing to compare.
pub(super) fn by_stage(metadata: &RunMetadata, snapshot: &Snapshot) -> Vec<LittlesLaw> {
    let compare = |(index, stage): (usize, &StageInfo)| {
        let comparable = stage.model == LoadModel::Closed && stage.duration_s > 0.0;
        let in_flight = stage.mean_in_flight.filter(|_| comparable)?;
        let stats = snapshot.total(|key| key.stage.index() == index);
        let rate_times_time = stats.in_flight_time() as f64 / 1e9 / stage.duration_s;
        Some(LittlesLaw { stage: stage.name.clone(), in_flight, rate_times_time })
    };
    metadata.stages.iter().enumerate().filter_map(compare).collect()
}
