//! Tasks of agents: their counts and times, and what of it a summary holds.

use std::collections::BTreeMap;

use plimsoll_measure::{Nanos, ScenarioId, TargetId, TaskEnd, TaskPart, TaskSample};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalog::Metric;
use crate::distribution::Distribution;
use crate::error::MetricsError;
use crate::results::DistributionSummary;
use crate::results::distribution_summary::Ends;
use crate::run_metadata::RunMetadata;

/// The times of a task, in the order in which reports have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskTime {
    /// From the intended start to the first content event of the first answer.
    FirstToken,
    /// Time for the dialogue with the model, all steps together.
    Chat,
    /// Time for calls of tools.
    Tools,
    /// Time for approvals, with that in which a human thinks.
    Approvals,
    /// From the intended start to the last byte of the last answer.
    Loop,
}

impl TaskTime {
    /// Number of times.
    pub const COUNT: usize = 5;

    /// Every time.
    pub const ALL: [Self; Self::COUNT] =
        [Self::FirstToken, Self::Chat, Self::Tools, Self::Approvals, Self::Loop];

    /// The key in files.
    pub const fn key(self) -> &'static str {
        match self {
            Self::FirstToken => "first_token_ms",
            Self::Chat => "chat_ms",
            Self::Tools => "tools_ms",
            Self::Approvals => "approvals_ms",
            Self::Loop => "loop_ms",
        }
    }

    /// The title in reports.
    pub const fn title(self) -> &'static str {
        match self {
            Self::FirstToken => "first token",
            Self::Chat => "chat",
            Self::Tools => "tools",
            Self::Approvals => "approvals",
            Self::Loop => "loop time",
        }
    }

    /// The value in a task, and its measurement error.
    fn measure(self, task: &TaskSample) -> Option<(Nanos, Nanos)> {
        match self {
            Self::FirstToken => Some((task.first_token?, task.first_token_generator)),
            // All times except the first token require a complete task.
            _ if task.end != TaskEnd::Done => None,
            Self::Chat => Some(task.part(TaskPart::Chat)),
            Self::Tools => (task.counts.tool_calls > 0).then(|| task.part(TaskPart::Tools)),
            Self::Approvals => (task.counts.approvals > 0).then(|| task.part(TaskPart::Approvals)),
            Self::Loop => Some((task.loop_time(), task.loop_generator())),
        }
    }
}

/// Counts and times of the tasks of one scenario and target.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct TaskStats {
    counts: TaskTotals,
    failed_in: BTreeMap<TaskPart, u64>,
    /// Tasks that the run ended before their first answer.
    unanswered: u64,
    times: [Option<Box<TaskTimes>>; TaskTime::COUNT],
    /// Tasks that are done, by their steps and by their tool calls.
    steps: BTreeMap<u16, u64>,
    tool_calls: BTreeMap<u16, u64>,
}

/// The values of one time, as they were measured and without the generator's part.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct TaskTimes {
    measured: Distribution,
    without: Distribution,
    /// Whether the two differ.
    is_disturbed: bool,
}

/// Counts of tasks, by how they ended, and of their steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskTotals {
    /// Tasks whose first request was due, outside of warm-up: `done + bound + failed +
    /// unfinished`.
    pub started: u64,
    /// The model answered without calling a tool.
    pub done: u64,
    /// A bound of the scenario ended it (`max_steps`, 128 calls in one answer, or a dialogue of
    /// 16 MiB): the model would have gone on.
    pub bound: u64,
    /// A request of it did not complete, or its answer was of no use.
    pub failed: u64,
    /// The run ended first, or one of its requests found no room (`max_in_flight`).
    pub unfinished: u64,
    /// Answers of the model, in all tasks.
    pub steps: u64,
    /// Results of tools, in all tasks.
    pub tool_calls: u64,
    /// Part of `tool_calls` with `isError` in the result, which the model receives.
    pub tool_errors: u64,
    /// Approvals that were asked for, in all tasks.
    pub approvals: u64,
    /// Part of `approvals` that were approved.
    pub approved: u64,
    /// Part of `approvals` that were rejected.
    pub rejected: u64,
}

