//! Builds the summary of a run, and applies the rules to it.

use crate::error::MetricsError;
use crate::findings::findings;
use crate::health::InstrumentHealth;
use crate::limit::Limit;
use crate::results::Results;
use crate::run_metadata::RunMetadata;
use crate::snapshot::Snapshot;
use crate::summary::{RunSummary, SCHEMA};
use crate::time_facts::TimeFacts;

impl RunSummary {
    /// Builds the summary of a run: adds up the counts, judges the instrument, then the limits.
    ///
    /// # Errors
    /// [`MetricsError::EncodeHistogram`] if a histogram holds more counts than 63 bits.
    pub fn build(
        metadata: RunMetadata,
        mut health: InstrumentHealth,
        snapshot: &Snapshot,
        limits: &[Limit],
    ) -> Result<Self, MetricsError> {
        let whole = snapshot.total(|_| true);
        health.observe(&whole);
        let results = Results::roll_up(&metadata, snapshot)?;
        let thresholds = Limit::judge_all(limits, &metadata.targets, &results);
        let schema = SCHEMA.to_owned();
        let mut summary = Self { schema, thresholds, metadata, results, health, ..Self::default() };
        summary.find();
        Ok(summary)
    }

    /// Applies the rules to the evidence; call it again after adding some.
    pub fn find(&mut self) {
        self.findings = findings(self);
        if let Some(busy) = self.findings.iter().find(|finding| finding.code == 701) {
            let why = busy.text().replacen("The CPUs", "the CPUs", 1);
            let why = why.trim_end_matches('.');
            self.thresholds.iter_mut().for_each(|limit| limit.doubt_on_busy_host(why));
        }
    }

    /// Adds what changed during the run.
    pub fn add_time_facts(&mut self, facts: &TimeFacts) {
        self.time_facts.clone_from(facts);
        self.find();
    }

    /// Judges it by these limits instead.
    pub fn with_limits(mut self, limits: &[Limit]) -> Self {
        self.thresholds = Limit::judge_all(limits, &self.metadata.targets, &self.results);
        self
    }
}
