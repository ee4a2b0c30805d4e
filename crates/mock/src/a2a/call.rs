//! The call of another agent: an HTTP client, the only one of the mock.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{HeaderMap, Request};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::spawn_local;

use super::spec::CallSpec;
use crate::counter::Counter;
use crate::endpoint::JSON;
use crate::log::CallRecord;
use crate::worker::Worker;

/// The names of the agents that a message came through, with commas between them.
pub(super) const PATH_HEADER: &str = "x-agent-path";

/// Passed on as it came: the trace that the message belongs to.
const TRACE_HEADER: &str = "traceparent";

/// Longer answers are cut off, which is an error.
const MAX_ANSWER: usize = 4 * 1024 * 1024;

/// Counts a call as in flight while it lives.
struct InFlight<'a>(&'a Counter);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.decrement();
    }
}

fn failed(error: &str) -> CallRecord {
    CallRecord { status: 0, error: Some(error.to_owned()) }
}

/// The names in a path.
fn names(path: Option<&str>) -> Vec<&str> {
    let names = path.unwrap_or_default().split(',').map(str::trim);
    names.filter(|name| !name.is_empty()).collect()
}

/// Calls another agent with the text of a message that came with these headers.
pub(super) async fn call(
    worker: &Worker,
    spec: &CallSpec,
    text: &str,
    headers: &HeaderMap,
) -> CallRecord {
    let state = worker.state();
    let path = headers.get(PATH_HEADER).and_then(|path| path.to_str().ok());
    if names(path).len() >= spec.depth as usize {
        return failed("depth");
    }
    if state.agent_calls.increment() >= u64::from(spec.in_flight) {
        state.agent_calls.decrement();
        return failed("busy");
    }
    let _in_flight = InFlight(&state.agent_calls);
    let deadline = state.clock.now().saturating_add(spec.timeout.as_nanos());
    let request = request(spec, text, headers);
    tokio::select! {
        answer = exchange(spec, request) => answer.unwrap_or_else(|| failed("connection")),
        () = worker.wait_until(deadline) => failed("timeout"),
    }
}

fn request(spec: &CallSpec, text: &str, headers: &HeaderMap) -> Option<Request<Full<Bytes>>> {
    let (host, target) = spec.target()?;
    let path = headers.get(PATH_HEADER);
    let body = match &spec.agent {
        Some(agent) => {
            let mut body = json!({"agent": agent, "message": text});
            if let Some(path) = path.and_then(|path| path.to_str().ok()) {
                body["path"] = json!(names(Some(path)));
            }
            body
        }
        None => json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message":
            {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": text}]}}}),
    };
    let mut request = Request::post(target)
        .header(HOST, host)
        .header(CONTENT_TYPE, JSON)
        .body(Full::new(Bytes::from(body.to_string())))
        .ok()?;
    let sent = request.headers_mut();
    if spec.agent.is_none() {
        sent.insert(super::VERSION_HEADER, HeaderValue::from_static("1.0"));
    }
    if let Some(key) = &spec.key {
        sent.insert(AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {key}")).ok()?);
    }
    for name in [PATH_HEADER, TRACE_HEADER] {
        if let Some(value) = headers.get(name) {
            sent.insert(name, value.clone());
        }
    }
    Some(request)
}

/// Sends the request on its own connection; `None` if no whole answer came.
async fn exchange(spec: &CallSpec, request: Option<Request<Full<Bytes>>>) -> Option<CallRecord> {
    let (request, (host, _)) = (request?, spec.target()?);
    let stream = TcpStream::connect(host).await.ok()?;
    // Without it small requests may wait. It fails on closed sockets only.
    let _ = stream.set_nodelay(true);
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
    // It ends with the sender and the body; its errors are those of the exchange.
    spawn_local(async move {
        let _ = connection.await;
    });
    let response = sender.send_request(request).await.ok()?;
    let status = response.status().as_u16();
    let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await.ok()?.to_bytes();
    Some(CallRecord { status, error: error_of(status, &body) })
}

/// The error that an answer names: its type, or its code.
fn error_of(status: u16, body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let error = &body["error"];
    let kind = error["type"].as_str().map(str::to_owned);
    kind.or_else(|| error["code"].as_i64().map(|code| code.to_string()))
        .or_else(|| (status != 200).then(|| status.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_named_by_their_type_or_code_or_else_by_the_status() {
        for (status, body, error) in [
            (200, r#"{"agent":"a","result":{}}"#, None),
            (409, r#"{"error":{"type":"agent_loop","message":"m"}}"#, Some("agent_loop")),
            (200, r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32001}}"#, Some("-32001")),
            (502, "<html>", Some("502")),
            (200, "", None),
        ] {
            assert_eq!(error_of(status, body.as_bytes()).as_deref(), error, "{body}");
        }
    }

    #[test]
    fn names_of_a_path_are_counted() {
        for (path, count) in [(None, 0), (Some(""), 0), (Some("a"), 1), (Some("a, b,,c,"), 3)] {
            assert_eq!(names(path).len(), count, "{path:?}");
        }
    }
}