impl TaskTotals {
    fn count(&mut self, task: &TaskSample) {
        let of_end = match task.end {
            TaskEnd::Done => &mut self.done,
            TaskEnd::Bound => &mut self.bound,
            TaskEnd::Failed => &mut self.failed,
            TaskEnd::Unfinished => &mut self.unfinished,
        };
        *of_end += 1;
        self.started += 1;
        let counts = task.counts;
        self.steps += u64::from(counts.steps);
        self.tool_calls += u64::from(counts.tool_calls);
        self.tool_errors += u64::from(counts.tool_errors);
        self.approvals += u64::from(counts.approvals);
        self.approved += u64::from(counts.approved);
        self.rejected += u64::from(counts.rejected);
    }

    const fn add(&mut self, other: &Self) {
        self.started += other.started;
        self.done += other.done;
        self.bound += other.bound;
        self.failed += other.failed;
        self.unfinished += other.unfinished;
        self.steps += other.steps;
        self.tool_calls += other.tool_calls;
        self.tool_errors += other.tool_errors;
        self.approvals += other.approvals;
        self.approved += other.approved;
        self.rejected += other.rejected;
    }
}

impl TaskStats {
    fn record(&mut self, task: &TaskSample) {
        self.counts.count(task);
        if let Some(part) = task.failed_in {
            *self.failed_in.entry(part).or_default() += 1;
        }
        if task.end == TaskEnd::Unfinished && task.counts.steps == 0 {
            self.unanswered += u64::from(task.first_token.is_none());
        }
        if task.end == TaskEnd::Done {
            *self.steps.entry(task.counts.steps).or_default() += 1;
            *self.tool_calls.entry(task.counts.tool_calls).or_default() += 1;
        }
        for (time, values) in TaskTime::ALL.into_iter().zip(&mut self.times) {
            let Some((measured, own)) = time.measure(task) else { continue };
            let values = values.get_or_insert_default();
            values.measured.record(measured);
            values.without.record(measured.saturating_sub(own));
            values.is_disturbed |= own > Nanos::ZERO;
        }
    }

    fn merge(&mut self, other: &Self) {
        self.counts.add(&other.counts);
        self.unanswered += other.unanswered;
        add_counts(&mut self.failed_in, &other.failed_in);
        add_counts(&mut self.steps, &other.steps);
        add_counts(&mut self.tool_calls, &other.tool_calls);
        for (mine, theirs) in self.times.iter_mut().zip(&other.times) {
            let Some(theirs) = theirs else { continue };
            let mine = mine.get_or_insert_default();
            mine.measured.merge(&theirs.measured);
            mine.without.merge(&theirs.without);
            mine.is_disturbed |= theirs.is_disturbed;
        }
    }

    /// Tasks that would have had a longer time of this kind.
    const fn cut(&self, time: TaskTime) -> u64 {
        match time {
            TaskTime::FirstToken => self.unanswered,
            _ => self.counts.bound + self.counts.unfinished,
        }
    }

    fn distributions(&self) -> Result<BTreeMap<String, DistributionSummary>, MetricsError> {
        let mut distributions = BTreeMap::new();
        for (time, values) in TaskTime::ALL.into_iter().zip(&self.times) {
            let Some(values) = values else { continue };
            let mut summary = DistributionSummary::from_distribution(&values.measured)?;
            let least = values.is_disturbed.then(|| values.without.clone());
            // A task that was cut takes longer, like a request without an end.
            let like = Metric::ResponseTime;
            let ends = Ends { least, most: None };
            summary.add_bounds(like, &values.measured, &ends, self.cut(time))?;
            distributions.insert(time.key().to_owned(), summary);
        }
        Ok(distributions)
    }
}

fn add_counts<K: Ord + Copy>(mine: &mut BTreeMap<K, u64>, theirs: &BTreeMap<K, u64>) {
    for (key, count) in theirs {
        *mine.entry(*key).or_default() += count;
    }
}

/// The tasks of a run or of one worker, by scenario and target. Merging is associative and
/// commutative.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TaskTally {
    measured: BTreeMap<(ScenarioId, TargetId), TaskStats>,
    /// Tasks of warm-up stages.
    warmup: BTreeMap<(ScenarioId, TargetId), u64>,
}

impl TaskTally {
    /// Records a task that is over.
    pub fn record(&mut self, task: &TaskSample) {
        let key = (task.scenario, task.target);
        if task.warmup {
            *self.warmup.entry(key).or_default() += 1;
        } else {
            self.measured.entry(key).or_default().record(task);
        }
    }

