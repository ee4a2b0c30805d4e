//! The gateway as an MCP server: `/mcp` with and without sessions, `/mcp/message` also without a
//! handshake.

use std::sync::Arc;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use plimsoll_gateway_mcp::mcp_server::{self, Era, Refusal};
use plimsoll_gateway_mcp::rpc::{
    self, CANCELLED, INVALID_REQUEST, METHOD_NOT_FOUND, Message, REFUSED, Request as RpcRequest,
    RpcError,
};
use plimsoll_gateway_store::{NewSession, RecordError, RecordId, Session};
use serde_json::json;

use super::call::{CallError, ToolCall, text};
use super::mcp_http::{self, Head, accept, empty, refuse, with_session};
use super::{allowed, registry};
use crate::base::clock;
use crate::exchange::random_id::random_id;
use crate::exchange::request_context::RequestContext;
use crate::exchange::respond::{HandlerResult, expect_json, expect_plain};
use crate::exchange::response_body::ResponseBody;
use crate::http::error_response::{ErrorResponse, no_such};
use crate::http::request_body;
use crate::layers::tool_server::Trace;

const NO_METHOD: &str = "Method not found";
const NO_SESSION_ID: &str = "the header Mcp-Session-Id is missing";

/// A request and its context.
struct ToolRequest<'a> {
    head: Head<'a>,
    era: Era,
    /// The session that the request belongs to.
    session: Option<&'a str>,
    request: RpcRequest<'a>,
    body: &'a Bytes,
    trace: &'a Trace,
}

/// Serves a request to `/mcp`, or with `needs_session: false` to `/mcp/message`.
pub(super) async fn serve(
    context: &mut RequestContext,
    request: Box<Request<Incoming>>,
    needs_session: bool,
    trace: &Trace,
) -> HandlerResult {
    let (parts, body) = request.into_parts();
    if parts.method == Method::DELETE && needs_session {
        return Ok(end_session(context, &parts).await);
    }
    if parts.method != Method::POST {
        return Err(mcp_http::wrong_method(needs_session));
    }
    let head = match Head::read(&parts, !needs_session) {
        Ok(head) => head,
        Err(refusal) => return Ok(refuse(context, &refusal)),
    };
    expect_json(&parts.headers)?;
    expect_plain(&parts.headers)?;
    let body = request_body::collect(context.body_bounds(), body).await?;
    context.bytes_received = body.len() as u64;
    let admitted = match mcp_server::read(&head.headers, &body) {
        Ok((era, message)) => session_of(context, era, needs_session, &head, &message)
            .await
            .map(|session| (era, session, message)),
        Err(refusal) => Err(refusal),
    };
    match admitted {
        Err(refusal) => Ok(refuse(context, &refusal)),
        Ok((era, session, Message::Request(request))) => {
            let asked = ToolRequest { head, era, session, request, body: &body, trace };
            answer(context, asked).await
        }
        Ok((_, session, Message::Notification { method, params })) => {
            if method == CANCELLED
                && let Some(session) = session
                && let Some(id) = rpc::cancelled_request(params)
            {
                context.worker.state.tools.calls.cancel(session, id);
            }
            Ok(accept())
        }
        Ok((_, _, Message::Response)) => Ok(accept()),
    }
}

/// The session of a message, which must be open and owned by the caller.
async fn session_of<'a>(
    context: &RequestContext,
    era: Era,
    needs_session: bool,
    head: &Head<'a>,
    message: &Message<'_>,
) -> Result<Option<&'a str>, Refusal> {
    let id = match message {
        Message::Request(request) => Some(request.id.to_owned()),
        _ => None,
    };
    let opens = matches!(message, Message::Request(request) if request.method == "initialize");
    let refusal =
        |status, problem: &str| Refusal { id: id.clone(), ..Refusal::new(status, problem) };
    let Era::Sessions(version) = era else { return Ok(None) };
    match head.session {
        None if opens || !needs_session => Ok(None),
        None => Err(refusal(400, NO_SESSION_ID)),
        Some(session) => {
            let found = find_session(context, session).await;
            let found = found.map_err(|error| Refusal { id: id.clone(), ..unusable(error) })?;
            if opens {
                return Err(refusal(400, "the session is initialized already"));
            }
            match version {
                Some(version) if *version.as_bytes() != *found.metadata => {
                    let found = String::from_utf8_lossy(&found.metadata);
                    Err(refusal(400, &format!("the session has the version {found}")))
                }
                _ => Ok(Some(session)),
            }
        }
    }
}

/// The session with this id, which must be open and owned by the caller. Its metadata is the
/// version.
async fn find_session(context: &RequestContext, id: &str) -> Result<Session, RecordError> {
    let id = RecordId::parse(id).ok_or(RecordError::NotFound)?;
    context.worker.store.session(clock::now(), &context.identity.owner(), id).await
}

/// The refusal of a request with an unusable session.
fn unusable(error: RecordError) -> Refusal {
    match error {
        RecordError::NotFound => {
            Refusal::new(404, "unknown session: it ended, expired, or never existed")
        }
        error => Refusal::new(503, &error.to_string()),
    }
}

