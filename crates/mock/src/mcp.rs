//! An MCP server over Streamable HTTP.
//!
//! It supports the versions with sessions since 2025-06-18 and the stateless version 2026-07-28.
//! Sources: the published specification and the official Python SDK, version 2.3:
//! <https://modelcontextprotocol.io/specification>.

mod answer;
mod call;
mod methods;
mod session;
mod spec;

use std::rc::Rc;
use std::sync::Arc;

use answer::Answer;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hyper::header::{ACCEPT, ALLOW, HeaderValue, ORIGIN};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Response};
use methods::Reply;
use serde_json::{Value, json};
pub(crate) use session::Sessions;
pub use spec::{AnswerMode, McpSpec, ToolSpec};

use crate::duration::HumanDuration;
use crate::endpoint::is_json;
use crate::fault::Fault;
use crate::hash::fnv1a;
use crate::log::RpcOutcome;
use crate::overrides::RequestOverrides;
use crate::responder::Responder;
use crate::response_body::{ResponseBody, ServiceResult};
use crate::rpc::{
    self, INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, Message, Object, Refusal, Request,
    RpcError, refusal,
};
use crate::stop::Stop;
use crate::token::{self, Token};

/// The versions, newest first.
const VERSIONS: [&str; 3] = [LATEST_STATELESS, LATEST_WITH_SESSIONS, "2025-06-18"];
const LATEST_STATELESS: &str = "2026-07-28";
const LATEST_WITH_SESSIONS: &str = "2025-11-25";
const WITH_SESSIONS: [&str; 2] = [LATEST_WITH_SESSIONS, "2025-06-18"];

const SESSION_HEADER: &str = "mcp-session-id";

fn refuse(mut responder: Responder, refusal: Refusal) -> Response<ResponseBody> {
    if refusal.status == 405 {
        responder.headers.insert(ALLOW, HeaderValue::from_static("POST, DELETE"));
    }
    responder.refuse(refusal)
}

/// Serves one request to `/mcp`.
pub(crate) async fn serve(
    mut responder: Responder,
    head: &Parts,
    body: &Bytes,
    overrides: &RequestOverrides,
) -> ServiceResult {
    let bytes = body.len() as u64;
    responder.exchange.rpc(|rpc| rpc.request_bytes = bytes);
    let headers = &head.headers;
    if !is_local(headers) {
        return Ok(refuse(responder, refusal(403, "Origin is not allowed")));
    }
    let answered = match head.method {
        Method::POST => answer(&mut responder, headers, body, overrides),
        Method::DELETE => end_session(&mut responder, headers).map(|()| Served::Empty(200)),
        // `GET` would open a stream for server messages, but the mock never sends any.
        _ => Err(refusal(405, "Method not allowed")),
    };
    match answered {
        Ok(Served::Answer(answer)) => answer.send(responder).await,
        Ok(Served::Empty(status)) => Ok(responder.empty(status)),
        Err(refusal) => Ok(refuse(responder, refusal)),
    }
}

/// The answer to a request.
enum Served {
    Answer(Box<Answer>),
    /// A status without a body.
    Empty(u16),
}

/// Whether a page in a browser may send this: only pages from this machine may.
fn is_local(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(ORIGIN) else { return true };
    let host = origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, host)| {
        let end = host.rfind(':').filter(|at| !host[*at..].contains(']'));
        &host[..end.unwrap_or(host.len())]
    });
    matches!(host, Some("localhost" | "127.0.0.1" | "[::1]"))
}

/// `DELETE`: ends a session.
fn end_session(responder: &mut Responder, headers: &HeaderMap) -> Result<(), Refusal> {
    if era_of_empty(headers)? == Era::Stateless {
        return Err(refusal(405, "This version has no sessions"));
    }
    let (session, _) = session_of(responder, headers)?;
    responder.exchange.rpc(|rpc| rpc.outcome = RpcOutcome::SessionEnded);
    let closed = responder.worker.state.sessions.close(session);
    closed.then_some(()).ok_or_else(|| refusal(404, "Session not found"))
}

fn era_of_empty(headers: &HeaderMap) -> Result<Era, Refusal> {
    let version = header(headers, VERSION_HEADER);
    Era::from_request(version.as_deref(), None).map_err(|error| error.with_status(400))
}

