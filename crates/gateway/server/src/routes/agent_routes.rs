//! The agent layer: sessions, approvals by people, agents behind the gateway, and the gateway's own
//! agent.
//!
//! Sessions, approvals and runs belong to their creator ([`Identity::owner`]): for all others they
//! do not exist.
//!
//! [`Identity::owner`]: crate::layers::identity::Identity::owner

mod a2a;
mod agent_path;
mod agents;
mod api_request;
mod approvals;
mod card;
mod chat;
mod rpc;
mod runs;
mod send;
mod sessions;

use hyper::Response;
use plimsoll_gateway_store::Verdict;

use self::api_request::ApiRequest;
use crate::assembly::agent_route::AgentRoute;
use crate::exchange::request_context::{RequestContext, RoutedRequest};
use crate::exchange::respond::respond;
use crate::exchange::response_body::ResponseBody;
use crate::http::error_response::ErrorResponse;
use crate::layers::agent_layer::OPERATIONS;

/// Serves a request.
pub(crate) async fn serve(routed: RoutedRequest, route: AgentRoute) -> Response<ResponseBody> {
    let format = routed.context.config.error_format;
    let mut request = ApiRequest::new(routed);
    let result = match route {
        AgentRoute::A2a => return Box::pin(a2a::serve(request)).await,
        AgentRoute::Runs => return Box::pin(runs::start(request)).await,
        AgentRoute::Sessions => sessions::create(&mut request).await,
        AgentRoute::Session => sessions::one(&request).await,
        AgentRoute::Approvals => approvals::create(&mut request).await,
        AgentRoute::Pending => approvals::pending(&request).await,
        AgentRoute::Approval => approvals::one(&request).await,
        AgentRoute::Approve => approvals::decide(&mut request, Verdict::Approve).await,
        AgentRoute::Reject => approvals::decide(&mut request, Verdict::Reject).await,
        AgentRoute::Expire => approvals::decide(&mut request, Verdict::Expire).await,
        AgentRoute::Agents => agents::list(&request),
        AgentRoute::Send => Box::pin(send::serve(&mut request)).await,
        AgentRoute::Card => Box::pin(card::serve(&request)).await,
        AgentRoute::Chat => Box::pin(chat::serve(&mut request)).await,
        AgentRoute::Run => runs::show(&request).await,
    };
    respond(request.context, result, format)
}

/// Counts an operation with its outcome.
fn counted<T>(
    context: &RequestContext,
    operation: &'static str,
    result: Result<T, ErrorResponse>,
) -> Result<T, ErrorResponse> {
    let outcome = result.as_ref().map_or_else(|error| error.kind, |_| "ok");
    context.worker.metrics().count(&OPERATIONS, &[operation, outcome]);
    result
}
