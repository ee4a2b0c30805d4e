//! The layer of agents: sessions, approvals by people, agents behind the gateway, and the agent
//! that the gateway itself runs.
//!
//! Sessions, approvals and runs belong to whoever made them ([`Identity::owner`]): all others get
//! the answer for what does not exist.
//!
//! [`Identity::owner`]: crate::layers::Identity::owner

mod a2a;
mod agents;
mod approvals;
mod card;
mod chat;
mod rpc;
mod runs;
mod send;
mod sessions;

use std::sync::Arc;

use bytes::Bytes;
use hyper::body::{Body as _, Incoming};
use hyper::header::HeaderValue;
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Response};
use plimsoll_gateway_inspect::Source;
use plimsoll_gateway_store::{RecordId, Verdict};
use serde::de::DeserializeOwned;
use serde_json::error::Category;

use crate::assembly::AgentRoute;
use crate::exchange::ResponseBody;
use crate::exchange::document;
use crate::exchange::request_context::{RequestContext, RoutedRequest};
use crate::exchange::respond::{expect_json, expect_method, expect_plain, respond};
use crate::http::error_response::{ErrorResponse, no_such};
use crate::http::request_body;
use crate::layers::agent_layer::{AgentLayer, MAX_DEPTH, OPERATIONS, PATH_HEADER, is_name};

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

/// The agents that had a message, the one that gets it next included.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AgentPath(Vec<String>);

impl AgentPath {
    /// The path of a request, with the agent that gets it next. `named` is the path that the body
    /// gives; where there is also a header, both are the same.
    ///
    /// # Errors
    /// `agent_loop`: the agent had the message before. `agent_depth`: too many had it. A path that
    /// cannot be read.
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
            let message = format!("the agent `{agent}` had this message before");
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
    /// None: names are header values.
    fn header(&self) -> Result<HeaderValue, ErrorResponse> {
        HeaderValue::try_from(self.0.join(","))
            .map_err(|_| ErrorResponse::internal_error("an agent's name is no header value"))
    }
}

fn read(value: &HeaderValue) -> Result<Vec<String>, ErrorResponse> {
    let text = value.to_str();
    let text = text.map_err(|_| ErrorResponse::bad_request(NO_AGENTS))?;
    Ok(text.split(',').map(|name| name.trim().to_owned()).collect())
}

/// A request of the layer.
struct ApiRequest {
    head: Parts,
    /// Until it is read.
    body: Option<Incoming>,
    context: Box<RequestContext>,
    /// The last parameter of the path.
    parameter: Option<String>,
}

impl ApiRequest {
    fn new(routed: RoutedRequest) -> Self {
        let RoutedRequest { request, context, parameter } = routed;
        let (head, body) = request.into_parts();
        Self { head, body: Some(body), context, parameter }
    }

    /// Checks that it is a `GET`.
    ///
    /// # Errors
    /// It has another method.
    fn expect_get(&self) -> Result<(), ErrorResponse> {
        expect_method(&self.head.method, &Method::GET)
    }

    /// The body of a `POST`, whole.
    ///
    /// # Errors
    /// Another method; a body that is no JSON by its type, encoded, too large or too slow.
    async fn post(&mut self) -> Result<Bytes, ErrorResponse> {
        expect_method(&self.head.method, &Method::POST)?;
        expect_plain(&self.head.headers)?;
        let Some(body) = self.body.take() else { return Ok(Bytes::new()) };
        if body.is_end_stream() {
            return Ok(Bytes::new());
        }
        expect_json(&self.head.headers)?;
        if self.context.worker.state.memory.is_short() {
            return Err(request_body::no_memory());
        }
        let body = request_body::collect(self.context.body_bounds(), body).await?;
        self.context.bytes_received = body.len() as u64;
        Ok(body)
    }

    /// As [`Self::post`], judged by the policy: what it redacts is gone.
    ///
    /// # Errors
    /// Those of [`Self::post`] and [`document::check`].
    async fn post_judged(&mut self) -> Result<Bytes, ErrorResponse> {
        let body = self.post().await?;
        document::check(&mut self.context, body, Source::Protocol).await
    }

    /// The id in the path.
    fn id(&self) -> Option<RecordId> {
        self.parameter.as_deref().and_then(RecordId::parse)
    }

    /// The layer's settings.
    ///
    /// # Errors
    /// The configuration that is in force now has no such layer.
    fn layer(&self) -> Result<Arc<AgentLayer>, ErrorResponse> {
        layer(&self.context)
    }
}

/// The layer's settings.
///
/// # Errors
/// The configuration that is in force now has no such layer.
fn layer(context: &RequestContext) -> Result<Arc<AgentLayer>, ErrorResponse> {
    context.config.layers.agents.clone().ok_or_else(|| ErrorResponse::not_found(no_such("route")))
}

/// Reads a JSON object; nothing at all is an empty one.
///
/// # Errors
/// It is no object, or not of this form.
fn object<T: DeserializeOwned>(body: &[u8]) -> Result<T, ErrorResponse> {
    let body = if body.trim_ascii().is_empty() { b"{}" } else { body };
    // serde would read an array as an object with its members in order.
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(ErrorResponse::bad_request("the body is not a JSON object"));
    }
    serde_json::from_slice(body).map_err(|error| {
        // The error of a value repeats it.
        let place = format!("line {}, column {}", error.line(), error.column());
        let message = match error.classify() {
            Category::Data => "the body is not what this route takes",
            _ => "the body is not JSON",
        };
        ErrorResponse::bad_request(format!("{message}: {place}"))
    })
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
