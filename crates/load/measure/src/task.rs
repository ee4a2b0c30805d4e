//! One task of an agent: a conversation whose requests the answers decide.

use crate::id::{ConversationKey, ScenarioId, StageId, TargetId};
use crate::named_enum;
use serde::{Deserialize, Serialize};

use crate::time::{Moment, Nanos};

named_enum! {
    /// What a request of a task is for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum TaskPart {
        /// The dialogue with the model.
        Chat => "chat",
        /// The call of a tool.
        Tools => "tools",
        /// The approval of a tool call: to ask for it, and to decide.
        Approvals => "approvals",
    }
}

impl TaskPart {
    /// Number of parts.
    pub const COUNT: usize = 3;
}

named_enum! {
    /// How a task ended.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum TaskEnd {
        /// The model answered without calling a tool.
        Done => "done",
        /// A bound of the scenario ended it: the model would have gone on.
        Bound => "bound",
        /// A request of it did not complete, or its answer cannot be used.
        Failed => "failed",
        /// The run ended first, or one of its requests found no room (`max_in_flight`).
        Unfinished => "unfinished",
    }
}

/// What was counted in a task so far: requests whose answers came whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskCounts {
    /// Answers of the model.
    pub steps: u16,
    /// Results of tools.
    pub tool_calls: u16,
    /// Of these, results that say `isError`.
    pub tool_errors: u16,
    /// Approvals that were asked for.
    pub approvals: u16,
    /// Of these, the calls that were approved.
    pub approved: u16,
    /// Of these, the calls that were rejected.
    pub rejected: u16,
}

/// One task and its measurements. `Copy`, without heap.
///
/// Each part has the time from the end of the request before to the end of its own, the first one
/// from the intended start. So the three parts of a task add up to its loop time, to the
/// nanosecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskSample {
    /// The stage in which it was intended to start.
    pub stage: StageId,
    /// Its scenario.
    pub scenario: ScenarioId,
    /// The target it went to.
    pub target: TargetId,
    /// Its conversation.
    pub conversation: ConversationKey,
    /// Whether it began in a warm-up stage.
    pub warmup: bool,
    /// The intended start of its first request.
    pub intended: Moment,
    /// The end of its last request that ended; the intended start if none did.
    pub finished: Moment,
    /// From the intended start to the first content event of the first answer. `None` without a
    /// stream, or without content.
    pub first_token: Option<Nanos>,
    /// Time by part, in the order of [`TaskPart::ALL`]; the time that a human thinks belongs to
    /// the approvals.
    pub times: [Nanos; TaskPart::COUNT],
    /// What the generator itself may have added to each of `times`: an upper bound.
    pub generator: [Nanos; TaskPart::COUNT],
    /// What it may have added to `first_token`.
    pub first_token_generator: Nanos,
    /// Counts.
    pub counts: TaskCounts,
    /// How it ended.
    pub end: TaskEnd,
    /// Where it failed, if it did.
    pub failed_in: Option<TaskPart>,
}

impl TaskSample {
    /// The time of one part, and what the generator itself may have added to it.
    pub const fn part(&self, part: TaskPart) -> (Nanos, Nanos) {
        (self.times[part as usize], self.generator[part as usize])
    }

    /// From the intended start to the last byte of the last request that ended.
    pub const fn loop_time(&self) -> Nanos {
        self.finished.since(self.intended)
    }

    /// What the generator itself may have added to the loop time.
    pub fn loop_generator(&self) -> Nanos {
        self.generator.into_iter().sum()
    }
}