/// The session named by a request, and its version.
fn session_of(
    responder: &mut Responder,
    headers: &HeaderMap,
) -> Result<(Token, &'static str), Refusal> {
    let text = header(headers, SESSION_HEADER);
    let text = text.ok_or_else(|| refusal(400, "The Mcp-Session-Id header is missing"))?;
    let sessions = Arc::clone(&responder.worker.state.sessions);
    let found = token::read(&text).and_then(|id| Some((id, sessions.touch(id)?)));
    responder.exchange.rpc(|rpc| rpc.session = Some(text));
    let (id, version) = found.ok_or_else(|| refusal(404, "Session not found"))?;
    responder.exchange.rpc(|rpc| rpc.version = Some(version.to_owned()));
    match header(headers, VERSION_HEADER) {
        Some(other) if other != version => {
            Err(refusal(400, &format!("The session has the version {version}")))
        }
        _ => Ok((id, version)),
    }
}

/// Whether the client accepts JSON, and streams.
fn accepted(headers: &HeaderMap) -> (bool, bool) {
    let accept = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let kinds = accept
        .flat_map(|value| value.split(','))
        .map(|kind| kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
    let kinds: Vec<String> = kinds.collect();
    let has = |wanted: &[&str]| {
        kinds.is_empty() || kinds.iter().any(|kind| wanted.contains(&kind.as_str()))
    };
    (
        has(&["*/*", "application/*", "application/json"]),
        has(&["*/*", "text/*", "text/event-stream"]),
    )
}

/// Reads a message and plans its answer, if it needs one.
fn answer(
    responder: &mut Responder,
    headers: &HeaderMap,
    body: &Bytes,
    overrides: &RequestOverrides,
) -> Result<Served, Refusal> {
    let request = match read_message(headers, body)? {
        Message::Request(request) => request,
        other => return accept(responder, headers, &other).map(|()| Served::Empty(202)),
    };
    describe(responder, &request);
    match plan(responder, headers, &request, overrides) {
        Ok((era, reply, stop)) => {
            let streams = accepted(headers);
            Ok(Served::Answer(Box::new(Answer { era, streams, request, reply, stop })))
        }
        Err(refusal) => Err(Refusal { id: request.id, ..refusal }),
    }
}

fn plan(
    responder: &mut Responder,
    headers: &HeaderMap,
    request: &Request,
    overrides: &RequestOverrides,
) -> Result<(Era, Reply, Option<Stop>), Refusal> {
    let worker = Rc::clone(&responder.worker);
    let state = &worker.state;
    let (era, session) = admit(responder, headers, request)?;
    let mut reply = if request.method == "initialize" && era.has_sessions() {
        Reply::new(Ok(initialize(responder, &request.params)?))
    } else {
        responder.exchange.draw_by(|| content_of(request));
        methods::reply(state, era, request, responder.exchange.rng)
    };
    if let Ok(result) = &mut reply.answer {
        era.complete(&request.method, result);
    }
    reply.fault = overrides.fault.or(|| reply.fault);
    reply.latency = overrides.ttft.map_or(reply.latency, HumanDuration::as_nanos);
    // Only a request that takes time can be cancelled.
    let takes_time = reply.latency > 0 || matches!(reply.fault, Some(Fault::Stall { .. }));
    let stop = session.filter(|_| takes_time).map(|session| {
        let stop = state.sessions.begin_call(session, &request.id);
        stop.ok_or_else(|| refusal(400, "A request with this id is in flight"))
    });
    Ok((era, reply, stop.transpose()?))
}

/// The content that two requests must share to draw equal numbers, with `draw: prompt`.
fn content_of(request: &Request) -> u64 {
    let arguments = request.params.get("arguments").map(Value::to_string).unwrap_or_default();
    fnv1a(format!("{} {arguments}", request.method).as_bytes())
}

/// Checks the headers of a `POST` and reads its message.
fn read_message(headers: &HeaderMap, body: &Bytes) -> Result<Message, Refusal> {
    let (json, streams) = accepted(headers);
    if !json && !streams {
        let problem = "The client must accept application/json and text/event-stream";
        return Err(refusal(406, problem));
    }
    if !is_json(headers) {
        return Err(refusal(415, "Content-Type must be application/json"));
    }
    rpc::parse(body, 400)
}

/// Accepts a notification.
fn accept(
    responder: &mut Responder,
    headers: &HeaderMap,
    message: &Message,
) -> Result<(), Refusal> {
    let era = era_of_empty(headers)?;
    if let Message::Notification { method, .. } = message {
        responder.exchange.rpc(|rpc| rpc.method = Some(method.clone()));
    }
    if era == Era::Stateless {
        responder.exchange.rpc(|rpc| rpc.version = Some(LATEST_STATELESS.to_owned()));
        if *message == Message::Response {
            return Err(refusal(400, "Clients must not send responses in this version"));
        }
    } else {
        let (session, _) = session_of(responder, headers)?;
        if let Message::Notification { method, params } = message
            && method == "notifications/cancelled"
            && let Some(id) = params.get("requestId")
        {
            responder.worker.state.sessions.cancel(session, id);
        }
    }
    responder.exchange.rpc(|rpc| rpc.outcome = RpcOutcome::Accepted);
    Ok(())
}

fn describe(responder: &mut Responder, request: &Request) {
    responder.exchange.rpc(|rpc| {
        rpc.method = Some(request.method.clone());
        rpc.id = Some(request.id.to_string());
        let name = request.params.get("name").or_else(|| request.params.get("uri"));
        rpc.name = name.and_then(Value::as_str).map(str::to_owned);
    });
}

/// Determines the era and session of a request.
fn admit(
    responder: &mut Responder,
    headers: &HeaderMap,
    request: &Request,
) -> Result<(Era, Option<Token>), Refusal> {
    let version = header(headers, VERSION_HEADER);
    let era = Era::from_request(version.as_deref(), Some(&request.params))
        .map_err(|error| error.with_status(400))?;
    if era == Era::Stateless {
        responder.exchange.rpc(|rpc| rpc.version = Some(LATEST_STATELESS.to_owned()));
        check_stateless(headers, &request.method, &request.params)
            .map_err(|error| error.with_status(400))?;
        return Ok((era, None));
    }
    if request.method == "initialize" && !headers.contains_key(SESSION_HEADER) {
        return Ok((era, None));
    }
    let (session, _) = session_of(responder, headers)?;
    if request.method == "initialize" {
        return Err(refusal(400, "The session is initialized"));
    }
    Ok((era, Some(session)))
}

/// Opens a session.
fn initialize(responder: &mut Responder, params: &Object) -> Result<Value, Refusal> {
    let requested =
        methods::text_param(params, "protocolVersion").map_err(|error| error.with_status(200))?;
    for key in ["capabilities", "clientInfo"] {
        if !params.get(key).is_some_and(Value::is_object) {
            let error = RpcError::invalid_params(format!("`{key}` must be an object"));
            return Err(error.with_status(200));
        }
    }
    let version = methods::negotiated(requested);
    let session = responder.worker.state.sessions.open(version);
    let problem = "Too many open sessions";
    let session = session.ok_or_else(|| RpcError::new(INTERNAL_ERROR, problem).with_status(503))?;
    let text = token::text(session);
    if let Ok(value) = HeaderValue::from_str(&text) {
        responder.headers.insert(SESSION_HEADER, value);
    }
    responder.exchange.rpc(|rpc| {
        (rpc.session, rpc.version) = (Some(text), Some(version.to_owned()));
    });
    Ok(methods::initialized(version))
}

/// Headers and body disagree.
const HEADER_MISMATCH: i64 = -32_020;
/// The server does not support the version.
const UNSUPPORTED_VERSION: i64 = -32_022;

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";

const VERSION_HEADER: &str = "mcp-protocol-version";
const METHOD_HEADER: &str = "mcp-method";
const NAME_HEADER: &str = "mcp-name";

/// The era of a request.
///
/// MCP has two eras: versions with sessions, and versions with self-contained requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Era {
    /// Up to 2025-11-25. Without a header the session defines the version.
    Sessions(Option<&'static str>),
    /// From 2026-07-28 on.
    Stateless,
}

impl Era {
    /// The era of a request with this version header (or none), whose parameters are known for
    /// `POST` only.
    ///
    /// # Errors
    /// The mock does not support the version, or requires it in the header, too.
    fn from_request(version: Option<&str>, params: Option<&Object>) -> Result<Self, RpcError> {
        match version {
            Some(LATEST_STATELESS) => Ok(Self::Stateless),
            Some(version) => match WITH_SESSIONS.iter().find(|known| **known == version) {
                Some(known) => Ok(Self::Sessions(Some(known))),
                None => Err(unsupported(version)),
            },
            None if params.and_then(|params| params.get("_meta")?.get(VERSION_KEY)).is_some() => {
                Err(mismatch("the MCP-Protocol-Version header is missing"))
            }
            None => Ok(Self::Sessions(None)),
        }
    }

    const fn has_sessions(self) -> bool {
        matches!(self, Self::Sessions(_))
    }

    /// The HTTP status of an answer with this error.
    const fn status_of(self, code: i64) -> u16 {
        match (self, code) {
            (Self::Stateless, METHOD_NOT_FOUND) => 404,
            (Self::Stateless, INVALID_PARAMS) => 400,
            _ => 200,
        }
    }

    /// Adds the additional members of results in this era.
    fn complete(self, method: &str, result: &mut Value) {
        if self.has_sessions() {
            return;
        }
        result["resultType"] = json!("complete");
        let cacheable = method.ends_with("/list") || method == "resources/read";
        if cacheable || method == "server/discover" {
            result["ttlMs"] = json!(0);
            result["cacheScope"] = json!("public");
        }
    }
}

/// Checks that a stateless request is self-contained, in the order of the official servers: the
/// required keys, the headers, the version.
///
/// # Errors
/// A part is missing or contradicts another.
fn check_stateless(headers: &HeaderMap, method: &str, params: &Object) -> Result<(), RpcError> {
    let meta = params.get("_meta").and_then(Value::as_object);
    let meta = meta.ok_or_else(|| RpcError::invalid_params("`params._meta` must be an object"))?;
    for key in [VERSION_KEY, CAPABILITIES_KEY] {
        if !meta.contains_key(key) {
            return Err(RpcError::invalid_params(format!("`params._meta` has no {key}")));
        }
    }
    if meta[VERSION_KEY].as_str() != header(headers, VERSION_HEADER).as_deref() {
        return Err(mismatch("MCP-Protocol-Version does not match the version in _meta"));
    }
    if header(headers, METHOD_HEADER).as_deref() != Some(method) {
        return Err(mismatch("Mcp-Method does not match the method"));
    }
    let key = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        _ => return Ok(()),
    };
    let named = params.get(key).and_then(Value::as_str);
    if named.is_some() && decoded(header(headers, NAME_HEADER)).as_deref() != named {
        return Err(mismatch(&format!("Mcp-Name does not match `{key}`")));
    }
    Ok(())
}

