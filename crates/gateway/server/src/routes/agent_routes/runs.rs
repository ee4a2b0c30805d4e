//! `/v1/runs`: the agent loop in the background. The store keeps its result for a while.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use hyper::{HeaderMap, Response, StatusCode};
use plimsoll_gateway_store::{CacheKey, RecordId};
use ring::digest::{Context as Digest, SHA256};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::spawn_local;
use tokio::time::timeout;

use super::api_request::{ApiRequest, object};
use super::chat::{self, Outcome};
use super::counted;
use crate::base::clock;
use crate::exchange::random_id::random_id;
use crate::exchange::request_context::RequestContext;
use crate::exchange::respond::{HandlerResult, finish, json as json_response, respond_error};
use crate::exchange::response_body::ResponseBody;
use crate::http::error_response::{ErrorResponse, no_such};
use crate::layers::auth::bytes_of;
use crate::layers::owners::{Work, owner_of, value_bytes};

/// The body of `POST /v1/runs`.
#[derive(Debug, Deserialize)]
struct CreateRun {
    input: String,
}

/// The slot of a run in progress.
#[derive(Debug)]
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(running: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        let taken = running
            .fetch_update(Relaxed, Relaxed, |running| (running < most).then_some(running + 1));
        taken.is_ok().then(|| Self(Arc::clone(running)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// A new run.
struct Run {
    id: RecordId,
    messages: Vec<Value>,
    work: Work,
    timeout: Duration,
    keep: Duration,
    _place: Place,
}

/// `POST /v1/runs`.
pub(super) async fn start(mut request: ApiRequest) -> Response<ResponseBody> {
    let format = request.context.config.error_format;
    let begun = begin(&mut request).await;
    let run = match counted(&request.context, "run_create", begun) {
        Ok(run) => run,
        Err(error) => return respond_error(request.context, error, format),
    };
    let body = json!({"run_id": run.id.to_string(), "status": "running"});
    let response = json_response(StatusCode::ACCEPTED, body.to_string());
    let ApiRequest { head, mut context, .. } = request;
    // The row covers the start; metrics count the steps of the run.
    finish(&mut context, &response);
    spawn_local(Box::pin(carry_out(context, head.headers, run)));
    response
}

async fn begin(request: &mut ApiRequest) -> Result<Run, ErrorResponse> {
    let body = request.post_judged().await?;
    let CreateRun { input } = object(&body)?;
    let layer = request.layer()?;
    let chat = layer.chat.as_ref().ok_or_else(no_run)?;
    let running = &request.context.worker.state.runs;
    let place = Place::take(running, chat.spec.runs);
    let place = place.ok_or_else(|| ErrorResponse::store_full("too many runs are in progress"))?;
    let owner = owner_of(&request.context.identity, request.context.client);
    let work = request.context.worker.state.owners.begin_run(owner, chat.spec.owner_runs);
    let mut work = work.ok_or_else(|| {
        ErrorResponse::owner_limit("you have reached the limit of runs in progress")
    })?;
    let messages = vec![json!({"role": "user", "content": input})];
    work.resize(messages.iter().map(value_bytes).sum())?;
    let (timeout, keep) = (chat.spec.run_timeout.0, chat.spec.keep.0);
    let run = Run { id: random_id()?, messages, work, timeout, keep, _place: place };
    let state = json!({"run_id": run.id.to_string(), "status": "running"});
    // If the gateway dies, the run expires after its time.
    put(&request.context, run.id, &state, timeout.saturating_add(keep)).await?;
    Ok(run)
}

async fn carry_out(mut context: Box<RequestContext>, headers: HeaderMap, mut run: Run) {
    let messages = std::mem::take(&mut run.messages);
    let running = chat::run(&mut context, &headers, messages, &mut run.work);
    let done = timeout(run.timeout, running).await;
    let done = done
        .unwrap_or_else(|_| Err(ErrorResponse::upstream_timeout("the run did not end in time")));
    let done = counted(&context, "run", done);
    let state = state_of(run.id, done);
    // Without the store the result is lost; the metrics count the store's error.
    let _ = put(&context, run.id, &state, run.keep).await;
}

fn state_of(id: RecordId, done: Result<Outcome, ErrorResponse>) -> Value {
    let id = id.to_string();
    match done {
        Ok(Outcome { response, steps, tool_calls, model }) => json!({
            "run_id": id, "status": "completed", "output": response, "steps": steps,
            "tool_calls": tool_calls, "model": model,
        }),
        Err(error) => json!({
            "run_id": id, "status": "failed",
            "error": {"type": error.kind, "message": error.message},
        }),
    }
}

/// `GET /v1/runs/{id}`.
pub(super) async fn show(request: &ApiRequest) -> HandlerResult {
    request.expect_get()?;
    let id = request.id().ok_or_else(no_run)?;
    let context = &request.context;
    let found = context.worker.store.value(clock::now(), &key(context, id)).await;
    let found = found.map_err(|error| ErrorResponse::store_unavailable(error.to_string()))?;
    Ok(json_response(StatusCode::OK, found.ok_or_else(no_run)?))
}

fn no_run() -> ErrorResponse {
    ErrorResponse::run_not_found(no_such("run"))
}

async fn put(
    context: &RequestContext,
    id: RecordId,
    state: &Value,
    ttl: Duration,
) -> Result<(), ErrorResponse> {
    let body = chat::scrubbed(context, state.to_string()).await?;
    // Stored bytes do not count as held for a client.
    let body = Bytes::copy_from_slice(&body);
    let put = context.worker.store.put_value(clock::now(), key(context, id), body, ttl).await;
    put.map_err(|error| ErrorResponse::store_unavailable(error.to_string()))
}

/// The key of a run, which differs between owners.
fn key(context: &RequestContext, id: RecordId) -> CacheKey {
    let mut hash = Digest::new(&SHA256);
    hash.update(b"run");
    hash.update(&id.0.to_be_bytes());
    hash.update(context.identity.owner().as_bytes());
    CacheKey(bytes_of(&hash.finish()))
}
