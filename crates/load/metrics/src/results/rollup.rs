//! Rolls the counts of a run up into its groups.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_measure::{Operation, StageId};

use super::distribution_summary::Ends;
use super::{CountLimits, Group, LostRate, MissingRates, Results, ServerTiming};
use crate::catalog::Metric;
use crate::error::MetricsError;
use crate::group_stats::{GroupKey, GroupStats};
use crate::run_metadata::{LoadModel, RunMetadata, StageInfo};
use crate::snapshot::Snapshot;

impl Results {
    /// Rolls up what was counted.
    ///
    /// # Errors
    /// [`MetricsError::EncodeHistogram`] if a histogram holds more counts than 63 bits.
    pub fn roll_up(metadata: &RunMetadata, snapshot: &Snapshot) -> Result<Self, MetricsError> {
        let rollup = Rollup { metadata, snapshot, lost: lost_rates(metadata, snapshot) };
        Ok(Self {
            total: rollup.measured(|_| true)?,
            by_stage: rollup.stages()?,
            by_scenario: rollup.named(
                metadata.scenarios.iter(),
                |key| key.scenario.index(),
                |name, group| Group { scenario: Some(name), ..group },
            )?,
            by_category: rollup.categories()?,
            by_target: rollup.named(
                metadata.targets.iter().map(|target| &target.name),
                |key| key.target.index(),
                |name, group| Group { target: Some(name), ..group },
            )?,
            by_operation: rollup.operations()?,
            cells: rollup.cells()?,
        })
    }
}

/// Rolls cells up into groups.
struct Rollup<'a> {
    metadata: &'a RunMetadata,
    snapshot: &'a Snapshot,
    /// Rate lost to the generator, by stage.
    lost: BTreeMap<StageId, LostRate>,
}

fn lost_rates(metadata: &RunMetadata, snapshot: &Snapshot) -> BTreeMap<StageId, LostRate> {
    let mut totals: BTreeMap<StageId, GroupStats> = BTreeMap::new();
    for (key, cell) in snapshot.cells() {
        totals.entry(key.stage).or_default().add_time(cell);
    }
    totals
        .into_iter()
        .filter_map(|(id, stats): (StageId, GroupStats)| {
            Some((id, LostRate::in_stage(metadata.stages.get(id.index())?, &stats)))
        })
        .collect()
}

