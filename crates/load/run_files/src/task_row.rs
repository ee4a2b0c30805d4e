//! The lines of `tasks.jsonl`: one for each task of an agent, written during the run.

use std::borrow::Cow;
use std::collections::HashSet;

use plimsoll_measure::{
    ConversationKey, Moment, Nanos, ScenarioId, StageId, TargetId, TaskCounts, TaskEnd, TaskPart,
    TaskSample,
};
use plimsoll_metrics::{RunMetadata, TaskTally};
use serde::{Deserialize, Serialize};

use crate::row::{ParsedRow, parse_row, row_time};

/// One task. Times are in milliseconds; the three parts add up to `loop_ms`.
#[serde_with::skip_serializing_none]
#[derive(Serialize, Deserialize)]
struct TaskRow<'a> {
    /// Id of the conversation: the same as in the rows of its turns.
    #[serde(borrow)]
    conversation: Cow<'a, str>,
    #[serde(borrow)]
    scenario: Cow<'a, str>,
    #[serde(borrow)]
    target: Cow<'a, str>,
    #[serde(borrow)]
    stage: Cow<'a, str>,
    warmup: bool,
    /// Intended start, since 1970 UTC.
    intended_unix_ns: u64,
    /// `done`, `bound`, `failed` or `unfinished`.
    #[serde(borrow)]
    ended: Cow<'a, str>,
    /// Purpose of the request in which the task failed.
    #[serde(borrow, default)]
    failed_in: Option<Cow<'a, str>>,
    steps: u16,
    tool_calls: u16,
    tool_errors: u16,
    approvals: u16,
    approved: u16,
    rejected: u16,
    first_token_ms: Option<f64>,
    chat_ms: f64,
    tools_ms: f64,
    approvals_ms: f64,
    loop_ms: f64,
    /// Measurement error of chat, tools and approvals: upper bounds.
    generator_ms: [f64; TaskPart::COUNT],
}

/// Appends one line for a task, with its newline. `conversation` is the conversation's id.
pub fn write_task_row(
    task: &TaskSample,
    conversation: &str,
    metadata: &RunMetadata,
    out: &mut Vec<u8>,
) {
    let scenario = metadata.scenarios.get(task.scenario.index()).map_or("", String::as_str);
    let target = metadata.targets.get(task.target.index()).map_or("", |target| &target.name);
    let stage = metadata.stages.get(task.stage.index()).map_or("", |stage| &stage.name);
    let row = TaskRow {
        conversation: conversation.into(),
        scenario: scenario.into(),
        target: target.into(),
        stage: stage.into(),
        warmup: task.warmup,
        intended_unix_ns: metadata.run.started_unix_ns.saturating_add(task.intended.as_nanos()),
        ended: task.end.name().into(),
        failed_in: task.failed_in.map(|part| part.name().into()),
        steps: task.counts.steps,
        tool_calls: task.counts.tool_calls,
        tool_errors: task.counts.tool_errors,
        approvals: task.counts.approvals,
        approved: task.counts.approved,
        rejected: task.counts.rejected,
        first_token_ms: task.first_token.map(Nanos::as_millis_f64),
        chat_ms: task.part(TaskPart::Chat).0.as_millis_f64(),
        tools_ms: task.part(TaskPart::Tools).0.as_millis_f64(),
        approvals_ms: task.part(TaskPart::Approvals).0.as_millis_f64(),
        loop_ms: task.loop_time().as_millis_f64(),
        generator_ms: task.generator.map(Nanos::as_millis_f64),
    };
    // Every value in a row can be serialized as JSON.
    if serde_json::to_writer(&mut *out, &row).is_ok() {
        out.push(b'\n');
    }
}

/// The tasks of a run that left no summary.
#[derive(Debug, Default)]
pub struct RebuiltTasks {
    /// Their counts and times.
    pub tally: TaskTally,
    /// Lines of `tasks.jsonl` that cannot be read. The last one may be cut, as a killed process
    /// leaves it.
    pub unreadable: u64,
    /// Tasks without a line whose first request is in `results.jsonl`: they were in progress, and
    /// count as unfinished, without their counts.
    pub under_way: u64,
}

