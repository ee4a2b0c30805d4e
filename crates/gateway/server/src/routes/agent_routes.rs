//! The agent layer: sessions, approvals by people, agents behind the gateway, and the gateway's own
//! agent.
//!
//! Sessions, approvals and runs belong to their creator ([`Identity::owner`]): for all others they
//! do not exist.
//!
//! [`Identity::owner`]: crate::layers::identity::Identity::owner

mod a2a;
mod agents;
mod api_request;
mod approvals;
mod card;
mod chat;
mod rpc;
mod runs;
mod send;
mod sessions;

use hyper::header::HeaderValue;
use hyper::{HeaderMap, Response};
use plimsoll_gateway_store::Verdict;

use self::api_request::ApiRequest;
use crate::assembly::agent_route::AgentRoute;
use crate::exchange::request_context::{RequestContext, RoutedRequest};
use crate::exchange::respond::respond;
use crate::exchange::response_body::ResponseBody;
use crate::http::error_response::ErrorResponse;
use crate::layers::agent_layer::{MAX_DEPTH, OPERATIONS, PATH_HEADER, is_name};

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

const NO_AGENTS: &str = "the path names no agents";

/// The agents that received a message, including the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AgentPath(Vec<String>);

impl AgentPath {
    /// The path of a request, including the next agent. `named` is the path in the body; a header
    /// must equal it.
    ///
    /// # Errors
    /// `agent_loop`: the agent already received the message. `agent_depth`: too many agents. An
    /// unreadable path.
    fn next(
        headers: &HeaderMap,
        named: Option<Vec<String>>,
        agent: &str,
    ) -> Result<Self, ErrorResponse> {
        let sent = headers.get(&PATH_HEADER).map(read).transpose()?;
        let mut path = match (sent, named) {
            (Some(sent), Some(named)) if sent != named => {
                let message = "`path` and the header `x-agent-path` differ";
                return Err(ErrorResponse::bad_request(message));
            }
            (Some(path), _) | (None, Some(path)) => path,
            (None, None) => Vec::new(),
        };
        if !path.iter().all(|name| is_name(name)) {
            return Err(ErrorResponse::bad_request(NO_AGENTS));
        }
        if path.iter().any(|name| name == agent) {
            let message = format!("the agent `{agent}` already received this message");
            return Err(ErrorResponse::agent_loop(message));
        }
        if path.len() >= MAX_DEPTH {
            let message = format!("a message goes through at most {MAX_DEPTH} agents");
            return Err(ErrorResponse::agent_depth(message));
        }
        path.push(agent.to_owned());
        Ok(Self(path))
    }

    /// The number of agents in it.
    const fn depth(&self) -> usize {
        self.0.len()
    }

    /// The value of the header for the next agent.
    ///
    /// # Errors
    /// Never: names are valid header values.
    fn header(&self) -> Result<HeaderValue, ErrorResponse> {
        HeaderValue::try_from(self.0.join(",")).map_err(|_| {
            ErrorResponse::internal_error("the agent's name is not a valid header value")
        })
    }
}

fn read(value: &HeaderValue) -> Result<Vec<String>, ErrorResponse> {
    let text = value.to_str();
    let text = text.map_err(|_| ErrorResponse::bad_request(NO_AGENTS))?;
    Ok(text.split(',').map(|name| name.trim().to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(header: Option<&str>, named: Option<&[&str]>) -> Result<String, &'static str> {
        let mut headers = HeaderMap::new();
        if let Some(header) = header {
            headers.insert(&PATH_HEADER, header.parse().unwrap());
        }
        let named = named.map(|named| named.iter().map(|name| (*name).to_owned()).collect());
        let path = AgentPath::next(&headers, named, "z");
        path.map(|path| path.header().unwrap().to_str().unwrap().to_owned())
            .map_err(|error| error.kind)
    }

    #[test]
    fn a_path_grows_by_one_and_ends_at_five() {
        assert_eq!(next(None, None), Ok("z".to_owned()));
        assert_eq!(next(Some("a"), None), Ok("a,z".to_owned()));
        assert_eq!(next(None, Some(&["a", "b"])), Ok("a,b,z".to_owned()));
        assert_eq!(next(None, Some(&[])), Ok("z".to_owned()));
        assert_eq!(next(Some("a, b"), Some(&["a", "b"])), Ok("a,b,z".to_owned()));
        assert_eq!(next(Some("a,b,c,d"), None), Ok("a,b,c,d,z".to_owned()));
        assert_eq!(next(Some("a,b,c,d,e"), None), Err("agent_depth"));
        assert_eq!(next(Some(&"a,".repeat(900).replace(",,", ",")), None), Err("invalid_request"));
    }

    #[test]
    fn a_loop_is_found_wherever_it_closes() {
        for path in ["z", "a,z", "z,a", "a,z,b", "a,b,c,d,z", "z,a,b,c,d,e,f"] {
            assert_eq!(next(Some(path), None), Err("agent_loop"), "{path}");
        }
        for path in ["", ",", "a,,b", "A", "a b", "zz z", "a;b", "\"z\""] {
            assert_eq!(next(Some(path), None), Err("invalid_request"), "{path}");
        }
        assert_eq!(next(Some("a"), Some(&["b"])), Err("invalid_request"), "they differ");
        assert_eq!(next(Some("z"), Some(&[])), Err("invalid_request"), "nobody forgets a header");
    }
}
