//! The MCP methods: their answers and times.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::{Era, LATEST_WITH_SESSIONS, VERSIONS, WITH_SESSIONS, call};
use crate::fault::Fault;
use crate::log::RpcOutcome;
use crate::model_output::word_text;
use crate::rng::RequestRng;
use crate::rpc::{INVALID_PARAMS, METHOD_NOT_FOUND, Object, Request, RpcError};
use crate::state::MockState;

/// The lists that the configuration does not change.
static LISTS: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("lists.json")).unwrap_or_default());

/// The only resource, a text of words.
const NOTES: &str = "mock://notes";
const NOTES_BYTES: usize = 1_024;
const PLAIN: &str = "text/plain";

/// The only prompt.
const GREETING: &str = "greeting";
const GREETS: &str = "Greets somebody";

/// The old code for an unknown resource; later revisions use the code for invalid parameters.
const RESOURCE_NOT_FOUND: i64 = -32_002;

/// The reply of a method.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) outcome: RpcOutcome,
    pub(super) answer: Result<Value, RpcError>,
    /// Nanoseconds from the complete request to the answer.
    pub(super) latency: u64,
    /// Progress notifications before it.
    pub(super) progress: u32,
    pub(super) fault: Option<Fault>,
}

impl Reply {
    pub(super) fn new(answer: Result<Value, RpcError>) -> Self {
        let outcome = if answer.is_ok() { RpcOutcome::Result } else { RpcOutcome::Error };
        Self { outcome, answer, latency: 0, progress: 0, fault: None }
    }
}

/// The reply to a request of an admitted client.
pub(super) fn reply(state: &MockState, era: Era, request: &Request, rng: RequestRng) -> Reply {
    let params = &request.params;
    let spec = &state.config.mcp;
    let page = |key: &str, entries: Vec<Value>| Reply::new(list(key, entries, params, spec.page));
    let fixed = |key: &str| page(key, LISTS[key].as_array().cloned().unwrap_or_default());
    match request.method.as_str() {
        "ping" if era.has_sessions() => Reply::new(Ok(json!({}))),
        "server/discover" if !era.has_sessions() => Reply::new(Ok(discovered())),
        "tools/list" => page(
            "tools",
            spec.tools.iter().map(|(name, tool)| call::description(name, tool)).collect(),
        ),
        "tools/call" => call::reply(state, request, rng),
        "resources/list" => fixed("resources"),
        "resources/templates/list" => fixed("resourceTemplates"),
        "resources/read" => Reply::new(read(era, params, rng)),
        "prompts/list" => fixed("prompts"),
        "prompts/get" => Reply::new(prompt(params)),
        other => {
            let problem = format!("Method not found: {other}");
            Reply::new(Err(RpcError::new(METHOD_NOT_FOUND, problem)))
        }
    }
}

/// The answer to `initialize`, except for the version.
pub(super) fn initialized(version: &str) -> Value {
    json!({
        "protocolVersion": version,
        "capabilities": capabilities(),
        "serverInfo": server_info(),
    })
}

/// The session version for a client that requests `requested`.
pub(super) fn negotiated(requested: &str) -> &'static str {
    let known = WITH_SESSIONS.iter().find(|known| **known == requested);
    known.copied().unwrap_or(LATEST_WITH_SESSIONS)
}

fn capabilities() -> Value {
    json!({"tools": {}, "resources": {}, "prompts": {}})
}

fn server_info() -> Value {
    json!({"name": "plimsoll-mock", "version": env!("CARGO_PKG_VERSION")})
}

fn discovered() -> Value {
    json!({
        "supportedVersions": VERSIONS,
        "capabilities": capabilities(),
        "_meta": {"io.modelcontextprotocol/serverInfo": server_info()},
    })
}

/// One page of a list. A cursor is the number of the page's first entry.
fn list(key: &str, entries: Vec<Value>, params: &Object, page: u32) -> Result<Value, RpcError> {
    let start = match params.get("cursor") {
        None => 0,
        Some(cursor) => {
            cursor.as_str().and_then(|text| text.parse().ok()).ok_or_else(unknown_cursor)?
        }
    };
    if start > 0 && start >= entries.len() {
        return Err(unknown_cursor());
    }
    let end = start.saturating_add(page as usize);
    let next = (end < entries.len()).then(|| end.to_string());
    let entries: Vec<Value> = entries.into_iter().skip(start).take(page as usize).collect();
    let mut result = json!({});
    result[key] = Value::Array(entries);
    if let Some(next) = next {
        result["nextCursor"] = Value::String(next);
    }
    Ok(result)
}

fn unknown_cursor() -> RpcError {
    RpcError::invalid_params("Unknown cursor")
}

fn read(era: Era, params: &Object, rng: RequestRng) -> Result<Value, RpcError> {
    let uri = text_param(params, "uri")?;
    if uri != NOTES {
        let code = if era.has_sessions() { RESOURCE_NOT_FOUND } else { INVALID_PARAMS };
        return Err(RpcError::new(code, "Resource not found").with_data(json!({"uri": uri})));
    }
    let text = word_text(rng, NOTES_BYTES);
    Ok(json!({"contents": [{"uri": uri, "mimeType": PLAIN, "text": text}]}))
}

fn prompt(params: &Object) -> Result<Value, RpcError> {
    let name = text_param(params, "name")?;
    if name != GREETING {
        return Err(RpcError::invalid_params(format!("Unknown prompt: {name}")));
    }
    let greeted = params.get("arguments").and_then(|given| given.get("name")?.as_str());
    let greeted = greeted.ok_or_else(|| RpcError::invalid_params("Missing argument: name"))?;
    let text = format!("Say hello to {greeted}.");
    let message = json!({"role": "user", "content": {"type": "text", "text": text}});
    Ok(json!({"description": GREETS, "messages": [message]}))
}

/// A required text parameter.
pub(super) fn text_param<'a>(params: &'a Object, key: &str) -> Result<&'a str, RpcError> {
    let text = params.get(key).and_then(Value::as_str);
    text.ok_or_else(|| RpcError::invalid_params(format!("`{key}` must be a string")))
}
