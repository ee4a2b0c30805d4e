//! The cards of agents, with the gateway's address in them.

use bytes::Bytes;
use hyper::header::HOST;
use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use hyper::{Method, Request, StatusCode, Uri, Version};
use serde_json::{Map, Value};

use super::agents::find;
use super::api_request::ApiRequest;
use crate::exchange::document;
use crate::exchange::forward;
use crate::exchange::request_context::RequestContext;
use crate::exchange::respond::{HandlerResult, json as json_response};
use crate::http::content::ask_for_readable;
use crate::http::error_response::ErrorResponse;
use crate::http::request_body::RequestBody;
use crate::layers::agent_layer::Agent;

/// The path of cards before A2A 0.3.
const OLD_PATH: &str = "/.well-known/agent.json";

/// The binding that the gateway supports.
const JSON_RPC: &str = "JSONRPC";

/// Serves a request.
pub(super) async fn serve(request: &ApiRequest) -> HandlerResult {
    request.expect_get()?;
    let (context, layer) = (&request.context, request.layer()?);
    let agent = find(context, request.parameter.as_deref())?;
    let mut card = match fetch(context, &agent, agent.card.clone()).await? {
        Some(card) => card,
        None => fetch(context, &agent, Uri::from_static(OLD_PATH)).await?.ok_or_else(no_card)?,
    };
    let base = match &layer.directory.public_url {
        Some(url) => url.clone(),
        None => base_of(&request.head, context.config.spec.tls.is_some())?,
    };
    let path = match &request.parameter {
        Some(name) => format!("{base}/a2a/{name}"),
        None => format!("{base}/a2a"),
    };
    rewrite(&mut card, &path);
    Ok(json_response(StatusCode::OK, context.made(Value::Object(card).to_string())?))
}

fn no_card() -> ErrorResponse {
    ErrorResponse::agent_error("the agent has no card")
}

/// The agent's card; `None` if it has none.
async fn fetch(
    context: &RequestContext,
    agent: &Agent,
    path: Uri,
) -> Result<Option<Map<String, Value>>, ErrorResponse> {
    let mut head = Request::new(()).into_parts().0;
    (head.method, head.version, head.uri) = (Method::GET, Version::HTTP_11, path);
    ask_for_readable(&mut head.headers);
    let body = RequestBody::Full(Bytes::new());
    let response = forward::send(context, &agent.proxy, &mut head, body).await?;
    let (parts, body) = response.collect(context).await?;
    if parts.status == StatusCode::NOT_FOUND {
        return Ok(None);
    }
    let body = document::scrub_response(context, &parts.headers, body).await?;
    match serde_json::from_slice(&body) {
        Ok(Value::Object(card)) if parts.status.is_success() => Ok(Some(card)),
        _ => Err(ErrorResponse::agent_error("the agent's card is not a JSON object")),
    }
}

/// The gateway's address in the client's request.
fn base_of(head: &Parts, tls: bool) -> Result<String, ErrorResponse> {
    let named = head.headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = head.uri.authority().map(Authority::as_str).or(named);
    let host = host.ok_or_else(|| ErrorResponse::bad_request("name the host"))?;
    Ok(format!("{}://{host}", if tls { "https" } else { "http" }))
}

/// Reduces the card to JSON-RPC at the gateway's address. Signatures are removed, because they
/// would not match.
fn rewrite(card: &mut Map<String, Value>, url: &str) {
    card.remove("signatures");
    if let Some(old) = card.get_mut("url") {
        *old = url.into();
        card.insert("preferredTransport".to_owned(), JSON_RPC.into());
    }
    for (name, binding) in
        [("supportedInterfaces", "protocolBinding"), ("additionalInterfaces", "transport")]
    {
        let Some(Value::Array(interfaces)) = card.get_mut(name) else { continue };
        interfaces.retain(|interface| interface[binding] == JSON_RPC);
        for interface in interfaces {
            interface["url"] = url.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_gateways_address_is_left() {
        let mut card = json!({
            "name": "planner",
            "url": "http://internal:9000/rpc",
            "preferredTransport": "GRPC",
            "supportedInterfaces": [
                {"url": "http://internal:9000/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
                {"url": "internal:9001", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
            ],
            "additionalInterfaces": [{"url": "internal:9001", "transport": "GRPC"}],
            "signatures": [{"protected": "x"}],
        });
        rewrite(card.as_object_mut().unwrap(), "https://gateway/a2a");
        assert_eq!(
            card,
            json!({
                "name": "planner",
                "url": "https://gateway/a2a",
                "preferredTransport": "JSONRPC",
                "supportedInterfaces": [
                    {"url": "https://gateway/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
                ],
                "additionalInterfaces": [],
            })
        );
    }
}
