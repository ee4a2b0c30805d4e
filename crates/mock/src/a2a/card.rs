//! The cards of the agents.

use hyper::header::{ALLOW, HOST, HeaderValue};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Response};
use serde_json::{Value, json};

use super::AgentSpec;
use crate::responder::Responder;
use crate::response_body::ResponseBody;
use crate::rpc;

/// Sends an agent's card. `name` is the one in the path.
pub(super) fn serve(
    mut responder: Responder,
    head: &Parts,
    name: Option<&str>,
    agent: Option<(&str, &AgentSpec)>,
) -> Response<ResponseBody> {
    if !matches!(head.method, Method::GET | Method::HEAD) {
        responder.headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return responder.error(405, "Only GET requests are accepted here");
    }
    let Some((known, agent)) = agent else { return responder.error(404, "Unknown agent") };
    let path = name.map_or_else(|| "/a2a".to_owned(), |name| format!("/a2a/{name}"));
    let url = format!("http://{}{path}", host(&head.headers));
    responder.answer(200, rpc::bytes(&card(known, agent, &url)))
}

fn host(headers: &HeaderMap) -> &str {
    headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost")
}

/// The card for both versions: it has the members of 0.3 and of 1.0, like the official server's.
fn card(name: &str, agent: &AgentSpec, url: &str) -> Value {
    let interface = |version: &str| json!({"url": url, "protocolBinding": "JSONRPC", "protocolVersion": version});
    let skill = json!({
        "id": name, "name": name, "description": agent.description, "tags": ["mock"],
    });
    json!({
        "name": name,
        "description": agent.description,
        "version": env!("CARGO_PKG_VERSION"),
        "supportedInterfaces": [interface("1.0"), interface("0.3")],
        "protocolVersion": "0.3.0",
        "url": url,
        "preferredTransport": "JSONRPC",
        "capabilities": {"streaming": true, "pushNotifications": false},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [skill],
    })
}
