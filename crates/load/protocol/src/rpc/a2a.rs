//! A2A over JSON-RPC: versions 1.0 and 0.3, which differ in the names of methods and members.
//!
//! Sources: `a2a.proto` and the specification of 1.0, and the JSON Schema of 0.3.

use plimsoll_measure::Operation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Params;
use crate::text::Text;

/// A version of A2A.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Version {
    /// Methods such as `SendMessage`, and the header `A2A-Version: 1.0`.
    #[default]
    #[serde(rename = "v1.0")]
    V1_0,
    /// Methods such as `message/send`, without a header.
    #[serde(rename = "v0.3")]
    V0_3,
}

/// A message to an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Protocol version.
    pub version: Version,
    /// Operation with its arguments.
    pub ask: Ask,
}

/// An operation of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Fetches the agent's card.
    Card,
    /// Sends a message.
    Send {
        /// Message to send.
        message: Message,
        /// Whether to request a stream.
        stream: bool,
        /// Whether the response waits until the task is over; streams always do.
        wait: bool,
    },
    /// Fetches the state of a task.
    Get {
        /// Id of the task.
        task: String,
    },
    /// Cancels a task.
    Cancel {
        /// Id of the task.
        task: String,
    },
}

/// A message of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Id of the message.
    pub id: String,
    /// The only part.
    pub text: Text,
    /// Context, once the agent has named one.
    pub context: Option<String>,
    /// Task, if it waits for input.
    pub task: Option<String>,
}

/// The state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// Not started.
    Submitted,
    /// Started.
    Working,
    /// Ended successfully.
    Completed,
    /// Ended with a failure.
    Failed,
    /// Ended because the agent rejected it.
    Rejected,
    /// Ended because it was canceled.
    Canceled,
    /// Waits for a message from the user.
    InputRequired,
    /// Waits for an authorization by the user.
    AuthRequired,
    /// Any other state.
    Unknown,
}

impl TaskState {
    /// Parses the name of either version: `TASK_STATE_INPUT_REQUIRED`, `input-required`.
    pub(crate) fn named(name: &str) -> Self {
        let name = name.strip_prefix("TASK_STATE_").unwrap_or(name);
        match name.to_ascii_lowercase().replace('_', "-").as_str() {
            "submitted" => Self::Submitted,
            "working" => Self::Working,
            "completed" => Self::Completed,
            "failed" => Self::Failed,
            "rejected" => Self::Rejected,
            "canceled" => Self::Canceled,
            "input-required" => Self::InputRequired,
            "auth-required" => Self::AuthRequired,
            _ => Self::Unknown,
        }
    }

    /// Whether the agent is working on it, or will.
    pub const fn is_going_on(self) -> bool {
        matches!(self, Self::Submitted | Self::Working | Self::Unknown)
    }

    /// Whether it ended as failed or rejected.
    pub const fn has_failed(self) -> bool {
        matches!(self, Self::Failed | Self::Rejected)
    }
}

impl Ask {
    /// The operation of this message.
    pub const fn operation(&self) -> Operation {
        match self {
            Self::Card => Operation::AgentCard,
            Self::Send { stream: true, .. } => Operation::SendStreamingMessage,
            Self::Send { .. } => Operation::SendMessage,
            Self::Get { .. } => Operation::GetTask,
            Self::Cancel { .. } => Operation::CancelTask,
        }
    }
}

impl Version {
    /// Name of an operation's method.
    const fn method(self, operation: Operation) -> &'static str {
        match (self, operation) {
            (Self::V1_0, operation) => operation.name(),
            (Self::V0_3, Operation::SendMessage) => "message/send",
            (Self::V0_3, Operation::SendStreamingMessage) => "message/stream",
            (Self::V0_3, Operation::GetTask) => "tasks/get",
            (Self::V0_3, _) => "tasks/cancel",
        }
    }
}

impl Call {
    /// Headers of this request only.
    pub(super) fn headers(&self) -> Vec<(String, String)> {
        let mut headers = Vec::new();
        let mut add = |name: &str, value: &str| headers.push((name.to_owned(), value.to_owned()));
        let stream = matches!(self.ask, Ask::Send { stream: true, .. });
        if !matches!(self.ask, Ask::Card) {
            add("content-type", "application/json");
        }
        add("accept", if stream { "text/event-stream" } else { "application/json" });
        if self.version == Version::V1_0 {
            add("a2a-version", "1.0");
        }
        headers
    }

    /// Appends the body.
    pub(super) fn write_body(&self, id: u64, out: &mut Vec<u8>) {
        if matches!(self.ask, Ask::Card) {
            return;
        }
        let method = self.version.method(self.ask.operation());
        Params::message(out, Some(id), method, |params| match &self.ask {
            Ask::Send { message, stream, wait } => {
                params.object("message", |members| self.write_message(message, members));
                self.write_configuration(*wait || *stream, params);
            }
            Ask::Get { task } | Ask::Cancel { task } => params.text("id", task),
            Ask::Card => {}
        });
    }

    fn write_message(&self, message: &Message, members: &mut Params<'_>) {
        let old = self.version == Version::V0_3;
        if old {
            members.text("kind", "message");
        }
        members.text("messageId", &message.id);
        members.text("role", if old { "user" } else { "ROLE_USER" });
        members.one("parts", |part| {
            if old {
                part.text("kind", "text");
            }
            part.pieces("text", message.text.pieces());
        });
        members.optional("contextId", message.context.as_deref());
        members.optional("taskId", message.task.as_deref());
    }

    /// Waiting is the default in 1.0; 0.3 has no default.
    fn write_configuration(&self, wait: bool, params: &mut Params<'_>) {
        match self.version {
            Version::V0_3 => params.object("configuration", |members| {
                members.json("blocking", if wait { "true" } else { "false" });
            }),
            Version::V1_0 if !wait => params.object("configuration", |members| {
                members.json("returnImmediately", "true");
            }),
            Version::V1_0 => {}
        }
    }
}
