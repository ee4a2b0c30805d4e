//! What is served at which path.

use std::rc::Rc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::header::{AUTHORIZATION, HeaderValue};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Request, Response};

use crate::ask::Ask;
use crate::dialect::Dialect;
use crate::exchange::Exchange;
use crate::fault::Fault;
use crate::overrides::Overrides;
use crate::plan::Plan;
use crate::prometheus;
use crate::reply::{BrokenOff, Reply};
use crate::responder::{JSON, Responder, Whole};
use crate::script::{Ending, Script};
use crate::tap::Tap;
use crate::worker::Worker;

/// Larger bodies are refused.
const BODY_LIMIT: usize = 64 * 1024 * 1024;

pub(crate) type Served = Result<Response<Reply>, BrokenOff>;

/// Serves one request.
pub(crate) async fn serve(worker: Rc<Worker>, tap: Rc<Tap>, request: Request<Incoming>) -> Served {
    let (head, body) = request.into_parts();
    let mut exchange = Exchange::begin(Rc::clone(&worker), &tap, &head);
    let dialect = Dialect::of_path(head.uri.path());
    let request_id = head.headers.get("x-request-id").cloned();
    let body = read(body).await?;
    exchange.request_complete(&tap);
    let responder = Responder { worker, tap, exchange, dialect, request_id };
    match body.ok_or("the request's body is larger than 64 MiB") {
        Ok(body) => answer(responder, &head, &body).await,
        Err(problem) => Ok(responder.refuse(413, problem)),
    }
}

/// The whole body; `None` where it is too large.
///
/// # Errors
/// The client went away in the middle of it.
async fn read(body: Incoming) -> Result<Option<Bytes>, BrokenOff> {
    if body.is_end_stream() {
        return Ok(Some(Bytes::new()));
    }
    if body.size_hint().lower() > BODY_LIMIT as u64 {
        return Ok(None);
    }
    match Limited::new(body, BODY_LIMIT).collect().await {
        Ok(collected) => Ok(Some(collected.to_bytes())),
        Err(error) if error.is::<LengthLimitError>() => Ok(None),
        Err(_) => Err(BrokenOff),
    }
}

async fn answer(responder: Responder, head: &Parts, body: &Bytes) -> Served {
    let overrides = match Overrides::from_headers(&head.headers) {
        Ok(overrides) => overrides,
        Err(problem) => return Ok(responder.refuse(400, &problem)),
    };
    let needs_key = head.uri.path().starts_with("/v1/");
    if needs_key && !is_authorised(responder.worker.shared().api_key.as_deref(), &head.headers) {
        return Ok(responder.refuse(401, "Incorrect API key provided"));
    }
    match responder.dialect {
        Some(dialect) if head.method == Method::POST => {
            api(responder, dialect, body, &overrides).await
        }
        Some(_) => Ok(responder.refuse(405, "Only POST requests are accepted here")),
        None => plain(responder, head, &overrides).await,
    }
}

