//! The result of all shards together.

use plimsoll_measure::{StageId, Stripe};
use plimsoll_metrics::{
    Limit, RunEnd, RunExemplars, RunSummary, ShardState, Snapshot, StageInfo, TaskTally, TimeRecord,
    TimeSeries,
};
use plimsoll_run_files::Counts;

use crate::error::MergeError;
use crate::part::{Part, align};
use crate::shard::Shard;
use crate::shard_set::ShardSet;
use crate::{exemplars, health, metadata, server_parts, verdict};

/// The result of all shards together.
#[derive(Clone, Debug)]
pub struct Merged {
    /// The run.
    pub summary: RunSummary,
    /// What happened when.
    pub record: TimeRecord,
    /// Single requests of all shards.
    pub exemplars: Option<RunExemplars>,
}

/// The counts of the shards that were added so far.
#[derive(Default)]
struct Sum {
    snapshot: Snapshot,
    series: Option<TimeSeries>,
    tasks: TaskTally,
    server_parts: Vec<String>,
}

impl Sum {
    fn add(&mut self, shard: &Shard, counts: Counts) {
        let Counts { mut snapshot, series, tasks, .. } = counts;
        let names = &shard.metadata().server_parts;
        let numbers = server_parts::number(&mut self.server_parts, names);
        snapshot.renumber_server_parts(&numbers);
        self.snapshot.merge(snapshot);
        self.tasks.merge(&tasks);
        match &mut self.series {
            Some(sum) => sum.merge(&series),
            none => *none = Some(series),
        }
    }

    /// Counts the arrivals that belong to a shard that did not end, and that it did not count: the
    /// plan of the whole is the same, whatever became of its shards.
    fn add_unsent(&mut self, place: Stripe, stages: &[StageInfo], counts: Option<&Counts>) {
        let mut before = 0;
        for (stage, index) in stages.iter().zip(0..) {
            let id = StageId(index);
            let after = before + stage.arrivals.unwrap_or(0);
            let planned = place.share(after) - place.share(before);
            let counted = counts.map_or(0, |counts| {
                counts.snapshot.total(|key| key.stage == id).counters().arrivals_planned
            });
            self.snapshot.add_unsent(id, planned.saturating_sub(counted));
            before = after;
        }
    }
}

impl ShardSet {
    /// Adds all shards up. The counts of one shard at a time are in memory, beside the sum.
    ///
    /// A shard that is missing, cut off or late makes the whole invalid: its limits are not
    /// judged, and the figures are those of the shards that are known.
    ///
    /// # Errors
    /// A file of a shard is damaged or cannot be read.
    pub fn merge(&self, limits: &[Limit]) -> Result<Merged, MergeError> {
        let (mut sum, mut parts) = (Sum::default(), Vec::new());
        let time = metadata::merge(self, Vec::new()).headline_time();
        let stages = self.shards.first().map_or(&[][..], |first| &first.planned.stages);
        let stopped = self.was_interrupted();
        for place in (0..self.count).filter_map(|index| Stripe::new(index, self.count)) {
            let mut shard = self.shards.iter().find(|shard| shard.place == place).cloned();
            let counts = shard.as_mut().map(Shard::counts).transpose()?.flatten();
            let part = Part::new(place, shard.as_ref(), counts.as_ref(), time);
            if part.shown.state != ShardState::Done && !stopped {
                sum.add_unsent(place, stages, counts.as_ref());
            }
            parts.push(part);
            if let Some((shard, counts)) = shard.zip(counts) {
                sum.add(&shard, counts);
            }
        }
        align(&mut parts);
        let summaries: Vec<_> =
            self.shards.iter().filter_map(|shard| shard.summary.as_ref()).collect();
        let whole = summaries.len() as u64 == self.count;
        let health = health::merge(&summaries, &sum.snapshot, whole);
        let mut metadata = metadata::merge(self, sum.server_parts);
        if summaries.is_empty() {
            let counted = parts.iter().filter_map(|part| part.shown.counted_s);
            metadata::cut(&mut metadata, counted.fold(0.0, f64::max));
        }
        let mut summary =
            RunSummary::build(metadata, health, &sum.snapshot, limits)?.with_tasks(&sum.tasks)?;
        summary.shards = parts.into_iter().map(|part| part.shown).collect();
        if let Some(busiest) = busiest(&summaries) {
            summary.processes.clone_from(&busiest.processes);
            summary.resources.clone_from(&busiest.resources);
        }
        let series = sum.series.unwrap_or_default();
        let record = TimeRecord::build(&series, &summary.metadata, &summary.health, &[])?;
        summary.time_facts = record.facts.clone();
        if stopped {
            summary.metadata.run.ended = RunEnd::Interrupted;
        }
        verdict::apply(&mut summary);
        let kept = self.shards.iter().map(Shard::exemplars);
        let kept: Vec<_> = kept.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
        Ok(Merged { exemplars: exemplars::merge(kept), record, summary })
    }
}

/// The shard whose generator was busiest: what it used of its host is the evidence of what limited
/// the load.
fn busiest<'a>(summaries: &[&'a RunSummary]) -> Option<&'a RunSummary> {
    summaries.iter().copied().max_by(|a, b| demand(a).total_cmp(&demand(b)))
}

fn demand(summary: &RunSummary) -> f64 {
    summary.health.highest_demand().unwrap_or(0.0)
}
