//! Approvals by people: `/v1/hitl`.

use hyper::{Response, StatusCode};
use plimsoll_gateway_store::{Approval, ApprovalState, NewApproval, RecordError, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::api_request::{ApiRequest, object};
use super::counted;
use super::sessions::expect_session;
use crate::base::clock;
use crate::exchange::random_id::random_id;
use crate::exchange::request_context::RequestContext;
use crate::exchange::respond::{HandlerResult, json as json_response};
use crate::exchange::response_body::ResponseBody;
use crate::http::error_response::{ErrorResponse, no_such};
use crate::layers::agent_layer::OPERATIONS;
use crate::routes::store_error::store_error;

/// The most that a list shows.
const LISTED: usize = 1_000;

/// The body of `POST /v1/hitl`.
#[derive(Debug, Deserialize)]
struct CreateApproval {
    action: String,
    #[serde(default)]
    details: Value,
    session_id: Option<String>,
    ttl_s: Option<u64>,
}

/// The details of an approval as they are stored.
#[derive(Debug, Default, Deserialize, Serialize)]
struct Details {
    /// The consumer that requested it; `None` without keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    asked_by: Option<String>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    details: Value,
}

fn details_of(approval: &Approval) -> Details {
    serde_json::from_slice(&approval.details).unwrap_or_default()
}

fn asker(context: &RequestContext) -> Option<String> {
    context.identity.consumer.as_ref().map(|consumer| consumer.name.to_string())
}

/// The body of a decision.
#[derive(Debug, Default, Deserialize)]
struct Decision {
    #[serde(default)]
    reason: String,
}

/// `POST /v1/hitl`.
pub(super) async fn create(request: &mut ApiRequest) -> HandlerResult {
    let body = request.post().await?;
    let wanted: CreateApproval = object(&body)?;
    if wanted.action.is_empty() {
        return Err(ErrorResponse::bad_request("`action` is empty"));
    }
    let (layer, context) = (request.layer()?, &request.context);
    let session = expect_session(context, wanted.session_id.as_deref()).await?;
    let details = Details { asked_by: asker(context), details: wanted.details };
    let details = serde_json::to_vec(&details).unwrap_or_default();
    let owner = context.identity.owner();
    let new = NewApproval {
        id: random_id()?,
        owner: &owner,
        action: &wanted.action,
        details: &details,
        session,
        ttl: layer.approval_ttl.of(wanted.ttl_s)?,
    };
    let made = context.worker.store.create_approval(clock::moment(), &layer.approvals, &new).await;
    let made = made.map_err(|error| store_error(error, ErrorResponse::approval_not_found));
    let approval = counted(context, "approval_create", made)?;
    Ok(json_response(StatusCode::CREATED, described(&approval).to_string()))
}

/// `GET /v1/hitl/pending` and `GET /v1/approvals`.
pub(super) async fn pending(request: &ApiRequest) -> HandlerResult {
    request.expect_get()?;
    let (context, owner) = (&request.context, request.context.identity.owner());
    let pending = context.worker.store.pending_approvals(clock::now(), &owner, LISTED).await;
    let pending = pending.map_err(|error| store_error(error, ErrorResponse::approval_not_found))?;
    let approvals: Vec<Value> = pending.approvals.iter().map(described).collect();
    let body = json!({"approvals": approvals, "total": pending.total});
    Ok(json_response(StatusCode::OK, context.made(body.to_string())?))
}

/// `GET /v1/hitl/{id}`.
pub(super) async fn one(request: &ApiRequest) -> HandlerResult {
    request.expect_get()?;
    let (context, owner) = (&request.context, request.context.identity.owner());
    let id = request.id().ok_or_else(no_approval)?;
    let approval = context.worker.store.approval(clock::now(), &owner, id).await;
    let approval =
        approval.map_err(|error| store_error(error, ErrorResponse::approval_not_found))?;
    Ok(json_response(StatusCode::OK, described(&approval).to_string()))
}

/// `POST /v1/hitl/{id}/approve`, `reject` and `expire`.
pub(super) async fn decide(request: &mut ApiRequest, verdict: Verdict) -> HandlerResult {
    let body = request.post().await?;
    let Decision { reason } = object(&body)?;
    let (layer, context) = (request.layer()?, &request.context);
    if reason.len() > layer.approvals.bytes {
        let most = layer.approvals.bytes;
        let message = format!("a reason has at most {most} bytes");
        return Err(ErrorResponse::request_too_large(message));
    }
    let id = request.id().ok_or_else(no_approval)?;
    let (owner, store) = (context.identity.owner(), &context.worker.store);
    if verdict == Verdict::Approve {
        let asked = store.approval(clock::now(), &owner, id).await;
        let asked = asked.map_err(|error| store_error(error, ErrorResponse::approval_not_found))?;
        let asked_by = details_of(&asked).asked_by;
        if asked_by.is_some() && asked_by == asker(context) {
            let message = "the requester of an approval cannot grant it: use another key";
            return Err(ErrorResponse::forbidden(message));
        }
    }
    let decided =
        store.decide(clock::moment(), &layer.approvals, &owner, id, verdict, &reason).await;
    match decided {
        Ok(approval) => {
            context.worker.metrics().count(&OPERATIONS, &[operation(verdict), "ok"]);
            Ok(json_response(StatusCode::OK, described(&approval).to_string()))
        }
        Err(RecordError::AlreadyDecided(state)) => {
            context.worker.metrics().count(&OPERATIONS, &[operation(verdict), "already_decided"]);
            context.worker.metrics().count_error("already_decided");
            Ok(already_decided(state))
        }
        Err(error) => {
            let error = store_error(error, ErrorResponse::approval_not_found);
            counted(context, operation(verdict), Err(error))
        }
    }
}

const fn operation(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Approve => "approval_approve",
        Verdict::Reject => "approval_reject",
        Verdict::Expire => "approval_expire",
    }
}

/// The outcome is in the answer, so that a late caller need not ask again.
fn already_decided(state: ApprovalState) -> Response<ResponseBody> {
    let state: &str = state.into();
    let message = format!("the approval is already decided: {state}");
    let body = json!({
        "error": {"type": "already_decided", "message": message, "state": state},
        "state": state,
    });
    json_response(StatusCode::CONFLICT, body.to_string())
}

fn no_approval() -> ErrorResponse {
    ErrorResponse::approval_not_found(no_such("approval"))
}

fn described(approval: &Approval) -> Value {
    let Details { asked_by, details } = details_of(approval);
    let reason = (!approval.reason.is_empty()).then(|| String::from_utf8_lossy(&approval.reason));
    let mut body = json!({
        "id": approval.id.to_string(),
        "state": <&str>::from(approval.state),
        "action": String::from_utf8_lossy(&approval.action),
        "created_at": approval.created_at,
        "expires_at": approval.expires_at,
        "details": details,
        "asked_by": asked_by,
        "session_id": approval.session.map(|session| session.to_string()),
        "decided_at": approval.decided_at,
        "reason": reason,
    });
    if let Some(members) = body.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    body
}
