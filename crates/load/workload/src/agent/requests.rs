//! The requests of an agent besides those to the model.

use std::sync::Arc;

use plimsoll_protocol::rpc::mcp::{Ask, Call};
use plimsoll_protocol::rpc::{self, Request};
use plimsoll_protocol::{HttpContent, RequestContent, ToolCall};
use serde_json::Value;

use super::rules::{AgentRules, ApprovalRules};
use crate::spec::ToolProtocol;
use crate::template::percent_encoded;

/// A request of an agent to a tool or for an approval.
#[derive(Debug)]
pub(crate) enum PartRequest {
    /// To a REST interface.
    Http(HttpContent),
    /// To a tool server.
    Rpc(Box<Request>),
}

impl PartRequest {
    /// The content of the request.
    pub(crate) const fn content(&self) -> RequestContent<'_> {
        match self {
            Self::Http(request) => RequestContent::Http(request),
            Self::Rpc(request) => RequestContent::Rpc(request),
        }
    }

    /// The message, if the request is for a tool server.
    pub(crate) const fn message(&self) -> Option<&Request> {
        match self {
            Self::Http(_) => None,
            Self::Rpc(request) => Some(request),
        }
    }
}

/// The session of a task with a tool server.
#[derive(Clone, Debug, Default)]
pub(super) struct ToolSession {
    /// Whether the session accepts tool calls.
    pub(super) is_open: bool,
    /// The id from the server, if any.
    pub(super) id: Option<Arc<str>>,
    /// The version that the server chose.
    pub(super) version: Option<Arc<str>>,
}

/// A message to the tool server, with `id` as its number.
pub(super) fn message(rules: &AgentRules, session: &ToolSession, ask: Ask, id: u16) -> PartRequest {
    let ToolSession { id: session, version, .. } = session.clone();
    let call = rpc::Call::Mcp(Call { revision: rules.revision, version, session, ask });
    let path = Arc::clone(&rules.tool_path);
    PartRequest::Rpc(Box::new(Request { path, id: id.into(), call }))
}

/// A tool call. `id` numbers the request.
pub(super) fn call(
    rules: &AgentRules,
    session: &ToolSession,
    call: &ToolCall,
    id: u16,
) -> PartRequest {
    match rules.tools {
        ToolProtocol::Rest => {
            let (name, arguments) = (quoted(&call.name), call.arguments_object());
            let body = format!(r#"{{"name":{name},"arguments":{arguments}}}"#);
            post(rules.tool_path.to_string(), body)
        }
        ToolProtocol::Mcp => {
            let ask = Ask::Tool {
                name: call.name.as_str().into(),
                arguments: call.arguments_object().to_owned(),
                progress: false,
            };
            message(rules, session, ask, id)
        }
    }
}

/// Asks for the approval of a call.
pub(super) fn ask(rules: &ApprovalRules, call: &ToolCall) -> PartRequest {
    let (name, arguments) = (quoted(&call.name), call.arguments_object());
    let body =
        format!(r#"{{"action":"tool_call","details":{{"name":{name},"arguments":{arguments}}}}}"#);
    post(rules.path.clone(), body)
}

/// Approves or rejects a call.
pub(super) fn decide(rules: &ApprovalRules, id: &str, approves: bool) -> PartRequest {
    let word = if approves { "approve" } else { "reject" };
    post(format!("{}/{}/{word}", rules.path, percent_encoded(id)), "{}".to_owned())
}

fn post(path: String, body: String) -> PartRequest {
    let headers = ["content-type", "accept"]
        .map(|name: &str| (name.to_owned(), "application/json".to_owned()))
        .to_vec();
    let method = "POST".to_owned();
    PartRequest::Http(HttpContent { method, path, headers, body: body.into_bytes() })
}

/// A text as JSON.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
