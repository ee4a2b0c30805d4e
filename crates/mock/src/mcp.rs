//! An MCP server over Streamable HTTP.
//!
//! It speaks the versions with sessions from 2025-06-18 on and the stateless version 2026-07-28.
//! The facts are those of the published specification and of the official Python SDK, version 2.3:
//! <https://modelcontextprotocol.io/specification>.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use hyper::header::{ACCEPT, ALLOW, HeaderValue, ORIGIN};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method};
use serde_json::{Value, json};

use crate::duration::HumanDuration;
use crate::endpoint::is_json;
use crate::event_plan::EventPlan;
use crate::fault::Fault;
use crate::hash::fnv1a;
use crate::log::RpcOutcome;
use crate::overrides::RequestOverrides;
use crate::responder::Responder;
use crate::response_body::{ResponseBody, ServiceResult};
use crate::rpc::{self, INTERNAL_ERROR, INVALID_REQUEST, Message, Object, Request, RpcError};
use crate::spec::DrawBy;
use crate::stop::Stop;
use crate::token::{self, Token};
use crate::worker::Worker;

mod answer;
mod call;
mod era;
mod methods;
mod session;
mod spec;

use answer::Answer;
use era::{Era, VERSION_HEADER, check_stateless, header};
use methods::Reply;
pub(crate) use session::Sessions;
pub use spec::{AnswerMode, McpSpec, PromptSpec, ResourceSpec, ToolSpec};

/// The versions, newest first.
const VERSIONS: [&str; 3] = [LATEST_STATELESS, LATEST_WITH_SESSIONS, "2025-06-18"];
const LATEST_STATELESS: &str = "2026-07-28";
const LATEST_WITH_SESSIONS: &str = "2025-11-25";
const WITH_SESSIONS: [&str; 2] = [LATEST_WITH_SESSIONS, "2025-06-18"];

const SESSION_HEADER: &str = "mcp-session-id";

/// A refusal: the HTTP status, the id of the request, and the error.
type Refusal = (u16, Value, RpcError);

/// Sends the answer to a body that is too large.
pub(crate) fn too_large(responder: Responder) -> hyper::Response<ResponseBody> {
    let limit = responder.worker.state().mcp.max_body;
    let problem = format!("The request's body is larger than {limit} bytes");
    refuse(responder, (413, Value::Null, RpcError::new(INVALID_REQUEST, problem)))
}

fn refuse(mut responder: Responder, refusal: Refusal) -> hyper::Response<ResponseBody> {
    let (status, id, error) = refusal;
    responder.exchange.rpc(|rpc| (rpc.outcome, rpc.code) = (RpcOutcome::Error, Some(error.code)));
    if status == 405 {
        responder.headers.insert(ALLOW, HeaderValue::from_static("GET, POST, DELETE"));
    }
    responder.answer(status, rpc::failure(&id, &error))
}

/// A refusal before the message was read.
fn refusal(status: u16, problem: &str) -> Refusal {
    (status, Value::Null, RpcError::new(INVALID_REQUEST, problem))
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
    if head.method == Method::POST {
        return post(responder, headers, body, overrides).await;
    }
    let served = match head.method {
        Method::GET => open_stream(&mut responder, headers).map(Some),
        Method::DELETE => end_session(&mut responder, headers).map(|()| None),
        _ => Err(refusal(405, "Method not allowed")),
    };
    Ok(match served {
        Err(refusal) => refuse(responder, refusal),
        Ok(Some(plan)) => responder.stream_events(plan),
        Ok(None) => responder.empty(200),
    })
}

/// Whether a browser's page may send this: only pages of this machine may.
fn is_local(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(ORIGIN) else { return true };
    let host = origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, host)| {
        let end = host.rfind(':').filter(|at| !host[*at..].contains(']'));
        &host[..end.unwrap_or(host.len())]
    });
    matches!(host, Some("localhost" | "127.0.0.1" | "[::1]"))
}

/// `GET`: a stream on which nothing happens.
fn open_stream(responder: &mut Responder, headers: &HeaderMap) -> Result<EventPlan, Refusal> {
    let worker = Rc::clone(&responder.worker);
    let state = worker.state();
    if !state.mcp.idle_streams || era_of_empty(headers)? == Era::Stateless {
        return Err(refusal(405, "There is no stream to listen on"));
    }
    if !accepted(headers).1 {
        return Err(refusal(406, "The client must accept text/event-stream"));
    }
    let (session, _) = session_of(responder, headers)?;
    let stop = state.sessions.begin_call(session, &json!("GET\n"));
    let stop = stop.ok_or_else(|| refusal(409, "The session has a stream already"))?;
    responder.exchange.rpc(|rpc| (rpc.outcome, rpc.streamed) = (RpcOutcome::IdleStream, true));
    Ok(EventPlan::idle(stop))
}

/// `DELETE`: the end of a session.
fn end_session(responder: &mut Responder, headers: &HeaderMap) -> Result<(), Refusal> {
    if era_of_empty(headers)? == Era::Stateless {
        return Err(refusal(405, "There are no sessions in this version"));
    }
    let (session, _) = session_of(responder, headers)?;
    responder.exchange.rpc(|rpc| rpc.outcome = RpcOutcome::SessionEnded);
    let closed = responder.worker.state().sessions.close(session);
    closed.then_some(()).ok_or_else(|| refusal(404, "Session not found"))
}

fn era_of_empty(headers: &HeaderMap) -> Result<Era, Refusal> {
    let version = header(headers, VERSION_HEADER);
    Era::from_request(version.as_deref(), None).map_err(|error| (400, Value::Null, error))
}

