//! `POST /v1/a2a/send`: a text for an agent. The gateway uses the A2A version that the agent
//! supports.

use std::sync::Arc;

use hyper::header::{HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, StatusCode, Version as HttpVersion};
use plimsoll_gateway_mcp::rpc::METHOD_NOT_FOUND;
use serde::Deserialize;
use serde_json::{Value, json};

use super::a2a;
use super::agents::find;
use super::api_request::{ApiRequest, object};
use super::counted;
use super::rpc::VERSION_NOT_SUPPORTED;
use super::sessions::expect_session;
use crate::exchange::document;
use crate::exchange::random_id::random_id;
use crate::exchange::request_context::RequestContext;
use crate::exchange::respond::{HandlerResult, json as json_response};
use crate::http::error_response::ErrorResponse;
use crate::http::request_body::RequestBody;
use crate::layers::agent_layer::{Agent, PATH_HEADER, VERSION_HEADER, Version};

/// The header of a trace (W3C).
static TRACE_HEADER: HeaderName = HeaderName::from_static("traceparent");

/// The body of the request.
#[derive(Debug, Deserialize)]
struct SendMessage {
    agent: String,
    message: String,
    session_id: Option<String>,
    path: Option<Vec<String>>,
}

/// An answer of an agent.
enum Answer {
    Result(Value),
    /// It does not support this version, or lacks the method.
    OtherVersion(i64),
}

/// Serves a request.
pub(super) async fn serve(request: &mut ApiRequest) -> HandlerResult {
    let sent = send(request).await;
    counted(&request.context, "agent_send", sent)
}

async fn send(request: &mut ApiRequest) -> HandlerResult {
    let body = request.post_judged().await?;
    let wanted: SendMessage = object(&body)?;
    let agent = find(&request.context, Some(&wanted.agent))?;
    request.context.llm_info().model = Some(Arc::clone(&agent.name));
    let context = &request.context;
    expect_session(context, wanted.session_id.as_deref()).await?;
    let mut version = agent.version();
    let mut asked = ask(context, &agent, &request.head, version, &wanted).await?;
    if matches!(asked.0, Answer::OtherVersion(_)) {
        version = version.other();
        asked = ask(context, &agent, &request.head, version, &wanted).await?;
    }
    let (answer, depth) = asked;
    let result = match answer {
        Answer::Result(result) => result,
        Answer::OtherVersion(code) => return Err(refused(code)),
    };
    agent.note_version(version);
    let mut body = json!({"agent": *agent.name, "result": result, "depth": depth});
    if let Some(session) = wanted.session_id {
        body["session_id"] = session.into();
    }
    Ok(json_response(StatusCode::OK, context.made(body.to_string())?))
}

/// Sends to an agent in one version. An unknown method had no effect, so that the other version can
/// be tried.
async fn ask(
    context: &RequestContext,
    agent: &Agent,
    client: &Parts,
    version: Version,
    wanted: &SendMessage,
) -> Result<(Answer, usize), ErrorResponse> {
    let id = random_id()?.to_string();
    let body = message(&id, version, &wanted.message).to_string();
    let head = head(context, client, version);
    let body = RequestBody::Full(context.made(body)?);
    let (response, path) = a2a::send(context, agent, head, wanted.path.clone(), body).await?;
    let (parts, body) = response.collect(context).await?;
    let body = document::scrub_response(context, &parts.headers, body).await?;
    if !parts.status.is_success() {
        let message = format!("the agent answered {}", parts.status);
        return Err(ErrorResponse::agent_error(message));
    }
    Ok((read(&body, &id)?, path.depth()))
}

/// The head of a request that the gateway makes: only the client's tracing and path headers are
/// forwarded.
fn head(context: &RequestContext, client: &Parts, version: Version) -> Parts {
    let mut head = Request::new(()).into_parts().0;
    (head.method, head.version) = (Method::POST, HttpVersion::HTTP_11);
    let id = context.config.request_id();
    for name in [Some(&PATH_HEADER), Some(&TRACE_HEADER), id].into_iter().flatten() {
        if let Some(value) = client.headers.get(name) {
            head.headers.insert(name, value.clone());
        }
    }
    if version == Version::Current {
        head.headers.insert(&VERSION_HEADER, HeaderValue::from_static("1.0"));
    }
    head
}

