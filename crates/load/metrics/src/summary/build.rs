//! From what was counted to what is shown.

use std::collections::BTreeSet;

use crate::batches::WITH_INTERVALS;
use crate::cell::GroupKey;
use crate::error::MetricsError;
use crate::facts::{LoadModel, RunMetadata, StageInfo};
use crate::health::{InstrumentHealth, LittlesLaw};
use crate::snapshot::Snapshot;
use crate::summary::{Group, RunSummary, SCHEMA, evidence, interpretation};
use crate::threshold::{Band, Threshold};
use crate::validity::{Assessment, Validity, judge_health};

impl RunSummary {
    /// Sums up a run: rolls the cells up, judges the instrument, then the thresholds.
    ///
    /// # Errors
    /// [`MetricsError::EncodeHistogram`] where a histogram holds more counts than 63 bits.
    pub fn build(
        facts: RunMetadata,
        mut health: InstrumentHealth,
        snapshot: &Snapshot,
        thresholds: &[Threshold],
    ) -> Result<Self, MetricsError> {
        let whole = snapshot.total(|_| true);
        health.observe(&whole);
        health.littles_law = littles_law(&facts, snapshot);
        let evidence = evidence::of(&facts, snapshot, &whole);
        let roll = Roll { facts: &facts, snapshot };
        let mut summary = Self {
            schema: SCHEMA.to_owned(),
            total: roll.measured(|_| true)?,
            by_stage: roll.stages()?,
            by_scenario: roll.scenarios()?,
            by_category: roll.categories()?,
            by_target: roll.targets()?,
            cells: roll.cells()?,
            validity: Validity::Valid,
            warnings: Vec::new(),
            thresholds: Vec::new(),
            bands: Vec::new(),
            interpretation: Vec::new(),
            processes: Vec::new(),
            run: facts.run,
            stages: facts.stages,
            scenarios: facts.scenarios,
            expectations: facts.expectations,
            labels: facts.labels,
            targets: facts.targets,
            health,
            environment: facts.environment,
            notes: facts.notes,
        };
        let Assessment { validity, warnings } = judge_health(&summary.health, &evidence);
        (summary.validity, summary.warnings) = (validity, warnings);
        summary.thresholds = thresholds.iter().map(|threshold| threshold.judge(&summary)).collect();
        summary.interpretation = interpretation::of(&summary);
        Ok(summary)
    }

    /// Adds where the run stands in these bands.
    #[must_use]
    pub fn with_bands(mut self, bands: &[Band]) -> Self {
        self.bands = bands.iter().map(|band| band.judge(&self)).collect();
        self.interpretation = interpretation::of(&self);
        self
    }
}

/// Rolls cells up into groups.
struct Roll<'a> {
    facts: &'a RunMetadata,
    snapshot: &'a Snapshot,
}

impl Roll<'_> {
    /// The measured (not warm-up) cells that `filter` accepts.
    fn measured(&self, filter: impl Fn(GroupKey) -> bool) -> Result<Group, MetricsError> {
        let measured = self.facts.stages.iter().filter(|stage| !stage.warmup);
        let duration_s = measured.map(|stage| stage.duration_s).sum();
        self.group(duration_s, &|key| !self.is_warmup(key) && filter(key))
    }

    /// All cells that `filter` accepts, without labels.
    fn group(
        &self,
        duration_s: f64,
        filter: &dyn Fn(GroupKey) -> bool,
    ) -> Result<Group, MetricsError> {
        let cell = self.snapshot.total(filter);
        let mut group = Group::of(&cell, duration_s)?;
        for metric in WITH_INTERVALS {
            let times = group.distributions.get_mut(metric.key());
            if let (Some(times), Some(whole)) = (times, cell.distribution(metric)) {
                times.bound(|q| self.snapshot.interval(whole, metric, q, filter));
            }
        }
        Ok(group)
    }

    fn stages(&self) -> Result<Vec<Group>, MetricsError> {
        let group = |(index, stage): (usize, &StageInfo)| {
            let group = self.group(stage.duration_s, &|key| key.stage.index() == index)?;
            Ok(Group { stage: Some(stage.name.clone()), warmup: stage.warmup, ..group })
        };
        self.facts.stages.iter().enumerate().map(group).collect()
    }

    fn scenarios(&self) -> Result<Vec<Group>, MetricsError> {
        let group = |(index, name): (usize, &String)| {
            let group = self.measured(|key| key.scenario.index() == index)?;
            Ok(Group { scenario: Some(name.clone()), ..group })
        };
        self.facts.scenarios.iter().enumerate().map(group).collect()
    }

    /// By name; none where no scenario has a category.
    fn categories(&self) -> Result<Vec<Group>, MetricsError> {
        let of =
            |key: GroupKey| self.facts.expectations.get(key.scenario.index())?.category.as_ref();
        let names: BTreeSet<_> =
            self.facts.expectations.iter().filter_map(|e| e.category.as_ref()).collect();
        let group = |name: &String| {
            let group = self.measured(|key| of(key) == Some(name))?;
            Ok(Group { category: Some(name.clone()), ..group })
        };
        names.into_iter().map(group).collect()
    }

    fn targets(&self) -> Result<Vec<Group>, MetricsError> {
        let group = |(index, target): (usize, &crate::facts::TargetInfo)| {
            let group = self.measured(|key| key.target.index() == index)?;
            Ok(Group { target: Some(target.name.clone()), ..group })
        };
        self.facts.targets.iter().enumerate().map(group).collect()
    }

    fn cells(&self) -> Result<Vec<Group>, MetricsError> {
        self.snapshot.cells().map(|(key, _)| self.cell(key)).collect()
    }

    fn cell(&self, key: GroupKey) -> Result<Group, MetricsError> {
        let facts = self.facts;
        let stage = facts.stages.get(key.stage.index());
        let duration_s = stage.map_or(0.0, |stage| stage.duration_s);
        let group = self.group(duration_s, &|other| other == key)?;
        Ok(Group {
            stage: stage.map(|stage| stage.name.clone()),
            scenario: facts.scenarios.get(key.scenario.index()).cloned(),
            category: facts
                .expectations
                .get(key.scenario.index())
                .and_then(|expectation| expectation.category.clone()),
            target: facts.targets.get(key.target.index()).map(|target| target.name.clone()),
            warmup: self.is_warmup(key),
            ..group
        })
    }

    fn is_warmup(&self, key: GroupKey) -> bool {
        self.facts.stages.get(key.stage.index()).is_some_and(|stage| stage.warmup)
    }
}

/// Little's law on every stage of the closed model whose requests in flight were watched. In the open
/// model requests wait for the pacer before anybody sees them, and there is nothing to compare.
fn littles_law(facts: &RunMetadata, snapshot: &Snapshot) -> Vec<LittlesLaw> {
    let law = |(index, stage): (usize, &StageInfo)| {
        let judged = stage.model == LoadModel::Closed && stage.duration_s > 0.0;
        let in_flight = stage.mean_in_flight.filter(|_| judged)?;
        let cell = snapshot.total(|key| key.stage.index() == index);
        let rate_times_time = cell.under_way() as f64 / 1e9 / stage.duration_s;
        Some(LittlesLaw { stage: stage.name.clone(), in_flight, rate_times_time })
    };
    facts.stages.iter().enumerate().filter_map(law).collect()
}
