//! Operations of tool servers and agents, and the content of their responses beyond success or
//! failure.

use crate::named_enum;
use serde::{Deserialize, Serialize};

named_enum! {
    /// The operation of an MCP or A2A request, by which results are grouped. The name is the method
    /// in the protocol's newest version, if it has one.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum Operation {
        /// MCP: opens a session.
        Initialize => "initialize",
        /// MCP: confirms that the session is open. A notification.
        Initialized => "notifications/initialized",
        /// MCP without sessions: queries versions and capabilities of the server.
        Discover => "server/discover",
        /// MCP: checks that the server is reachable.
        Ping => "ping",
        /// MCP: fetches a page of tools.
        ListTools => "tools/list",
        /// MCP: calls a tool.
        CallTool => "tools/call",
        /// MCP: fetches a page of resources.
        ListResources => "resources/list",
        /// MCP: fetches a page of resource templates.
        ListResourceTemplates => "resources/templates/list",
        /// MCP: reads a resource.
        ReadResource => "resources/read",
        /// MCP: fetches a page of prompts.
        ListPrompts => "prompts/list",
        /// MCP: fetches a prompt with its arguments filled in.
        GetPrompt => "prompts/get",
        /// MCP: cancels a request. A notification.
        Cancelled => "notifications/cancelled",
        /// MCP: ends a session, with HTTP `DELETE`.
        EndSession => "session-end",
        /// A2A: fetches the agent's card, with HTTP `GET`.
        AgentCard => "agent-card",
        /// A2A: sends a message that is answered at once.
        SendMessage => "SendMessage",
        /// A2A: sends a message that is answered by a stream.
        SendStreamingMessage => "SendStreamingMessage",
        /// A2A: fetches the state of a task.
        GetTask => "GetTask",
        /// A2A: cancels a task.
        CancelTask => "CancelTask",
    }
}

impl Operation {
    /// The operation with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| operation.name() == name)
    }
}

/// Content of a tool server's or an agent's response beyond success or failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RpcReport {
    /// Code of the JSON-RPC error, if the response is one.
    pub code: Option<i32>,
    /// Whether the call succeeded but the tool reports an error (`isError`), or the agent's task
    /// ended as failed or rejected.
    pub tool_error: bool,
    /// Notifications of the server before its response: progress, or updates of a task.
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
