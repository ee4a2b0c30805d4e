//! `/v1/a2a/agents`, and the choice of an agent.

use std::sync::Arc;

use hyper::StatusCode;
use serde_json::{Value, json};

use super::api_request::{ApiRequest, layer};
use crate::exchange::request_context::RequestContext;
use crate::exchange::respond::{HandlerResult, json as json_response};
use crate::http::error_response::{ErrorResponse, no_such};
use crate::layers::agent_layer::Agent;

/// The agent of this name, or the default one, if the tenant may use it.
///
/// # Errors
/// `agent_not_found`, or `agent_denied` if the tenant may not use it.
pub(super) fn find(
    context: &RequestContext,
    name: Option<&str>,
) -> Result<Arc<Agent>, ErrorResponse> {
    let layer = layer(context)?;
    let directory = &layer.directory;
    let name = name.or(directory.default.as_deref()).ok_or_else(no_such_agent)?;
    let agent = directory.known.get(name).cloned().ok_or_else(no_such_agent)?;
    if directory.allows(context.identity.tenant.as_deref(), name) {
        Ok(agent)
    } else {
        Err(ErrorResponse::agent_denied("this tenant may not use this agent"))
    }
}

/// `GET /v1/a2a/agents`.
pub(super) fn list(request: &ApiRequest) -> HandlerResult {
    request.expect_get()?;
    let (context, layer) = (&request.context, request.layer()?);
    let tenant = context.identity.tenant.as_deref();
    let agents: Vec<Value> = layer
        .directory
        .allowed(tenant)
        .map(|agent| json!({"name": *agent.name, "url": agent.url}))
        .collect();
    Ok(json_response(StatusCode::OK, json!({"agents": agents}).to_string()))
}

fn no_such_agent() -> ErrorResponse {
    ErrorResponse::agent_not_found(no_such("agent"))
}
