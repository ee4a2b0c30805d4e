//! The request handler: reads a request and selects its response.

use std::rc::Rc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_ENCODING, HeaderValue};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Request};

use crate::dialect::{Dialect, Encoder};
use crate::endpoint::{Endpoint, Page};
use crate::event_plan::{EventPlan, unstreamed};
use crate::exchange::Exchange;
use crate::hash::fnv1a;
use crate::overrides::RequestOverrides;
use crate::recorded_answer::RecordedAnswer;
use crate::request::{ApiRequest, behind_marker};
use crate::responder::{FullResponse, HALF, Responder};
use crate::response_body::{Aborted, ServiceResult};
use crate::response_plan::ResponsePlan;
use crate::spec::DrawBy;
use crate::stream_plan::StreamPlan;
use crate::timed_io::ConnectionTimes;
use crate::timed_plan::TimedPlan as _;
use crate::tool_loop::{Conversation, ToolTurn};
use crate::worker::Worker;
use crate::{a2a, mcp, websocket};

/// Larger request bodies are refused.
const BODY_LIMIT: usize = 64 * 1024 * 1024;

/// Serves one request.
pub(crate) async fn serve(
    worker: Rc<Worker>,
    times: Rc<ConnectionTimes>,
    request: Request<Incoming>,
) -> ServiceResult {
    let (head, body) = request.into_parts();
    let endpoint = Endpoint::at_path(head.uri.path());
    let dialect = endpoint.and_then(Endpoint::dialect);
    let mut exchange = Exchange::begin(Rc::clone(&worker), times.reception(), dialect, &head);
    let request_id = head.headers.get("x-request-id").cloned();
    let body = read_body(body, BODY_LIMIT).await?;
    exchange.request_complete(times.end_request());
    let headers = HeaderMap::new();
    let responder = Responder { worker, times, exchange, dialect, request_id, headers };
    match body {
        Some(body) => dispatch(responder, endpoint, &head, &body).await,
        None => Ok(responder.error(413, "the request's body is larger than 64 MiB")),
    }
}

/// The whole body; `None` if it has more than `limit` bytes.
///
/// # Errors
/// The client disconnected before its end.
async fn read_body(body: Incoming, limit: usize) -> Result<Option<Bytes>, Aborted> {
    if body.is_end_stream() {
        return Ok(Some(Bytes::new()));
    }
    if body.size_hint().lower() > limit as u64 {
        return Ok(None);
    }
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(Some(collected.to_bytes())),
        Err(error) if error.is::<LengthLimitError>() => Ok(None),
        Err(_) => Err(Aborted),
    }
}

async fn dispatch(
    responder: Responder,
    endpoint: Option<Endpoint>,
    head: &Parts,
    body: &Bytes,
) -> ServiceResult {
    let overrides = match RequestOverrides::from_headers(&head.headers) {
        Ok(overrides) => overrides,
        Err(problem) => return Ok(responder.error(400, &problem)),
    };
    let path = head.uri.path();
    let needs_key = match endpoint {
        Some(Endpoint::Mcp | Endpoint::WebSocket) => true,
        Some(Endpoint::A2a) => !a2a::is_card(path),
        _ => path.starts_with("/v1/"),
    };
    if needs_key && !is_authorised(responder.worker.state.config.api_key.as_deref(), &head.headers)
    {
        return Ok(responder.error(401, "Incorrect API key provided"));
    }
    match endpoint {
        Some(Endpoint::Api(dialect)) if head.method == Method::POST => {
            serve_api(responder, dialect, body, &overrides).await
        }
        Some(Endpoint::Api(_)) => Ok(responder.error(405, "Only POST requests are accepted here")),
        Some(Endpoint::Mcp) => mcp::serve(responder, head, body, &overrides).await,
        Some(Endpoint::A2a) => a2a::serve(responder, head, body, &overrides).await,
        Some(Endpoint::WebSocket) => websocket::accept(responder, head, &overrides).await,
        Some(Endpoint::Page(page)) => serve_page(responder, page, &overrides).await,
        None => {
            let problem = format!("Unknown request URL: {} {}", head.method, head.uri.path());
            Ok(responder.error(404, &problem))
        }
    }
}

