//! One task of an agent: a conversation whose requests depend on the responses.

use crate::id::{ConversationKey, ScenarioId, StageId, TargetId};
use crate::named_enum;
use serde::{Deserialize, Serialize};

use crate::time::{Moment, Nanos};

named_enum! {
    /// Purpose of a request in a task.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum TaskPart {
        /// The dialogue with the model.
        Chat => "chat",
        /// Calling a tool.
        Tools => "tools",
        /// Approving a tool call: asking for the approval, and deciding.
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
        /// A limit of the scenario ended it before the model was done.
        Bound => "bound",
        /// One of its requests failed, or had an unusable response.
        Failed => "failed",
        /// The run ended first, or one of its requests was dropped (`max_in_flight`).
        Unfinished => "unfinished",
    }
}

/// Counts of a task so far, over requests with complete responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskCounts {
    /// Responses of the model.
    pub steps: u16,
    /// Results of tools.
    pub tool_calls: u16,
    /// Results of tools with `isError`.
    pub tool_errors: u16,
    /// Requested approvals.
    pub approvals: u16,
    /// Approved calls.
    pub approved: u16,
    /// Rejected calls.
    pub rejected: u16,
}

/// One task and its measurements. `Copy`, without heap.
///
/// The time of a request starts at the end of the previous one, or at the intended start for the
/// first one, and ends with the request. So the three parts of a task sum exactly to its loop time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskSample {
    /// Stage in which it was intended to start.
    pub stage: StageId,
    /// Scenario of the task.
    pub scenario: ScenarioId,
    /// Target of the task.
    pub target: TargetId,
    /// Conversation of the task.
    pub conversation: ConversationKey,
    /// Whether it began in a warm-up stage.
    pub warmup: bool,
    /// Intended start of its first request.
    pub intended: Moment,
    /// End of its last finished request; the intended start if none finished.
    pub finished: Moment,
    /// Time from the intended start to the first content event of the first response. `None`
    /// without a stream, or without content.
    pub first_token: Option<Nanos>,
    /// Time by part, in the order of [`TaskPart::ALL`]; a human's thinking time belongs to the
    /// approvals.
    pub times: [Nanos; TaskPart::COUNT],
    /// Measurement error of each of `times`: an upper bound.
    pub generator: [Nanos; TaskPart::COUNT],
    /// Measurement error of `first_token`.
    pub first_token_generator: Nanos,
    /// Counts.
    pub counts: TaskCounts,
    /// How it ended.
    pub end: TaskEnd,
    /// Part in which it failed, if it did.
    pub failed_in: Option<TaskPart>,
}

impl TaskSample {
    /// The time of one part, and its measurement error.
    pub const fn part(&self, part: TaskPart) -> (Nanos, Nanos) {
        (self.times[part as usize], self.generator[part as usize])
    }

    /// Time from the intended start to the last byte of the last finished request.
    pub const fn loop_time(&self) -> Nanos {
        self.finished.since(self.intended)
    }

    /// Measurement error of the loop time.
    pub fn loop_generator(&self) -> Nanos {
        self.generator.into_iter().sum()
    }
}