/// The tasks of a run that left no summary, from the lines of `tasks.jsonl` and the rows of
/// `results.jsonl`.
pub fn rebuild_tasks<L: AsRef<[u8]>, R: AsRef<[u8]>>(
    lines: impl IntoIterator<Item = L>,
    rows: impl IntoIterator<Item = R>,
    metadata: &RunMetadata,
) -> RebuiltTasks {
    let (mut rebuilt, mut ended) = (RebuiltTasks::default(), HashSet::new());
    for line in lines {
        let line = line.as_ref().trim_ascii();
        let row = serde_json::from_slice::<TaskRow<'_>>(line).ok();
        match row.and_then(|row| Some((sample(&row, metadata)?, row))) {
            Some((task, row)) => {
                rebuilt.tally.record(&task);
                ended.insert(row.conversation.into_owned());
            }
            None => rebuilt.unreadable += u64::from(!line.is_empty()),
        }
    }
    for row in rows
        .into_iter()
        .filter_map(|row| parse_row(row.as_ref()).ok().filter(|row| row.turn == 0))
        .filter(|row| !ended.contains(&row.conversation))
    {
        if let Some(task) = under_way(&row, metadata) {
            rebuilt.tally.record(&task);
            rebuilt.under_way += 1;
        }
    }
    rebuilt
}

/// The task that a row begins; `None` if its scenario has no agent.
fn under_way(row: &ParsedRow, metadata: &RunMetadata) -> Option<TaskSample> {
    let tools = format!("{}/tools", row.scenario);
    let turn = metadata.scenarios.contains(&tools).then(|| row.sample(metadata).ok())??;
    let lag = row_time(row.dispatch_lag_ms).unwrap_or_default();
    Some(TaskSample {
        stage: turn.stage,
        scenario: turn.scenario,
        target: turn.target,
        conversation: ConversationKey::default(),
        warmup: row.warmup,
        intended: turn.timeline.intended,
        finished: turn.timeline.intended,
        first_token: row_time(row.ttft_ms).map(|ttft| lag + ttft),
        times: [Nanos::ZERO; TaskPart::COUNT],
        generator: [Nanos::ZERO; TaskPart::COUNT],
        first_token_generator: row_time(row.generator_ms).unwrap_or_default(),
        counts: TaskCounts::default(),
        end: TaskEnd::Unfinished,
        failed_in: None,
    })
}

/// The task of a row; `None` if it is one of another run.
fn sample(row: &TaskRow<'_>, metadata: &RunMetadata) -> Option<TaskSample> {
    let scenario = metadata.scenarios.iter().position(|name| *name == row.scenario);
    let target = metadata.targets.iter().position(|target| target.name == row.target);
    let stage = metadata.stages.iter().position(|stage| stage.name == row.stage);
    let since = row.intended_unix_ns.checked_sub(metadata.run.started_unix_ns)?;
    let intended = Moment::EPOCH + Nanos::new(since);
    let times = [row.chat_ms, row.tools_ms, row.approvals_ms].map(millis);
    let generator = row.generator_ms.map(millis);
    Some(TaskSample {
        stage: StageId(id(stage)?),
        scenario: ScenarioId(id(scenario)?),
        target: TargetId(id(target)?),
        // The key cannot be derived from an id.
        conversation: ConversationKey::default(),
        warmup: row.warmup,
        intended,
        finished: intended + times.into_iter().sum(),
        first_token: row.first_token_ms.map(millis),
        times,
        generator,
        first_token_generator: generator[TaskPart::Chat as usize],
        counts: TaskCounts {
            steps: row.steps,
            tool_calls: row.tool_calls,
            tool_errors: row.tool_errors,
            approvals: row.approvals,
            approved: row.approved,
            rejected: row.rejected,
        },
        end: TaskEnd::ALL.into_iter().find(|end| end.name() == row.ended)?,
        failed_in: row
            .failed_in
            .as_ref()
            .and_then(|name| TaskPart::ALL.into_iter().find(|part| part.name() == &**name)),
    })
}

fn id(position: Option<usize>) -> Option<u16> {
    u16::try_from(position?).ok()
}

fn millis(millis: f64) -> Nanos {
    Nanos::from_secs_f64(millis / 1e3)
}