fn is_authorised(key: Option<&str>, headers: &HeaderMap) -> bool {
    let Some(key) = key else { return true };
    let bearer =
        headers.get(AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    let given = bearer.or_else(|| headers.get("x-api-key").map(HeaderValue::as_bytes));
    given == Some(key.as_bytes())
}

async fn serve_api(
    mut responder: Responder,
    dialect: Dialect,
    body: &Bytes,
    overrides: &RequestOverrides,
) -> ServiceResult {
    let mut request = match ApiRequest::parse(dialect, body) {
        Ok(request) => request,
        Err(problem) => return Ok(responder.error(400, &problem)),
    };
    let worker = Rc::clone(&responder.worker);
    let state = &worker.state;
    let (model, recorded) = state.model(&request.model);
    let in_flight = state.counters.api_in_flight.get();
    responder.exchange.draw_by(|| request.content_hash());
    responder.exchange.parsed(&request);
    match tool_turn(&responder, &request, body, overrides) {
        Ok(turn) => request.tool_turn = turn,
        Err(problem) => return Ok(responder.error(400, &problem)),
    }
    if let Some(turn) = &request.tool_turn {
        responder.exchange.tool_turn(turn);
    }
    let plan = ResponsePlan::new(&request, model, overrides, responder.exchange.rng, in_flight);
    let responder = match responder.unless_replaced(plan.fault, Responder::error).await {
        Ok(responder) => responder,
        Err(replaced) => return replaced,
    };
    match recorded {
        Some(answer) => play(responder, answer, plan, in_flight).await,
        None => respond(responder, &request, plan).await,
    }
}

/// The turn of a model with a tool loop, unless headers override it.
///
/// # Errors
/// Providers would reject the conversation.
fn tool_turn(
    responder: &Responder,
    request: &ApiRequest<'_>,
    body: &[u8],
    overrides: &RequestOverrides,
) -> Result<Option<ToolTurn>, String> {
    let state = &responder.worker.state;
    let (model, _) = state.model(&request.model);
    let is_chat =
        !matches!(request.dialect, Dialect::OpenaiEmbeddings | Dialect::OpenaiCompletions);
    let decides = is_chat && overrides.tool_call.is_none();
    let Some(tool_loop) = model.tool_loop.as_ref().filter(|_| decides) else { return Ok(None) };
    let conversation = Conversation::read(request.dialect, body)?;
    let task = match state.config.draw {
        DrawBy::Request => conversation.task.as_str(),
        DrawBy::Prompt => behind_marker(&conversation.task),
    };
    let rng = responder.exchange.rng;
    let task = rng.drawn_by(state.config.seed, fnv1a(task.as_bytes()));
    Ok(Some(ToolTurn::new(tool_loop, &conversation, task, rng)))
}

async fn respond(
    mut responder: Responder,
    request: &ApiRequest<'_>,
    plan: ResponsePlan,
) -> ServiceResult {
    responder.exchange.planned(plan.output.prompt_tokens, plan.output.tokens());
    match request.dialect.stream_encoder().filter(|_| request.stream) {
        Some(encoder) => {
            let preamble = plan.preamble;
            responder.stream(StreamPlan::new(plan, encoder), preamble).await
        }
        None => respond_at_once(responder, request.dialect, plan).await,
    }
}

/// Sends a recorded answer.
async fn play(
    mut responder: Responder,
    answer: &RecordedAnswer,
    mut plan: ResponsePlan,
    in_flight: u64,
) -> ServiceResult {
    responder.exchange.planned(plan.output.prompt_tokens, 0);
    if let Some(coding) = answer.coding {
        responder.headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding));
    }
    let RecordedAnswer { status, content_type, .. } = *answer;
    if !answer.is_stream() {
        let full = FullResponse { status, content_type, body: answer.body.clone(), tokens: 0 };
        let (pause, end) = unstreamed(plan.fault);
        let offset = plan.ttft.saturating_add(pause);
        return responder.send_after(full, offset, end, HALF).await;
    }
    let mut due = plan.ttft;
    let mut events = Vec::new();
    for piece in answer.pieces() {
        events.push((due, piece));
        due = due.saturating_add(plan.gaps.next(in_flight));
    }
    let events = EventPlan::timed(events, plan.fault, None);
    Ok(responder.stream_recorded(status, events, plan.preamble).await)
}

/// Sends an unstreamed response. It takes as long as its stream would.
async fn respond_at_once(
    responder: Responder,
    dialect: Dialect,
    plan: ResponsePlan,
) -> ServiceResult {
    let in_flight = responder.worker.state.counters.api_in_flight.get();
    let mut stream = StreamPlan::new(plan, Encoder::silent());
    let (duration, end) = stream.run_to_end(in_flight);
    let (tokens, planned) = (stream.tokens_sent(), stream.output.tokens());
    let sent_share = if planned > 0 { f64::from(tokens) / f64::from(planned) } else { HALF };
    let body = dialect.full_response(&stream.output);
    let response = FullResponse { tokens, ..FullResponse::json(200, body) };
    responder.send_after(response, duration, end, sent_share).await
}

/// Serves a page immediately, unless the request's headers ask for a delay or a fault.
async fn serve_page(
    responder: Responder,
    page: Page,
    overrides: &RequestOverrides,
) -> ServiceResult {
    let (content_type, body) = page.render(&responder.worker.state);
    let response = FullResponse { status: 200, content_type, body, tokens: 0 };
    let fault = overrides.fault.or(|| None);
    let responder = match responder.unless_replaced(fault, Responder::error).await {
        Ok(responder) => responder,
        Err(replaced) => return replaced,
    };
    let (pause, end) = unstreamed(fault);
    let delay = overrides.ttft.unwrap_or_default().as_nanos().saturating_add(pause);
    responder.send_after(response, delay, end, HALF).await
}