    /// Adds the tasks of another worker or shard.
    pub fn merge(&mut self, other: &Self) {
        add_counts(&mut self.warmup, &other.warmup);
        for (key, stats) in &other.measured {
            self.measured.entry(*key).or_default().merge(stats);
        }
    }

    /// Summarizes the tasks: one group for each scenario and target with a task.
    ///
    /// # Errors
    /// [`MetricsError::EncodeHistogram`] if a histogram holds more counts than 63 bits.
    pub fn groups(&self, metadata: &RunMetadata) -> Result<Vec<TaskGroup>, MetricsError> {
        let nothing = TaskStats::default();
        let mut keys: Vec<_> = self.measured.keys().chain(self.warmup.keys()).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.into_iter()
            .map(|key: &(ScenarioId, TargetId)| {
                let stats = self.measured.get(key).unwrap_or(&nothing);
                let name = metadata.scenarios.get(key.0.index());
                let target = metadata.targets.get(key.1.index()).map(|target| target.name.clone());
                let failed_in = stats.failed_in.iter();
                Ok(TaskGroup {
                    scenario: name.cloned().unwrap_or_default(),
                    target: target.filter(|_| metadata.targets.len() > 1),
                    warmup: self.warmup.get(key).copied().unwrap_or_default(),
                    totals: stats.counts,
                    failed_in: failed_in.map(|(part, n)| (part.name().to_owned(), *n)).collect(),
                    steps_per_task: CountFigures::from_counts(&stats.steps),
                    tool_calls_per_task: CountFigures::from_counts(&stats.tool_calls),
                    distributions: stats.distributions()?,
                })
            })
            .collect()
    }
}

/// The tasks of one agent, outside of warm-up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskGroup {
    /// The scenario.
    pub scenario: String,
    /// The target, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Tasks that began in a warm-up stage; they are in no other figure here.
    pub warmup: u64,
    /// Counts.
    pub totals: TaskTotals,
    /// Failed tasks, by the purpose of the failed request: `chat`, `tools` or `approvals`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failed_in: BTreeMap<String, u64>,
    /// Answers of the model in a task that is done; `None` if none is.
    pub steps_per_task: Option<CountFigures>,
    /// Results of tools in a task that is done.
    pub tool_calls_per_task: Option<CountFigures>,
    /// Times in milliseconds. `first_token_ms` is of all tasks with a first token, the others of
    /// those that are done: `chat_ms`, `tools_ms` (of tasks with a tool call), `approvals_ms` (of
    /// tasks with an approval), and `loop_ms`, which is the sum of the three in each task. Tasks
    /// at the bound and unfinished ones would have taken longer: they count as `unfinished`.
    pub distributions: BTreeMap<String, DistributionSummary>,
}

impl TaskGroup {
    /// A time; `None` if it has no value.
    pub fn time(&self, time: TaskTime) -> Option<&DistributionSummary> {
        self.distributions.get(time.key())
    }
}

/// Figures of a count, exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CountFigures {
    /// Mean.
    pub mean: f64,
    /// Median, by nearest rank.
    pub p50: u16,
    /// 95th percentile, by nearest rank.
    pub p95: u16,
    /// Largest.
    pub max: u16,
}

impl CountFigures {
    /// The figures of values with these frequencies; `None` without values.
    fn from_counts(counts: &BTreeMap<u16, u64>) -> Option<Self> {
        let all: u64 = counts.values().sum();
        let (max, _) = counts.last_key_value()?;
        let sum: u64 = counts.iter().map(|(value, n)| u64::from(*value) * n).sum();
        let mean = sum as f64 / all as f64;
        let p50 = value_at(counts, (all * 50).div_ceil(100)).unwrap_or(*max);
        let p95 = value_at(counts, (all * 95).div_ceil(100)).unwrap_or(*max);
        Some(Self { mean, p50, p95, max: *max })
    }
}

/// The least value that at least `rank` values do not exceed.
fn value_at(counts: &BTreeMap<u16, u64>, rank: u64) -> Option<u16> {
    let mut seen = 0;
    let found = counts.iter().find(|(_, n)| {
        seen += **n;
        seen >= rank
    });
    found.map(|(value, _)| *value)
}
