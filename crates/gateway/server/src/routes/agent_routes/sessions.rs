//! `/v1/sessions`.

use hyper::{Method, Response, StatusCode};
use plimsoll_gateway_store::{NewSession, RecordId, Session, SessionRules};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::api_request::{ApiRequest, object};
use super::counted;
use crate::base::clock;
use crate::exchange::random_id::random_id;
use crate::exchange::request_context::RequestContext;
use crate::exchange::respond::{HandlerResult, json as json_response};
use crate::exchange::response_body::ResponseBody;
use crate::http::error_response::{ErrorResponse, no_such};
use crate::routes::store_error::store_error;

/// The body of `POST /v1/sessions`.
#[derive(Debug, Deserialize)]
struct CreateSession {
    ttl_s: Option<u64>,
    #[serde(default)]
    metadata: Map<String, Value>,
}

/// `POST /v1/sessions`.
pub(super) async fn create(request: &mut ApiRequest) -> HandlerResult {
    let body = request.post().await?;
    let wanted: CreateSession = object(&body)?;
    let (layer, context) = (request.layer()?, &request.context);
    let metadata = Value::Object(wanted.metadata).to_string();
    let (owner, id) = (context.identity.owner(), random_id()?);
    let new = NewSession {
        id,
        owner: &owner,
        most: context.identity.share_of(layer.sessions.sessions),
        ttl: layer.session_ttl.of(wanted.ttl_s)?,
        metadata: metadata.as_bytes(),
    };
    let made = context.worker.store.create_session(clock::moment(), &layer.sessions, &new).await;
    let made = made.map_err(|error| store_error(error, ErrorResponse::session_not_found));
    let session = counted(context, "session_create", made)?;
    let body = described(id, &session, &layer.sessions);
    Ok(json_response(StatusCode::CREATED, body.to_string()))
}

/// `GET` and `DELETE /v1/sessions/{id}`.
pub(super) async fn one(request: &ApiRequest) -> HandlerResult {
    let delete = request.head.method == Method::DELETE;
    if !delete {
        request.expect_get().map_err(|_| ErrorResponse::wrong_methods("GET, HEAD, DELETE"))?;
    }
    let (layer, context) = (request.layer()?, &request.context);
    let id = request.id().ok_or_else(no_session)?;
    let (owner, store) = (context.identity.owner(), &context.worker.store);
    let now = clock::now();
    if delete {
        let ended = store.end_session(now, &owner, id).await;
        let ended = ended.map_err(|error| store_error(error, ErrorResponse::session_not_found));
        counted(context, "session_end", ended)?;
        let mut response = Response::new(ResponseBody::EMPTY);
        *response.status_mut() = StatusCode::NO_CONTENT;
        return Ok(response);
    }
    let session = store.session(now, &owner, id).await;
    let session = session.map_err(|error| store_error(error, ErrorResponse::session_not_found))?;
    let mut body = described(id, &session, &layer.sessions);
    body["metadata"] = serde_json::from_slice(&session.metadata).unwrap_or_default();
    Ok(json_response(StatusCode::OK, body.to_string()))
}

fn described(id: RecordId, session: &Session, rules: &SessionRules) -> Value {
    let Session { created_at, expires_at, calls, .. } = *session;
    json!({
        "session_id": id.to_string(),
        "created_at": created_at,
        "expires_at": expires_at,
        "tool_calls": calls,
        "calls_left": rules.calls.saturating_sub(calls),
    })
}

fn no_session() -> ErrorResponse {
    ErrorResponse::session_not_found(no_such("session"))
}

/// Checks that the caller owns the session that a request names.
///
/// # Errors
/// `session_not_found`: it never existed, has ended or expired, or has another owner.
pub(crate) async fn expect_session(
    context: &RequestContext,
    session_id: Option<&str>,
) -> Result<Option<RecordId>, ErrorResponse> {
    let Some(text) = session_id else { return Ok(None) };
    let id = RecordId::parse(text).ok_or_else(no_session)?;
    let owner = context.identity.owner();
    let found = context.worker.store.session(clock::now(), &owner, id).await;
    match found {
        Ok(_) => Ok(Some(id)),
        Err(error) => Err(store_error(error, ErrorResponse::session_not_found)),
    }
}
