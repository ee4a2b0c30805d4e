//! `POST /a2a`: A2A's JSON-RPC, forwarded to an agent, whose answer is streamed back.

use std::sync::Arc;

use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Response, Uri};
use plimsoll_gateway_inspect::Source;

use super::AgentPath;
use super::agents::find;
use super::api_request::ApiRequest;
use super::rpc::{self, RpcError};
use crate::exchange::document;
use crate::exchange::forward::{self, UpstreamResponse};
use crate::exchange::request_context::RequestContext;
use crate::exchange::respond::{finish, respond_error};
use crate::exchange::response_body::ResponseBody;
use crate::http::content::ask_for_readable;
use crate::http::error_response::ErrorResponse;
use crate::http::request_body::RequestBody;
use crate::layers::agent_layer::{Agent, OPERATIONS, PATH_HEADER};
use crate::routes::proxy;

/// Serves a request.
pub(super) async fn serve(mut request: ApiRequest) -> Response<ResponseBody> {
    let format = request.context.config.error_format;
    // Bodies that are not JSON-RPC get a plain HTTP error.
    let body = match request.post().await {
        Ok(body) => body,
        Err(error) => return respond_error(request.context, error, format),
    };
    let ApiRequest { head, mut context, parameter, .. } = request;
    let id = match rpc::read(&body, &head.headers) {
        Ok(id) => id,
        Err(error) => return refuse(context, &error),
    };
    let agent = match find(&context, parameter.as_deref()) {
        Ok(agent) => agent,
        Err(error) => return refuse(context, &RpcError::of(error, id)),
    };
    context.llm_info().model = Some(Arc::clone(&agent.name));
    let sent = match document::check(&mut context, body, Source::Protocol).await {
        Ok(body) => send(&context, &agent, head, None, RequestBody::Full(body)).await,
        Err(error) => Err(error),
    };
    match sent {
        Ok((upstream_response, _)) => {
            context.worker.metrics().count(&OPERATIONS, &["agent_forward", "ok"]);
            proxy::answer(context, upstream_response, &agent.proxy.upstream, format).await
        }
        Err(error) => refuse(context, &RpcError::of(error, id)),
    }
}

/// Forwards a request to an agent, with its agent path. `named` is the path in its body.
///
/// # Errors
/// A loop, a path that is too long, an agent that does not answer.
pub(super) async fn send(
    context: &RequestContext,
    agent: &Agent,
    mut head: Parts,
    named: Option<Vec<String>>,
    body: RequestBody,
) -> Result<(Box<UpstreamResponse>, AgentPath), ErrorResponse> {
    let path = AgentPath::next(&head.headers, named, &agent.name)?;
    head.headers.insert(&PATH_HEADER, path.header()?);
    head.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    head.uri = Uri::clone(&agent.target);
    if context.config.layers.change_answers() {
        ask_for_readable(&mut head.headers);
    }
    let sent = forward::send(context, &agent.proxy, &mut head, body).await?;
    Ok((sent, path))
}

/// Answers with an error of JSON-RPC.
fn refuse(mut context: Box<RequestContext>, error: &RpcError) -> Response<ResponseBody> {
    let metrics = context.worker.metrics();
    metrics.count_error(error.kind);
    metrics.count(&OPERATIONS, &["agent_forward", error.kind]);
    let response = error.response();
    finish(&mut context, &response);
    response
}
