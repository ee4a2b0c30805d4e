//! `/v1/a2a/agents`, and the choice of an agent.

use std::sync::Arc;

use hyper::{Method, Request, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use super::api_request::{ApiRequest, layer, object};
use super::counted;
use crate::config::spec::AgentSpec;
use crate::http::error_response::ErrorResponse;
use crate::http::respond::{HandlerResult, json as json_response};
use crate::layers::agent_layer::Agent;
use crate::request_context::RequestContext;

/// The body of `POST /v1/a2a/agents`.
#[derive(Debug, Deserialize)]
struct Wanted {
    name: String,
    url: String,
}

/// The agent of this name, for whoever asks; without a name the default one.
///
/// # Errors
/// `agent_not_found`, and `agent_denied`: it is there, and not for this tenant.
pub(super) fn find(
    context: &RequestContext,
    name: Option<&str>,
) -> Result<Arc<Agent>, ErrorResponse> {
    let layer = layer(context)?;
    let directory = &layer.directory;
    let name = name.or(directory.default.as_deref()).ok_or_else(no_such_agent)?;
    let known = directory.known.get(name).cloned();
    let agent = known.or_else(|| context.worker.state.agents.all().get(name).cloned());
    let agent = agent.ok_or_else(no_such_agent)?;
    if directory.allows(context.identity.tenant.as_deref(), name) {
        Ok(agent)
    } else {
        Err(ErrorResponse::agent_denied("this agent is not for this tenant"))
    }
}

/// `GET` and `POST /v1/a2a/agents`.
pub(super) async fn serve(request: &mut ApiRequest) -> HandlerResult {
    if request.head.method == Method::POST {
        let added = add(request).await;
        return counted(&request.context, "agent_add", added);
    }
    request.expect_get().map_err(|_| ErrorResponse::wrong_methods("GET, HEAD, POST"))?;
    let (context, layer) = (&request.context, request.layer()?);
    let tenant = context.identity.tenant.as_deref();
    let agents: Vec<Value> = layer
        .directory
        .allowed(&context.worker.state.agents, tenant)
        .iter()
        .map(|agent| json!({"name": *agent.name, "url": agent.url}))
        .collect();
    Ok(json_response(StatusCode::OK, json!({"agents": agents}).to_string()))
}

async fn add(request: &mut ApiRequest) -> HandlerResult {
    let admin = Request::from_parts(request.head.clone(), ());
    request.context.config.admin.admit(
        request.context.client.ip(),
        request.context.worker.serves,
        &admin,
    )?;
    let body = request.post().await?;
    let Wanted { name, url } = object(&body)?;
    let agent = Agent::new(&name, &AgentSpec::at(url.clone()), &[]);
    let agent = agent.map_err(ErrorResponse::bad_request)?;
    let layer = request.layer()?;
    request.context.worker.state.agents.add(agent, &layer.directory)?;
    let body = json!({"name": name, "url": url});
    Ok(json_response(StatusCode::CREATED, body.to_string()))
}

fn no_such_agent() -> ErrorResponse {
    ErrorResponse::agent_not_found("there is no such agent")
}
