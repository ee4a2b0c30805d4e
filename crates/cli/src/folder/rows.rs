//! `results.jsonl`, written while the run goes on.

use std::fs::File;
use std::io::{self, Write as _};

use anyhow::{Context as _, Result};
use plimsoll_engine::SampleSink;
use plimsoll_measure::{Sample, Seed};
use plimsoll_metrics::RunFacts;
use plimsoll_report::{RowContext, write_row};
use plimsoll_workload::{conversation_id, request_id};

use super::{Folder, file};

/// The file of rows.
///
/// Each batch of samples is one write of whole lines, straight to the file: whatever ends the process, every line but
/// at most the last is complete.
pub(crate) struct RowFile {
    file: File,
    facts: RunFacts,
    lines: Vec<u8>,
}

impl RowFile {
    /// Makes the file: before the load, so that an error is known before the load.
    pub(crate) fn create(folder: &Folder, facts: RunFacts) -> Result<Self> {
        let path = folder.path().join(file::ROWS);
        let file =
            File::create_new(&path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { file, facts, lines: Vec::new() })
    }

    fn add(&mut self, sample: &Sample) {
        let Self { facts, lines, .. } = self;
        let conversation = conversation_id(Seed(facts.run.seed), sample.conversation);
        let request = request_id(conversation, sample.turn);
        let row = RowContext {
            conversation: conversation.as_str(),
            request_id: request.as_str(),
            scenario: facts.scenarios.get(sample.scenario.index()).map_or("", String::as_str),
            category: facts
                .expectations
                .get(sample.scenario.index())
                .and_then(|expectation| expectation.category.as_deref()),
            lane: facts.lanes.get(sample.lane.index()).map_or("", |lane| &lane.name),
            stage: facts.stages.get(sample.stage.index()).map_or("", |stage| &stage.name),
            epoch_unix_ns: facts.run.started_unix_ns,
        };
        write_row(sample, &row, lines);
    }
}

impl SampleSink for RowFile {
    fn write(&mut self, samples: &[Sample]) -> io::Result<()> {
        self.lines.clear();
        for sample in samples {
            self.add(sample);
        }
        self.file.write_all(&self.lines)
    }
}
