//! A tool call: finds the tool, checks permissions, judges arguments and result, counts and records
//! the call.

use std::borrow::Cow;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use plimsoll_gateway_dialect::is_too_deep;
use plimsoll_gateway_inspect::Source;
use plimsoll_gateway_mcp::client::Call;
use plimsoll_gateway_mcp::rpc::{REQUEST_CANCELLED, RpcError};
use plimsoll_gateway_mcp::{Provider, RegisteredTool, ToolResult};
use plimsoll_gateway_store::RecordId;
use tokio::time::timeout;

use crate::base::clock;
use crate::base::memory::MemoryReservation;
use crate::exchange::document;
use crate::exchange::request_context::RequestContext;
use crate::http::error_response::{ErrorResponse, no_such};
use crate::layers::Reading;
use crate::layers::agent_layer::OPERATIONS;
use crate::layers::tool_server::{CALLS, Failure, RunningCall, ServerLink, Services, Trace};
use crate::routes::store_error::store_error;

/// A call requested by a client.
pub(crate) struct ToolCall<'a> {
    pub(crate) name: &'a str,
    /// An object, as JSON.
    pub(crate) arguments: Bytes,
    /// The id of the session whose calls are counted.
    pub(crate) session: Option<&'a str>,
    /// Headers that identify the request to the server.
    pub(crate) trace: &'a Trace,
    /// Set if the client can cancel it.
    pub(crate) running: Option<&'a RunningCall<'a>>,
}

/// A completed call.
#[derive(Debug)]
pub(crate) struct Called {
    /// The server of the tool.
    pub(crate) server: String,
    /// The result, JSON.
    pub(crate) result: Bytes,
    /// Whether the tool reported a failure.
    pub(crate) is_error: bool,
    /// The remaining calls of the session.
    pub(crate) calls_left: Option<u32>,
}

/// Why a call was refused or has no result.
#[derive(Debug)]
pub(crate) enum CallError {
    /// The gateway refused it, or the server did not answer.
    Refused(ErrorResponse),
    /// The server answered with an error.
    Rpc { server: String, error: RpcError },
}

impl From<ErrorResponse> for CallError {
    fn from(error: ErrorResponse) -> Self {
        Self::Refused(error)
    }
}

impl CallError {
    /// The outcome for rows and metrics.
    const fn outcome(&self) -> &'static str {
        match self {
            Self::Refused(error) => error.kind,
            Self::Rpc { error: RpcError { code: REQUEST_CANCELLED, .. }, .. } => "cancelled",
            Self::Rpc { .. } => "rpc_error",
        }
    }
}

type FoundTool = Arc<RegisteredTool<Arc<ServerLink>>>;

/// Makes a call for the tenant of a request.
///
/// # Errors
/// It was refused, or has no result.
pub(crate) async fn call(
    context: &mut RequestContext,
    call: ToolCall<'_>,
) -> Result<Called, CallError> {
    let tool = match find(context, call.name) {
        Ok(tool) => tool,
        Err(error) => {
            context.llm_info().outcome = Some(error.kind);
            context.worker.metrics().count(&CALLS, &["none", error.kind]);
            return Err(error.into());
        }
    };
    let called = match call.running {
        None => admitted(context, &tool, call).await,
        Some(running) => tokio::select! {
            called = admitted(context, &tool, call) => called,
            () = running.cancelled() => Err(cancelled(&tool)),
        },
    };
    let outcome = match &called {
        Ok(called) if called.is_error => "tool_error",
        Ok(_) => "ok",
        Err(error) => error.outcome(),
    };
    let server = tool.provider.name();
    context.worker.metrics().count(&CALLS, &[server, outcome]);
    let info = context.llm_info();
    info.tool = Some(format!("{server}/{}", tool.tool.name).into());
    info.outcome = Some(outcome);
    called
}

/// The client cancelled a call.
fn cancelled(tool: &FoundTool) -> CallError {
    let error = RpcError::new(REQUEST_CANCELLED, "Request cancelled");
    CallError::Rpc { server: tool.provider.name().to_owned(), error }
}

/// The tool of a name.
fn find(context: &RequestContext, name: &str) -> Result<FoundTool, ErrorResponse> {
    let found = context.worker.state.tools.registry().tool(name).cloned();
    found.ok_or_else(|| ErrorResponse::tool_not_found(no_such("tool")))
}

/// Whether the tenant of a request may call a tool.
fn allow(context: &RequestContext, tool: &FoundTool) -> Result<(), ErrorResponse> {
    let (tenant, server) = (context.identity.tenant.as_deref(), tool.provider.name());
    let layer = context.config.layers.tools.as_ref();
    if layer.is_some_and(|layer| layer.allow.allows(tenant, &tool.tool.name, server)) {
        return Ok(());
    }
    let message = "the tenant may not call this tool: its list in `tools.allow` lacks it";
    Err(ErrorResponse::tool_denied(message))
}