/// The session that a request names, and its version.
fn session_of(
    responder: &mut Responder,
    headers: &HeaderMap,
) -> Result<(Token, &'static str), Refusal> {
    let text = header(headers, SESSION_HEADER);
    let text = text.ok_or_else(|| refusal(400, "The Mcp-Session-Id header is missing"))?;
    let sessions = Arc::clone(&responder.worker.state().sessions);
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

async fn post(
    mut responder: Responder,
    headers: &HeaderMap,
    body: &Bytes,
    overrides: &RequestOverrides,
) -> ServiceResult {
    let worker = Rc::clone(&responder.worker);
    let message = match read_message(headers, body) {
        Ok(message) => message,
        Err(refusal) => return Ok(refuse(responder, refusal)),
    };
    let request = match message {
        Message::Request(request) => request,
        other => {
            return Ok(match accept(&mut responder, headers, &other) {
                Ok(()) => responder.empty(202),
                Err(refusal) => refuse(responder, refusal),
            });
        }
    };
    describe(&mut responder, &request);
    let (era, session) = match admit(&mut responder, headers, &request) {
        Ok(admitted) => admitted,
        Err((status, error)) => return Ok(refuse(responder, (status, request.id, error))),
    };
    let mut reply = if request.method == "initialize" && era.has_sessions() {
        let opened = initialize(&mut responder, &request.params);
        match opened {
            Ok(result) => Reply::new(Ok(result)),
            Err((status, error)) => return Ok(refuse(responder, (status, request.id, error))),
        }
    } else {
        if worker.state().draw == DrawBy::Prompt {
            responder.exchange.draw_by(content_of(&request));
        }
        methods::reply(worker.state(), era, &request, responder.exchange.rng())
    };
    if let Ok(result) = &mut reply.answer {
        era.complete(&request.method, result);
    }
    reply.fault = overrides.fault.or(|| reply.fault);
    reply.latency = overrides.ttft.map_or(reply.latency, HumanDuration::as_nanos);
    let stop = match cancellable(&worker, session, &request, &reply) {
        Ok(stop) => stop,
        Err((status, error)) => return Ok(refuse(responder, (status, request.id, error))),
    };
    let answer = Answer { era, streams: accepted(headers), request, reply, stop };
    answer.send(responder).await
}

/// Makes a request that takes time one that can be cancelled.
fn cancellable(
    worker: &Worker,
    session: Option<Token>,
    request: &Request,
    reply: &Reply,
) -> Result<Option<Stop>, (u16, RpcError)> {
    let takes_time = reply.latency > 0 || matches!(reply.fault, Some(Fault::Stall { .. }));
    let Some(session) = session.filter(|_| takes_time) else { return Ok(None) };
    let stop = worker.state().sessions.begin_call(session, &request.id);
    stop.map(Some)
        .ok_or_else(|| (400, RpcError::new(INVALID_REQUEST, "A request with this id is in flight")))
}

/// What two requests with the same random numbers have in common, with `draw: prompt`.
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
    rpc::parse(body).map_err(|malformed| (400, malformed.id, malformed.error))
}

/// Takes a message that gets no answer.
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
            return Err(refusal(400, "Clients do not send answers in this version"));
        }
    } else {
        let (session, _) = session_of(responder, headers)?;
        if let Message::Notification { method, params } = message
            && method == "notifications/cancelled"
            && let Some(id) = params.get("requestId")
        {
            responder.worker.state().sessions.cancel(session, id);
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

/// Finds out in which era and session a request belongs.
fn admit(
    responder: &mut Responder,
    headers: &HeaderMap,
    request: &Request,
) -> Result<(Era, Option<Token>), (u16, RpcError)> {
    let version = header(headers, VERSION_HEADER);
    let era = Era::from_request(version.as_deref(), Some(&request.params))
        .map_err(|error| (400, error))?;
    if era == Era::Stateless {
        responder.exchange.rpc(|rpc| rpc.version = Some(LATEST_STATELESS.to_owned()));
        check_stateless(headers, &request.method, &request.params).map_err(|error| (400, error))?;
        return Ok((era, None));
    }
    if request.method == "initialize" && !headers.contains_key(SESSION_HEADER) {
        return Ok((era, None));
    }
    let (session, _) =
        session_of(responder, headers).map_err(|(status, _, error)| (status, error))?;
    if request.method == "initialize" {
        return Err((400, RpcError::new(INVALID_REQUEST, "The session is initialized")));
    }
    Ok((era, Some(session)))
}

/// Opens a session.
fn initialize(responder: &mut Responder, params: &Object) -> Result<Value, (u16, RpcError)> {
    let requested = methods::text_param(params, "protocolVersion").map_err(|error| (200, error))?;
    for key in ["capabilities", "clientInfo"] {
        if !params.get(key).is_some_and(Value::is_object) {
            return Err((200, RpcError::invalid_params(format!("`{key}` must be an object"))));
        }
    }
    let version = methods::negotiated(requested);
    let session = responder.worker.state().sessions.open(version);
    let problem = "Too many open sessions";
    let session = session.ok_or_else(|| (503, RpcError::new(INTERNAL_ERROR, problem)))?;
    let text = token::text(session);
    if let Ok(value) = HeaderValue::from_str(&text) {
        responder.headers.insert(SESSION_HEADER, value);
    }
    responder.exchange.rpc(|rpc| {
        (rpc.session, rpc.version) = (Some(text), Some(version.to_owned()));
    });
    Ok(methods::initialized(version))
}
