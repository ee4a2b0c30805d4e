//! Tools over REST and MCP: permissions, judging, counting and logging of calls.

mod call;
mod mcp;
mod mcp_http;
mod refresh;
mod rest;
mod trace;

use std::sync::Arc;

use hyper::Response;
use plimsoll_gateway_mcp::{RegisteredTool, read_object};

pub(crate) use call::{CallError, ToolCall, call};
pub(crate) use refresh::refresh;
pub(crate) use trace::of as trace;

use crate::assembly::tool_route::ToolRoute;
use crate::exchange::request_context::{RequestContext, RoutedRequest};
use crate::exchange::respond::respond;
use crate::exchange::response_body::ResponseBody;
use crate::http::error_response::{ErrorFormat, ErrorResponse, no_such};
use crate::layers::tool_server::{ServerLink, ToolLayer, ToolRegistry};

/// Serves a request of a route of the tools.
pub(crate) async fn serve(
    routed: RoutedRequest,
    route: ToolRoute,
    format: ErrorFormat,
) -> Response<ResponseBody> {
    let RoutedRequest { request, mut context, parameter } = routed;
    let config = Arc::clone(&context.config);
    let trace = trace::of(&mut context, request.headers());
    let Some(layer) = &config.layers.tools else {
        return respond(context, Err(ErrorResponse::not_found(no_such("tool"))), format);
    };
    let result = match route {
        ToolRoute::Servers => rest::servers(&context, &request),
        ToolRoute::List => rest::list(&context, layer, &request),
        ToolRoute::Call => rest::call(&mut context, request, &trace).await,
        ToolRoute::Policies => rest::policies(&context, layer, &request, parameter.as_deref()),
        ToolRoute::Mcp => mcp::serve(&mut context, request, true, &trace).await,
        ToolRoute::Message => mcp::serve(&mut context, request, false, &trace).await,
    };
    respond(context, result, format)
}

/// The tools that a tenant may call, by name.
pub(crate) fn allowed<'r>(
    layer: &'r ToolLayer,
    registry: &'r ToolRegistry,
    tenant: Option<&'r str>,
) -> impl Iterator<Item = &'r RegisteredTool<Arc<ServerLink>>> {
    registry
        .tools()
        .filter(move |tool: &&Arc<RegisteredTool<_>>| {
            layer.allow.allows(tenant, &tool.tool.name, tool.provider.name())
        })
        .map(AsRef::as_ref)
}

/// The registry in force.
pub(crate) fn registry(context: &RequestContext) -> Arc<ToolRegistry> {
    context.worker.state.tools.registry()
}

/// Reads the body of a request, an object.
fn read_body<'a, T: serde::Deserialize<'a>>(body: &'a [u8]) -> Result<T, ErrorResponse> {
    let text = str::from_utf8(body).map_err(|_| invalid("it is not UTF-8"))?;
    read_object(text).map_err(|problem| invalid(&problem))
}

fn invalid(problem: &str) -> ErrorResponse {
    ErrorResponse::bad_request(format!("the body: {problem}"))
}
