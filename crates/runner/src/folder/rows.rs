//! `results.jsonl` and `tasks.jsonl`, written during the run.

use std::collections::BTreeMap;
use std::io::{self, Write as _};

use plimsoll_engine::{RowExtras, SampleBatch, SampleSink};
use plimsoll_measure::{IdSeed, Sample, ScenarioId, StageId, TargetId};
use plimsoll_metrics::RunMetadata;
use plimsoll_run_files::{RowContext, RowFormat, RowNames, RowWriter, write_row, write_task_row};
use plimsoll_workload::{conversation_id, request_id};

use super::{RunDir, file};
use crate::error::RunnerError;
use crate::secrets::Secrets;

/// Longest message of an error in a row, in bytes.
const MOST_ERROR_DETAIL: usize = 200;

/// The file of rows, and the file of tasks if there are agents.
///
/// Each batch of samples is one unbuffered write of whole lines. Even if the process is killed,
/// every line except possibly the last is complete.
pub(crate) struct RowFile {
    file: RowWriter,
    tasks: Option<RowWriter>,
    metadata: RunMetadata,
    ids: IdSeed,
    /// Built once for each combination.
    names: BTreeMap<(StageId, ScenarioId, TargetId), RowNames>,
    secrets: Secrets,
    lines: Vec<u8>,
}

impl RowFile {
    /// Creates the files before the load, so that an error shows before any request.
    pub(crate) fn create(
        run_dir: &RunDir,
        metadata: RunMetadata,
        has_agents: bool,
        format: RowFormat,
        secrets: Secrets,
    ) -> Result<Self, RunnerError> {
        let file = create(run_dir, file::ROWS, format)?;
        let tasks = has_agents.then(|| create(run_dir, file::TASKS, format)).transpose()?;
        let ids = metadata.run.id_seed();
        let (names, lines) = (BTreeMap::new(), Vec::new());
        Ok(Self { file, tasks, metadata, ids, names, secrets, lines })
    }

    fn write_tasks(&mut self, batch: &SampleBatch) -> io::Result<()> {
        let Self { tasks: Some(file), metadata, ids, lines, .. } = self else { return Ok(()) };
        lines.clear();
        for task in &batch.tasks {
            let conversation = conversation_id(*ids, task.conversation);
            write_task_row(task, conversation.as_str(), metadata, lines);
        }
        file.write_all(lines)
    }

    fn add(&mut self, sample: &Sample, extras: &RowExtras, weight: u32) {
        let Self { metadata, ids, names, secrets, lines, .. } = self;
        let detail = extras.error_detail.as_ref().map(|text| first_words(&secrets.redact(text)));
        let conversation = conversation_id(*ids, sample.conversation);
        let request = request_id(conversation, sample.turn);
        let key = (sample.stage, sample.scenario, sample.target);
        let row = RowContext {
            conversation: conversation.as_str(),
            request_id: request.as_str(),
            names: names.entry(key).or_insert_with(|| row_names(sample, metadata)),
            epoch_unix_ns: metadata.run.started_unix_ns,
            weight,
            events: extras.events.as_deref(),
            headers: &extras.headers,
            server_parts: &extras.parts,
            error_detail: detail.as_deref(),
            decoded_bytes: extras.decoded_bytes,
            pair: pair(sample, metadata),
        };
        write_row(sample, &row, lines);
    }
}

impl SampleSink for RowFile {
    fn write(&mut self, batch: &SampleBatch) -> io::Result<()> {
        self.lines.clear();
        for (sample, extras) in batch.rows() {
            self.add(sample, extras, batch.sampling_rate.weight(sample));
        }
        self.file.write_all(&self.lines)?;
        self.write_tasks(batch)
    }
}

/// The beginning of a message, cut between characters.
fn first_words(message: &str) -> String {
    message[..message.floor_char_boundary(MOST_ERROR_DETAIL)].to_owned()
}

fn create(run_dir: &RunDir, name: &str, format: RowFormat) -> Result<RowWriter, RunnerError> {
    let path = format.path(run_dir.path(), name);
    RowWriter::create(&path, format).map_err(|source| RunnerError::Write { path, source })
}

/// The number of its block, where several targets are compared.
fn pair(sample: &Sample, metadata: &RunMetadata) -> Option<u64> {
    let targets = u16::try_from(metadata.targets.len()).ok().filter(|targets| *targets > 1)?;
    Some(sample.conversation.block(targets).0.number())
}

/// The names of stage, scenario and target in a row.
fn row_names(sample: &Sample, metadata: &RunMetadata) -> RowNames {
    let scenario = sample.scenario.index();
    RowNames::new(
        metadata.scenarios.get(scenario).map_or("", String::as_str),
        metadata.expectations.get(scenario).and_then(|expected| expected.category.as_deref()),
        metadata.targets.get(sample.target.index()).map_or("", |target| &target.name),
        metadata.stages.get(sample.stage.index()).map_or("", |stage| &stage.name),
    )
}
