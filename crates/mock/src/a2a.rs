//! A2A agents over JSON-RPC.
//!
//! They support the versions 1.0 and 0.3 of the protocol. Sources: the published specification and
//! the official Python SDK, version 1.3: <https://a2a-protocol.org>.

use std::rc::Rc;

use bytes::Bytes;
use hyper::header::{ALLOW, HeaderValue};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method as HttpMethod};

use crate::endpoint::is_json;
use crate::overrides::RequestOverrides;
use crate::responder::Responder;
use crate::response_body::ServiceResult;
use crate::rpc::{self, Message, Refusal, Request, refusal};

mod answer;
mod card;
mod incoming;
mod methods;
mod shape;
mod spec;
mod task;
mod version;

use answer::Answer;
use methods::{A2aRequest, Reply};
use shape::Shape;
pub use spec::{A2aSpec, AgentAnswer, AgentSpec};
pub(crate) use task::Tasks;
use version::Version;

/// Header with the client's protocol version.
const VERSION_HEADER: &str = "a2a-version";

/// Header with the names of the agents that forwarded the message, separated by commas.
const PATH_HEADER: &str = "x-agent-path";

/// The target of a path.
#[derive(Debug, PartialEq, Eq)]
struct Route<'a> {
    /// The agent's name; `None` for the default agent.
    agent: Option<&'a str>,
    is_card: bool,
}

impl<'a> Route<'a> {
    fn at_path(path: &'a str) -> Self {
        let path = path.strip_prefix("/a2a").unwrap_or(path);
        let cards = ["/.well-known/agent-card.json", "/.well-known/agent.json"];
        let of_card = cards.iter().find_map(|card| path.strip_suffix(card));
        let agent = of_card.unwrap_or(path).strip_prefix('/').filter(|name| !name.is_empty());
        Self { agent, is_card: of_card.is_some() }
    }
}

/// Whether a path is an agent card, which needs no key.
pub(crate) fn is_card(path: &str) -> bool {
    Route::at_path(path).is_card
}

/// Serves one request to an agent, or for a card.
pub(crate) async fn serve(
    mut responder: Responder,
    head: &Parts,
    body: &Bytes,
    overrides: &RequestOverrides,
) -> ServiceResult {
    let worker = Rc::clone(&responder.worker);
    let route = Route::at_path(head.uri.path());
    let found = worker.state.config.a2a.agent(route.agent);
    if route.is_card {
        return Ok(card::serve(responder, head, route.agent, found));
    }
    let bytes = body.len() as u64;
    let path = text_header(&head.headers, PATH_HEADER);
    responder.exchange.rpc(|rpc| {
        (rpc.request_bytes, rpc.path) = (bytes, path);
        rpc.agent = found.map(|(name, _)| name).or(route.agent).map(str::to_owned);
    });
    if head.method != HttpMethod::POST {
        responder.headers.insert(ALLOW, HeaderValue::from_static("POST"));
        return Ok(responder.refuse(refusal(405, "Method not allowed")));
    }
    let Some((name, agent)) = found else {
        return Ok(responder.refuse(refusal(404, "Unknown agent")));
    };
    let request = match read_request(&head.headers, body) {
        Ok(request) => request,
        Err(refusal) => return Ok(responder.refuse(refusal)),
    };
    let version = Version::of_method(&request.method);
    responder.exchange.rpc(|rpc| {
        (rpc.method, rpc.id) = (Some(request.method.clone()), Some(request.id.to_string()));
        rpc.version = Some(version.name().to_owned());
    });
    let shape = Shape { version, clock: worker.state.clock };
    let header = text_header(&head.headers, VERSION_HEADER);
    let mut reply = match version.method(header.as_deref(), &request.method) {
        Err(error) => Reply::error(error),
        Ok(method) => {
            let params = &request.params;
            let asked = A2aRequest { worker: &worker, name, agent, shape, params, overrides };
            methods::reply(&asked, method, &mut responder)
        }
    };
    reply.fault = overrides.fault.or(|| reply.fault);
    Answer { shape, id: request.id, reply }.send(responder, name).await
}

/// A header as text.
fn text_header(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(name).map(HeaderValue::as_bytes);
    value.map(|value| String::from_utf8_lossy(value).into_owned())
}

/// Checks the type of a body and reads its request. Malformed requests get status 200, like from
/// the official server.
fn read_request(headers: &HeaderMap, body: &Bytes) -> Result<Request, Refusal> {
    if !is_json(headers) {
        return Err(refusal(415, "Content-Type must be application/json"));
    }
    match rpc::parse(body, 200)? {
        Message::Request(request) => Ok(request),
        Message::Notification { .. } => {
            Err(refusal(200, "Invalid request: `id` is missing, and A2A has no notifications"))
        }
        Message::Response => Err(refusal(200, "Invalid request: clients send no answers")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_agents_and_cards() {
        for (path, agent, is_card) in [
            ("/a2a", None, false),
            ("/a2a/", None, false),
            ("/a2a/one", Some("one"), false),
            ("/a2a/one/two", Some("one/two"), false),
            ("/.well-known/agent-card.json", None, true),
            ("/.well-known/agent.json", None, true),
            ("/a2a/.well-known/agent.json", None, true),
            ("/a2a/one/.well-known/agent-card.json", Some("one"), true),
        ] {
            assert_eq!(Route::at_path(path), Route { agent, is_card }, "{path}");
        }
    }
}
