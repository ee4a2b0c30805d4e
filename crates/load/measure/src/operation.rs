//! What a request of a tool server or an agent asks for, and what its answer says beside success or
//! failure.

use crate::named_enum;
use serde::{Deserialize, Serialize};

named_enum! {
    /// The operation of an MCP or A2A request. Results are grouped by it. The name is the method of
    /// the protocol's newest version, where it has one.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum Operation {
        /// MCP: opens a session.
        Initialize => "initialize",
        /// MCP: tells the server that the session is in use. A notification.
        Initialized => "notifications/initialized",
        /// MCP without sessions: versions and capabilities of the server.
        Discover => "server/discover",
        /// MCP: is the server there?
        Ping => "ping",
        /// MCP: a page of tools.
        ListTools => "tools/list",
        /// MCP: a call of a tool.
        CallTool => "tools/call",
        /// MCP: a page of resources.
        ListResources => "resources/list",
        /// MCP: a page of templates of resources.
        ListResourceTemplates => "resources/templates/list",
        /// MCP: the content of a resource.
        ReadResource => "resources/read",
        /// MCP: a page of prompts.
        ListPrompts => "prompts/list",
        /// MCP: a prompt, filled in.
        GetPrompt => "prompts/get",
        /// MCP: a request is no longer wanted. A notification.
        Cancelled => "notifications/cancelled",
        /// MCP: ends a session, by HTTP's `DELETE`.
        EndSession => "session-end",
        /// A2A: what the agent says of itself, by HTTP's `GET`.
        AgentCard => "agent-card",
        /// A2A: a message that is answered at once.
        SendMessage => "SendMessage",
        /// A2A: a message that is answered by a stream.
        SendStreamingMessage => "SendStreamingMessage",
        /// A2A: the state of a task.
        GetTask => "GetTask",
        /// A2A: a task is no longer wanted.
        CancelTask => "CancelTask",
    }
}

impl Operation {
    /// The operation with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| operation.name() == name)
    }
}

/// What the answer of a tool server or an agent says beside success or failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RpcReport {
    /// The code of the JSON-RPC error, if the answer is one.
    pub code: Option<i32>,
    /// Whether the call came through, and the tool says that it failed (`isError`), or the agent's
    /// task ended as failed or rejected.
    pub tool_error: bool,
    /// Messages of the server before its answer: notifications of progress, updates of a task.
    pub notifications: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_that_of_one_operation() {
        for operation in Operation::ALL {
            assert_eq!(Operation::named(operation.name()), Some(operation));
        }
        assert_eq!(Operation::named("tools/cancel"), None);
    }
}