/// A message with one text. Its id is the id of the request.
fn message(id: &str, version: Version, text: &str) -> Value {
    let (method, message) = match version {
        Version::Current => (
            "SendMessage",
            json!({"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]}),
        ),
        Version::Old => (
            "message/send",
            json!({"kind": "message", "messageId": id, "role": "user",
                "parts": [{"kind": "text", "text": text}]}),
        ),
    };
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"message": message}})
}

/// Reads the answer to the request with this id.
fn read(body: &[u8], id: &str) -> Result<Answer, ErrorResponse> {
    let Ok(Value::Object(mut answer)) = serde_json::from_slice(body) else {
        return Err(wrong("is not JSON-RPC"));
    };
    if answer.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(wrong("is not JSON-RPC 2.0"));
    }
    if let Some(error) = answer.get("error").filter(|error| !error.is_null()) {
        let code = error.get("code").and_then(Value::as_i64);
        return match code.ok_or_else(|| wrong("is an error without a code"))? {
            code @ (METHOD_NOT_FOUND | VERSION_NOT_SUPPORTED) => Ok(Answer::OtherVersion(code)),
            code => Err(refused(code)),
        };
    }
    if answer.get("id").and_then(Value::as_str) != Some(id) {
        return Err(wrong("is for another request"));
    }
    let Some(Value::Object(mut result)) = answer.remove("result") else {
        return Err(wrong("has no result"));
    };
    // In 1.0 the name of the result's only member is its type.
    let inner = ["task", "message"].into_iter().find_map(|name| {
        let is_wrapped = result.len() == 1 && result.get(name).is_some_and(Value::is_object);
        is_wrapped.then(|| result.remove(name)).flatten()
    });
    Ok(Answer::Result(inner.unwrap_or(Value::Object(result))))
}

/// The agent's error. Its text is untrusted and is not repeated.
fn refused(code: i64) -> ErrorResponse {
    ErrorResponse::agent_error(format!("the agent answered with error {code}"))
}

fn wrong(what: &str) -> ErrorResponse {
    ErrorResponse::agent_error(format!("the agent's answer {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(body: &Value) -> Result<Value, String> {
        match read(body.to_string().as_bytes(), "7") {
            Ok(Answer::Result(result)) => Ok(result),
            Ok(Answer::OtherVersion(code)) => Err(format!("other version {code}")),
            Err(error) => Err(error.message),
        }
    }

    #[test]
    fn a_task_or_a_message_is_taken_out_of_its_answer() {
        let task = json!({"id": "t", "status": {"state": "TASK_STATE_COMPLETED"}});
        let old = json!({"kind": "task", "id": "t", "status": {"state": "completed"}});
        for (found, expected) in [
            (json!({"task": task}), &task),
            (json!({"message": task}), &task),
            (old.clone(), &old),
            (json!({"task": task, "x": 1}), &json!({"task": task, "x": 1})),
        ] {
            let body = json!({"jsonrpc": "2.0", "id": "7", "result": found});
            assert_eq!(result(&body).as_ref(), Ok(expected));
        }
    }

    #[test]
    fn wrong_answers_are_errors_of_the_agent() {
        for (body, part) in [
            (json!([]), "not JSON-RPC"),
            (json!({"id": "7", "result": {}}), "not JSON-RPC 2.0"),
            (json!({"jsonrpc": "2.0", "id": "8", "result": {}}), "another request"),
            (json!({"jsonrpc": "2.0", "id": 7, "result": {}}), "another request"),
            (json!({"jsonrpc": "2.0", "result": {}}), "another request"),
            (json!({"jsonrpc": "2.0", "id": "7"}), "no result"),
            (json!({"jsonrpc": "2.0", "id": "7", "result": 5}), "no result"),
            (json!({"jsonrpc": "2.0", "id": "7", "error": {}}), "without a code"),
            (json!({"jsonrpc": "2.0", "id": "7", "error": {"code": -32_001}}), "-32001"),
            (json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32_601}}), "other version"),
            (json!({"jsonrpc": "2.0", "id": "7", "error": {"code": -32_009}}), "other version"),
        ] {
            let found = result(&body).unwrap_err();
            assert!(found.contains(part), "{body}: {found}");
        }
    }
}