/// `DELETE`: ends a session.
async fn end_session(context: &RequestContext, parts: &Parts) -> Response<ResponseBody> {
    match try_end_session(context, parts).await {
        Ok(()) => empty(StatusCode::NO_CONTENT),
        Err(refusal) => refuse(context, &refusal),
    }
}

async fn try_end_session(context: &RequestContext, parts: &Parts) -> Result<(), Refusal> {
    let head = Head::read(parts, false)?;
    let era = Era::from_version(head.headers.version);
    if era.map_err(|error| Refusal { status: 400, id: None, error })? == Era::Stateless {
        return Err(Refusal::new(405, "this version has no sessions"));
    }
    let session = head.session.ok_or_else(|| Refusal::new(400, NO_SESSION_ID))?;
    let id = RecordId::parse(session).ok_or_else(|| unusable(RecordError::NotFound))?;
    let (owner, store) = (context.identity.owner(), &context.worker.store);
    store.end_session(clock::now(), &owner, id).await.map_err(unusable)
}

/// Answers a request.
async fn answer(context: &mut RequestContext, asked: ToolRequest<'_>) -> HandlerResult {
    let ToolRequest { head, era, ref request, .. } = asked;
    if request.method == "initialize" && era != Era::Stateless {
        return initialize(context, &asked).await;
    }
    let result = match request.method.as_str() {
        "ping" if era != Era::Stateless => Ok("{}".to_owned()),
        "server/discover" if era == Era::Stateless => {
            Ok(mcp_server::discovered(&context.config.spec.name))
        }
        "tools/list" => list(context, request),
        "tools/call" => call(context, &asked).await?,
        _ => Err(RpcError::new(METHOD_NOT_FOUND, NO_METHOD)),
    };
    let (status, message) = match result {
        Ok(result) => {
            let result = era.complete(&request.method, result);
            (200, rpc::success(request.id, &result))
        }
        Err(error) => (era.status_of(error.code), rpc::failure(Some(request.id), &error)),
    };
    head.answer(context, status, message)
}

/// Opens a session.
async fn initialize(context: &RequestContext, asked: &ToolRequest<'_>) -> HandlerResult {
    let ToolRequest { head, request, .. } = asked;
    let version = match mcp_server::negotiate(request.params) {
        Ok(version) => version,
        Err(error) => {
            let message = rpc::failure(Some(request.id), &error);
            return head.answer(context, 200, message);
        }
    };
    let Some(layer) = &context.config.layers.tools else {
        return Err(ErrorResponse::not_found(no_such("tool")));
    };
    let (id, owner) = (random_id()?, context.identity.owner());
    let ttl = layer.session_timeout.0;
    let most = context.identity.share_of(layer.sessions.sessions);
    let new = NewSession { id, owner: &owner, most, ttl, metadata: version.as_bytes() };
    let opened = context.worker.store.create_session(clock::moment(), &layer.sessions, &new).await;
    if let Err(error) = opened {
        let error = RpcError::new(INVALID_REQUEST, error.to_string());
        let id = Some(request.id.to_owned());
        return Ok(refuse(context, &Refusal { status: 503, id, error }));
    }
    let result = mcp_server::initialized(version, &context.config.spec.name);
    let message = rpc::success(request.id, &result);
    let response = head.answer(context, 200, message)?;
    Ok(with_session(response, &id.to_string()))
}

fn list(context: &RequestContext, request: &RpcRequest<'_>) -> Result<String, RpcError> {
    let Some(layer) = &context.config.layers.tools else {
        return Err(RpcError::new(METHOD_NOT_FOUND, NO_METHOD));
    };
    let registry = registry(context);
    let tools = allowed(layer, &registry, context.identity.tenant.as_deref());
    mcp_server::list(tools.map(|tool| &tool.tool), request.params)
}

/// Calls a tool.
///
/// # Errors
/// The memory budget is exhausted; all other errors are JSON-RPC answers.
async fn call(
    context: &mut RequestContext,
    asked: &ToolRequest<'_>,
) -> Result<Result<String, RpcError>, ErrorResponse> {
    let (name, arguments) = match mcp_server::read_call(asked.request.params) {
        Ok(call) => call,
        Err(error) => return Ok(Err(error)),
    };
    let arguments = match arguments {
        "{}" => Bytes::from_static(b"{}"),
        arguments => asked.body.slice_ref(arguments.as_bytes()),
    };
    let state = Arc::clone(&context.worker.state);
    let running = asked
        .session
        .map(|session| state.tools.calls.begin(session, rpc::spelled(asked.request.id)));
    let (session, running) = (asked.session, running.as_ref());
    let call = ToolCall { name: &name, arguments, session, trace: asked.trace, running };
    match super::call::call(context, call).await {
        Ok(called) => Ok(Ok(text(&called.result).into_owned())),
        Err(CallError::Rpc { error, .. }) => Ok(Err(error)),
        // Clients that should retry later need the HTTP status and its headers.
        Err(CallError::Refused(error)) if error.kind == "overloaded" => Err(error),
        Err(CallError::Refused(error)) => {
            context.worker.metrics().count_error(error.kind);
            let code = if error.kind == "tool_not_found" { rpc::INVALID_PARAMS } else { REFUSED };
            let data = json!({"type": error.kind});
            Ok(Err(RpcError::new(code, error.message).with_data(data)))
        }
    }
}