impl Rollup<'_> {
    /// The measured (not warm-up) cells that `filter` accepts.
    fn measured(&self, filter: impl Fn(GroupKey) -> bool) -> Result<Group, MetricsError> {
        let measured = self.metadata.stages.iter().filter(|stage| !stage.warmup);
        let duration_s = measured.map(|stage| stage.duration_s).sum();
        self.group(duration_s, &|key| !self.is_warmup(key) && filter(key))
    }

    /// All cells that `filter` accepts, without labels.
    fn group(
        &self,
        duration_s: f64,
        filter: &dyn Fn(GroupKey) -> bool,
    ) -> Result<Group, MetricsError> {
        let by_stage = self.by_stage(filter);
        let mut stats = GroupStats::default();
        for stage in by_stage.values() {
            stats.merge(stage);
        }
        let mut stages = by_stage.keys().filter_map(|id| self.metadata.stages.get(id.index()));
        if stages.all(|stage| stage.model == LoadModel::Open) {
            // Requests of users of an earlier stage are neither due nor sent in an open one.
            stats.edges.requests = 0;
        }
        let mut group = Group::from_stats(&stats, duration_s)?;
        let parts = stats.server_parts();
        let parts = parts.map(|parts| ServerTiming::from_tally(parts, &self.metadata.server_parts));
        group.server_timing = parts.transpose()?;
        for metric in Metric::ALL {
            let summary = group.distributions.get_mut(metric.key());
            let (Some(summary), Some(whole)) = (summary, stats.distribution(metric)) else {
                continue;
            };
            if metric.has_interval() {
                summary.add_intervals(|q| self.snapshot.interval(whole, metric, q, filter));
            }
            if metric.is_bounded() {
                let ends = Ends { least: stats.undisturbed(metric), most: stats.prolonged(metric) };
                summary.add_bounds(metric, whole, &ends, stats.unfinished(metric))?;
            }
        }
        self.bound_rates(&mut group, filter);
        self.count_limits(&by_stage).write(&mut group);
        Ok(group)
    }

    /// Bounds the rates of a group: each stage's completions would be more by the share that the
    /// generator took of them.
    fn bound_rates(&self, group: &mut Group, filter: &dyn Fn(GroupKey) -> bool) {
        let mut missing = MissingRates::default();
        for (key, cell) in self.snapshot.cells().filter(|(key, _)| filter(*key)) {
            let share = self.lost.get(&key.stage).copied().unwrap_or_default();
            missing.add(cell.counters(), &share);
        }
        missing.bound(group);
    }

    /// The cells that `filter` accepts, added up for each stage.
    fn by_stage(&self, filter: &dyn Fn(GroupKey) -> bool) -> BTreeMap<StageId, GroupStats> {
        let mut stages: BTreeMap<StageId, GroupStats> = BTreeMap::new();
        for (key, cell) in self.snapshot.cells().filter(|(key, _)| filter(*key)) {
            stages.entry(key.stage).or_default().merge(cell);
        }
        stages
    }

    /// The limits of the number of completed requests, stage by stage.
    fn count_limits(&self, by_stage: &BTreeMap<StageId, GroupStats>) -> CountLimits {
        let limits = by_stage.iter().filter_map(|(id, stats)| {
            let stage = self.metadata.stages.get(id.index())?;
            Some(CountLimits::in_stage(stage.model, stage.duration_s, stats))
        });
        limits.fold(CountLimits::default(), CountLimits::add)
    }

    fn stages(&self) -> Result<Vec<Group>, MetricsError> {
        self.metadata
            .stages
            .iter()
            .enumerate()
            .map(|(index, stage): (usize, &StageInfo)| {
                let group = self.group(stage.duration_s, &|key| key.stage.index() == index)?;
                Ok(Group { stage: Some(stage.name.clone()), warmup: stage.warmup, ..group })
            })
            .collect()
    }

    /// A measured group for each name, of the cells with its place.
    fn named<'n>(
        &self,
        names: impl Iterator<Item = &'n String>,
        place: fn(GroupKey) -> usize,
        label: fn(String, Group) -> Group,
    ) -> Result<Vec<Group>, MetricsError> {
        names
            .enumerate()
            .map(|(index, name): (usize, &String)| {
                let group = self.measured(|key| place(key) == index)?;
                Ok(label(name.clone(), group))
            })
            .collect()
    }

    fn categories(&self) -> Result<Vec<Group>, MetricsError> {
        let expectations = &self.metadata.expectations;
        let names: BTreeSet<_> = expectations.iter().filter_map(|e| e.category.as_ref()).collect();
        names
            .into_iter()
            .map(|name: &String| {
                let group = self.measured(|key| self.category(key) == Some(name))?;
                Ok(Group { category: Some(name.clone()), ..group })
            })
            .collect()
    }

    fn operations(&self) -> Result<Vec<Group>, MetricsError> {
        let measured = self.snapshot.cells().filter(|(key, _)| !self.is_warmup(*key));
        let operations: BTreeSet<_> = measured.filter_map(|(key, _)| key.operation).collect();
        operations
            .into_iter()
            .map(|operation: Operation| {
                let group = self.measured(|key| key.operation == Some(operation))?;
                Ok(Group { operation: Some(operation.name().to_owned()), ..group })
            })
            .collect()
    }

    fn cells(&self) -> Result<Vec<Group>, MetricsError> {
        self.snapshot.cells().map(|(key, _)| self.cell(key)).collect()
    }

    fn cell(&self, key: GroupKey) -> Result<Group, MetricsError> {
        let metadata = self.metadata;
        let stage = metadata.stages.get(key.stage.index());
        let duration_s = stage.map_or(0.0, |stage| stage.duration_s);
        let group = self.group(duration_s, &|other| other == key)?;
        Ok(Group {
            stage: stage.map(|stage| stage.name.clone()),
            scenario: metadata.scenarios.get(key.scenario.index()).cloned(),
            category: self.category(key).cloned(),
            target: metadata.targets.get(key.target.index()).map(|target| target.name.clone()),
            operation: key.operation.map(|operation| operation.name().to_owned()),
            warmup: self.is_warmup(key),
            ..group
        })
    }

    fn category(&self, key: GroupKey) -> Option<&String> {
        self.metadata.expectations.get(key.scenario.index())?.category.as_ref()
    }

    fn is_warmup(&self, key: GroupKey) -> bool {
        self.metadata.stages.get(key.stage.index()).is_some_and(|stage| stage.warmup)
    }
}
