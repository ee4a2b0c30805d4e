//! Tools over REST.

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::{Method, Request, StatusCode};
use plimsoll_gateway_mcp::{RegisteredTool, ServerState};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::call::{CallError, ToolCall};
use super::{allowed, read_body, registry};
use crate::exchange::request_context::RequestContext;
use crate::exchange::respond::{HandlerResult, expect_method, json as json_response, json_body};
use crate::http::error_response::ErrorResponse;
use crate::http::normal_form::decoded;
use crate::layers::agent_layer::MAX_DEPTH;
use crate::layers::tool_server::{Failure, ToolLayer, Trace};

/// Longest id of a session.
const MAX_SESSION: usize = 128;

/// `GET /v1/mcp/servers`.
pub(super) fn servers(context: &RequestContext, request: &Request<Incoming>) -> HandlerResult {
    expect_method(request.method(), &Method::GET)?;
    let registry = registry(context);
    let shown = registry.servers().map(|server| {
        let tools = registry.tools_of(&server.name);
        let mut shown = json!({
            "name": &*server.name, "url": &server.link.url, "tools": tools, "state": "up",
        });
        if let ServerState::Down(reason) = &server.state {
            shown["state"] = Value::from("down");
            shown["reason"] = Value::from(reason.as_str());
        }
        shown
    });
    let body = json!({"servers": shown.collect::<Vec<_>>()});
    Ok(json_response(StatusCode::OK, body.to_string()))
}

/// `GET /v1/mcp/tools`.
pub(super) fn list(
    context: &RequestContext,
    layer: &ToolLayer,
    request: &Request<Incoming>,
) -> HandlerResult {
    expect_method(request.method(), &Method::GET)?;
    let registry = registry(context);
    let tools = allowed(layer, &registry, context.identity.tenant.as_deref()).map(
        |tool: &RegisteredTool<_>| {
            json!({
                "name": &*tool.tool.name,
                "server": tool.provider.name(),
                "description": &tool.tool.description,
                "input_schema": &tool.tool.input_schema,
            })
        },
    );
    let body = json!({"tools": tools.collect::<Vec<_>>()}).to_string();
    Ok(json_response(StatusCode::OK, context.made(body)?))
}

/// The body of `POST /v1/mcp/tools/call`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CallBody<'a> {
    name: String,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
    session_id: Option<String>,
}

/// `POST /v1/mcp/tools/call`.
pub(super) async fn call(
    context: &mut RequestContext,
    request: Box<Request<Incoming>>,
    trace: &Trace,
) -> HandlerResult {
    let (head, body) = request.into_parts();
    let body = json_body(context, &head, body).await?;
    let asked: CallBody<'_> = read_body(&body)?;
    let arguments = match asked.arguments {
        None => Bytes::from_static(b"{}"),
        Some(arguments) if arguments.get().starts_with('{') => {
            body.slice_ref(arguments.get().as_bytes())
        }
        Some(_) => return Err(ErrorResponse::bad_request("`arguments` is not an object")),
    };
    let session = asked.session_id.as_deref();
    if session.is_some_and(|session| session.len() > MAX_SESSION) {
        return Err(ErrorResponse::session_not_found("the session id is too long"));
    }
    let call = ToolCall { name: &asked.name, arguments, session, trace, running: None };
    let called = super::call::call(context, call).await.map_err(|error| match error {
        CallError::Refused(error) => error,
        CallError::Rpc { server, error } => Failure::Rpc(error).to_response(&server),
    })?;
    let mut shown = json!({"name": asked.name, "server": called.server});
    if let Some(session) = session {
        shown["session_id"] = Value::from(session);
        shown["calls_left"] = Value::from(called.calls_left);
    }
    // The result is JSON already.
    let mut answer = shown.to_string().into_bytes();
    answer.pop();
    answer.extend_from_slice(b",\"result\":");
    answer.extend_from_slice(&called.result);
    answer.push(b'}');
    Ok(json_response(StatusCode::OK, context.made(answer)?))
}

/// `GET /v1/policies/{tenant}`: for that tenant, and for administrators.
pub(super) fn policies(
    context: &RequestContext,
    layer: &ToolLayer,
    request: &Request<Incoming>,
    tenant: Option<&str>,
) -> HandlerResult {
    expect_method(request.method(), &Method::GET)?;
    let tenant = decoded(tenant.unwrap_or_default());
    match context.identity.tenant.as_deref() {
        Some(own) if own == tenant => {}
        Some(_) => {
            return Err(ErrorResponse::forbidden("tenant mismatch: this is another tenant's"));
        }
        None => context.config.admin.admit(context.client, context.worker.role, request)?,
    }
    let registry = registry(context);
    let tools = allowed(layer, &registry, Some(&tenant)).map(|tool| &*tool.tool.name);
    let tools: Vec<&str> = tools.collect();
    let mut body = json!({
        "tenant": &*tenant, "tools": tools, "max_tool_calls": layer.sessions.calls,
    });
    if let Some(agents) = &context.config.layers.agents {
        let allowed = agents.directory.allowed(Some(&tenant));
        body["agents"] = allowed.map(|agent| &*agent.name).collect();
        body["max_agent_depth"] = MAX_DEPTH.into();
        body["max_tool_calls"] = agents.sessions.calls.into();
    }
    Ok(json_response(StatusCode::OK, context.made(body.to_string())?))
}