/// A header that occurs once, as text.
fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    let mut all = headers.get_all(name).iter();
    let value = all.next()?.to_str().ok()?;
    all.next().is_none().then(|| value.to_owned())
}

/// Values other than plain ASCII are encoded as `=?base64?...?=`.
fn decoded(value: Option<String>) -> Option<String> {
    let value = value?;
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
        None => Some(value),
    }
}

fn mismatch(problem: &str) -> RpcError {
    RpcError::new(HEADER_MISMATCH, format!("Header mismatch: {problem}"))
}

fn unsupported(version: &str) -> RpcError {
    RpcError::new(UNSUPPORTED_VERSION, "Unsupported protocol version")
        .with_data(json!({"supported": VERSIONS, "requested": version}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_base64_are_decoded_and_only_in_their_one_form() {
        // Encoded with coreutils' base64.
        for (header, expected) in [
            ("plain", Some("plain")),
            ("=?base64?SGVsbG8sIOS4lueVjA==?=", Some("Hello, 世界")),
            ("=?base64?IHBhZGRlZCA=?=", Some(" padded ")),
            ("=?base64??=", Some("")),
            ("=?base64?IHBhZGRlZCB=?=", None),
            ("=?base64?SGVsbG8?=", None),
            ("=?base64?S===?=", None),
            ("=?base64?*abc?=", None),
            ("=?base64?/w==?=", None),
        ] {
            assert_eq!(decoded(Some(header.to_owned())).as_deref(), expected, "{header}");
        }
    }
}
