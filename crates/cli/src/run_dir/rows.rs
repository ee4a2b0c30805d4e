//! `results.jsonl`, written while the run goes on.

use std::fs::File;
use std::io::{self, Write as _};

use anyhow::{Context as _, Result};
use plimsoll_engine::{SampleBatch, SampleSink};
use plimsoll_measure::{Moment, Sample, ScenarioId, Seed, StageId, TargetId};
use plimsoll_metrics::RunMetadata;
use plimsoll_report::{RowContext, RowNames, write_row};
use plimsoll_workload::{conversation_id, request_id};

use super::{RunDir, file};

/// The file of rows.
///
/// Each batch of samples is one write of whole lines, straight to the file: whatever ends the
/// process, every line but at most the last is complete.
pub(crate) struct RowFile {
    file: File,
    facts: RunMetadata,
    names: Names,
    lines: Vec<u8>,
}

impl RowFile {
    /// Makes the file: before the load, so that an error is known before the load.
    pub(crate) fn create(run_dir: &RunDir, facts: RunMetadata) -> Result<Self> {
        let path = run_dir.path().join(file::ROWS);
        let file =
            File::create_new(&path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { file, facts, names: Names::default(), lines: Vec::new() })
    }

    fn add(&mut self, sample: &Sample, events: Option<&[Moment]>, weight: u32) {
        let Self { facts, names, lines, .. } = self;
        let conversation = conversation_id(Seed(facts.run.seed), sample.conversation);
        let request = request_id(conversation, sample.turn);
        let row = RowContext {
            conversation: conversation.as_str(),
            request_id: request.as_str(),
            names: names.of(sample, facts),
            epoch_unix_ns: facts.run.started_unix_ns,
            weight,
            events,
        };
        write_row(sample, &row, lines);
    }
}

impl SampleSink for RowFile {
    fn write(&mut self, batch: &SampleBatch) -> io::Result<()> {
        self.lines.clear();
        for (sample, events) in batch.rows() {
            self.add(sample, events, batch.sampling_rate.weight(sample));
        }
        self.file.write_all(&self.lines)
    }
}

/// What a row says of stage, scenario and target: made once for each combination.
#[derive(Default)]
struct Names {
    known: Vec<((StageId, ScenarioId, TargetId), RowNames)>,
    /// Where the last row's are.
    last: usize,
}

impl Names {
    fn of(&mut self, sample: &Sample, facts: &RunMetadata) -> &RowNames {
        let key = (sample.stage, sample.scenario, sample.target);
        if self.known.get(self.last).is_none_or(|known| known.0 != key) {
            self.last = match self.known.binary_search_by_key(&key, |known| known.0) {
                Ok(place) => place,
                Err(place) => {
                    self.known.insert(place, (key, names(sample, facts)));
                    place
                }
            };
        }
        &self.known[self.last].1
    }
}

fn names(sample: &Sample, facts: &RunMetadata) -> RowNames {
    let scenario = sample.scenario.index();
    RowNames::new(
        facts.scenarios.get(scenario).map_or("", String::as_str),
        facts.expectations.get(scenario).and_then(|expected| expected.category.as_deref()),
        facts.targets.get(sample.target.index()).map_or("", |target| &target.name),
        facts.stages.get(sample.stage.index()).map_or("", |stage| &stage.name),
    )
}