fn is_authorised(key: Option<&str>, headers: &HeaderMap) -> bool {
    let Some(key) = key else { return true };
    let bearer =
        headers.get(AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    let given = bearer.or_else(|| headers.get("x-api-key").map(HeaderValue::as_bytes));
    given == Some(key.as_bytes())
}

/// The paths of the providers.
async fn api(
    mut responder: Responder,
    dialect: Dialect,
    body: &Bytes,
    overrides: &Overrides,
) -> Served {
    let ask = match Ask::parse(dialect, body) {
        Ok(ask) => ask,
        Err(problem) => return Ok(responder.refuse(400, &problem)),
    };
    let worker = Rc::clone(&responder.worker);
    let shared = worker.shared();
    let (series, model) = shared.model(&ask.model);
    let in_flight = shared.counters.api_in_flight.read();
    let plan = Plan::new(&ask, model, overrides, responder.exchange.draws(), in_flight);
    responder.exchange.understood(&ask, series);
    let fault = plan.fault;
    if let Some(fault) = fault {
        responder.exchange.faulted(fault);
    }
    match fault {
        Some(Fault::Status { code, retry_after }) => Ok(responder.fail(code, retry_after)),
        Some(Fault::Hang) => responder.hang().await,
        Some(Fault::Reset { at: None }) => responder.reset(),
        _ => respond(responder, &ask, plan).await,
    }
}

async fn respond(mut responder: Responder, ask: &Ask<'_>, plan: Plan) -> Served {
    responder.exchange.planned(plan.answer.prompt_tokens, plan.answer.tokens());
    match ask.dialect.voice().filter(|_| ask.stream) {
        Some(voice) => {
            let begins = plan.preamble;
            responder.stream(Script::new(plan, voice), begins).await
        }
        None => whole(responder, ask.dialect, plan).await,
    }
}

/// An answer in one piece takes as long as its stream would.
async fn whole(responder: Responder, dialect: Dialect, plan: Plan) -> Served {
    let in_flight = responder.worker.shared().counters.api_in_flight.read();
    let mut script = Script::new(plan, Dialect::silence());
    let (lasts, ending) = script.rehearse(in_flight);
    let (tokens, planned) = (script.said(), script.answer().tokens());
    let said = if planned > 0 { f64::from(tokens) / f64::from(planned) } else { HALF };
    let body = dialect.whole(script.answer());
    responder.deliver(Whole { content_type: JSON, body, tokens }, lasts, ending, said).await
}

/// Where a body without tokens breaks, if it is to break.
const HALF: f64 = 0.5;

/// The paths that belong to no dialect. They answer at once, unless the request asks otherwise.
async fn plain(mut responder: Responder, head: &Parts, overrides: &Overrides) -> Served {
    let Some(page) = page(&responder, head) else {
        let problem = format!("Unknown request URL: {} {}", head.method, head.uri.path());
        return Ok(responder.refuse(404, &problem));
    };
    let fault = overrides.fault.or(|| None);
    if let Some(fault) = fault {
        responder.exchange.faulted(fault);
    }
    let mut delay = overrides.ttft.unwrap_or_default().as_nanos();
    let ending = match fault {
        Some(Fault::Status { code, retry_after }) => return Ok(responder.fail(code, retry_after)),
        Some(Fault::Hang) => return responder.hang().await,
        Some(Fault::Reset { at: None }) => return responder.reset(),
        Some(Fault::Reset { at: Some(_) }) => Ending::Broken { reset: true },
        Some(Fault::Cut { .. } | Fault::Truncate { .. }) => Ending::Broken { reset: false },
        Some(Fault::Error { .. }) => Ending::Error,
        Some(Fault::Stall { pause, .. }) => {
            delay = delay.saturating_add(pause.as_nanos());
            Ending::Closed
        }
        None => Ending::Closed,
    };
    responder.deliver(page, delay, ending, HALF).await
}

fn page(responder: &Responder, head: &Parts) -> Option<Whole> {
    let shared = responder.worker.shared();
    let (content_type, body) = match head.uri.path() {
        "/" | "/echo" => ("text/plain", b"ok\n".to_vec()),
        "/health" => (JSON, br#"{"status":"ok"}"#.to_vec()),
        "/v1/models" => (JSON, models(shared.model_names())),
        "/metrics" => {
            let page = prometheus::render(&shared.counters, &shared.stats());
            ("text/plain; version=0.0.4", page.into_bytes())
        }
        _ => return None,
    };
    Some(Whole { content_type, body, tokens: 0 })
}

fn models<'a>(names: impl Iterator<Item = &'a str>) -> Vec<u8> {
    let entry = |name: &str| {
        // A string always has a JSON form.
        let id = serde_json::to_string(name).unwrap_or_default();
        format!(r#"{{"id":{id},"object":"model","created":1735689600,"owned_by":"plimsoll-mock"}}"#)
    };
    let entries: Vec<String> = names.map(entry).collect();
    format!(r#"{{"object":"list","data":[{}]}}"#, entries.join(",")).into_bytes()
}