/// Makes a permitted call of a tool.
async fn admitted(
    context: &mut RequestContext,
    tool: &FoundTool,
    call: ToolCall<'_>,
) -> Result<Called, CallError> {
    allow(context, tool)?;
    let server = tool.provider.name();
    if is_too_deep(text(&call.arguments).as_bytes()) {
        let message = "the arguments are nested deeper than 64 levels";
        return Err(ErrorResponse::bad_request(message).into());
    }
    let arguments = document::check(context, call.arguments, Source::Tool).await?;
    let calls_left = match call.session {
        None => None,
        Some(session) => Some(count(context, session).await?),
    };
    let (result, held) = match run(context, tool, &text(&arguments), call.trace).await {
        Ok(result) => result,
        Err(Failure::Rpc(error)) => {
            let error = judged_error(context, error).await?;
            return Err(CallError::Rpc { server: server.to_owned(), error });
        }
        Err(failure) => return Err(failure.to_response(server).into()),
    };
    let is_error = result.is_error;
    let result = match held {
        Some(held) => held.attach(result.json),
        None => Bytes::from(result.json),
    };
    let result = judged_result(context, result).await?;
    Ok(Called { server: server.to_owned(), result, is_error, calls_left })
}

/// Counts a call of a session and returns the remaining number. The section `agents` sets the limit
/// if present.
async fn count(context: &RequestContext, id: &str) -> Result<u32, ErrorResponse> {
    let missing = ErrorResponse::session_not_found;
    let id = RecordId::parse(id).ok_or_else(|| missing("no session has this id"))?;
    let layers = &context.config.layers;
    let agents = layers.agents.as_ref().map(|layer| layer.sessions);
    let rules = agents.or_else(|| layers.tools.as_ref().map(|layer| layer.sessions));
    let rules = rules.ok_or_else(|| ErrorResponse::session_not_found(no_such("session")))?;
    let (owner, store) = (context.identity.owner(), &context.worker.store);
    let calls = store.count_call(clock::now(), &rules, &owner, id).await;
    let calls = calls.map_err(|error| store_error(error, missing));
    if agents.is_some() {
        let outcome = calls.as_ref().map_or_else(|error| error.kind, |_| "ok");
        context.worker.metrics().count(&OPERATIONS, &["session_call", outcome]);
    }
    Ok(rules.calls.saturating_sub(calls?))
}

async fn run(
    context: &RequestContext,
    tool: &FoundTool,
    arguments: &str,
    trace: &Trace,
) -> Result<(ToolResult, Option<MemoryReservation>), Failure> {
    let worker = &context.worker;
    let link = match &tool.provider {
        Provider::Local(local) => return Ok((local.call(arguments, clock::unix_ms()), None)),
        Provider::Server { link, .. } => link,
    };
    worker.fair_queue.step().await;
    let services = Services { pool: &worker.pool, memory: &worker.state.memory };
    let connection = worker.tools.to(link);
    let headers = tool.tool.param_headers(arguments);
    let call = Call { name: &tool.tool.name, arguments, headers: &headers };
    context.note_upstream_asked();
    let calling = pin!(connection.call(services, call, trace));
    let result = timeout(link.timeout, calling).await;
    context.note_upstream_read();
    result.unwrap_or(Err(Failure::TimedOut))
}

/// Applies the policy and scrubbing to a tool's result.
async fn judged_result(
    context: &mut RequestContext,
    document: Bytes,
) -> Result<Bytes, ErrorResponse> {
    let judged = document::check(context, document, Source::Tool).await;
    let document = judged.map_err(|error| match error.status.as_u16() {
        // The server, not the client, sent unreadable content.
        400 | 415 => ErrorResponse::response_unreadable(error.message),
        _ => error,
    })?;
    document::scrub(context, document, Reading::Json, Source::Tool).await
}

/// Applies the policy and scrubbing to a server's error.
async fn judged_error(
    context: &mut RequestContext,
    error: RpcError,
) -> Result<RpcError, ErrorResponse> {
    // The code alone contains no text.
    let texts = serde_json::json!([error.message, error.data]);
    let texts = judged_result(context, Bytes::from(texts.to_string())).await?;
    let (message, data) = serde_json::from_slice(&texts)
        .map_err(|_| ErrorResponse::response_unreadable("the tool server's error"))?;
    Ok(RpcError { code: error.code, message, data })
}

/// JSON as text; parsed JSON is always UTF-8.
pub(super) fn text(json: &[u8]) -> Cow<'_, str> {
    // A complete check is faster than a lossy conversion.
    str::from_utf8(json).map_or_else(|_| String::from_utf8_lossy(json), Cow::Borrowed)
}
