//! `POST /api/request`: the policy evaluates a query, and allowed ones are sent to a model.

use std::sync::Arc;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::{HeaderMap, Request, Response, StatusCode};
use plimsoll_gateway_policy::InputKind;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::base::clock;
use crate::exchange::request_context::{RequestContext, RoutedRequest};
use crate::exchange::respond::{HandlerResult, json as json_response, json_body, respond};
use crate::exchange::response_body::ResponseBody;
use crate::http::error_response::{ErrorResponse, no_such};
use crate::layers::policy::PolicyLayer;
use crate::routes::llm;
use crate::upstream::proxy::Proxy;

/// The known request types: queries go to a database, prompts to a model.
const QUERIES: [&str; 3] = ["sql", "rag_search", "test"];
const PROMPTS: [&str; 5] = ["llm_chat", "multi-agent-plan", "chat", "completion", "embedding"];

/// The default model.
const DEFAULT_MODEL: &str = "mock-fast";

/// The body of a request.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PolicyRequest {
    query: String,
    user_token: String,
    client_id: String,
    request_type: String,
    skip_llm: bool,
    context: Value,
}

/// Serves a request.
pub(crate) async fn serve(routed: RoutedRequest) -> Response<ResponseBody> {
    let started = clock::now();
    let RoutedRequest { request, mut context, .. } = routed;
    let result = handle(&mut context, request, started).await;
    let format = context.config.error_format;
    respond(context, result, format)
}

async fn handle(
    context: &mut RequestContext,
    request: Box<Request<Incoming>>,
    started: u64,
) -> HandlerResult {
    let config = Arc::clone(&context.config);
    let Some(policy) = &config.layers.policy else {
        return Err(ErrorResponse::not_found(no_such("policy")));
    };
    let (parts, body) = request.into_parts();
    let body = json_body(context, &parts, body).await?;
    let request = parse(&body)?;
    let tenant = context.identity.tenant.as_deref().unwrap_or(&request.client_id).to_owned();
    let responses = PolicyResponses { policy, started, tenant };
    let reading = match classify(&request) {
        Ok(reading) => reading,
        Err(reason) => return Ok(responses.blocked(reason)),
    };
    let (metrics, info) = (context.worker.metrics(), &mut context.llm_info);
    let query = match policy.evaluate(metrics, info, request.query.clone(), reading).await {
        Ok(query) => query,
        Err(blocked) => return responses.refused(blocked),
    };
    let redacted = query != request.query;
    if request.skip_llm {
        let data = json!({"query": query, "redacted": redacted, "skipped": true});
        return Ok(responses.passed(&data));
    }
    match complete(context, policy, &request, &query, &parts.headers).await {
        Ok(text) => Ok(responses.passed(&json!({"answer": text, "redacted": redacted}))),
        Err(error) => responses.refused(error),
    }
}

fn parse(body: &[u8]) -> Result<PolicyRequest, ErrorResponse> {
    // serde would also read an array with the members in order.
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(ErrorResponse::bad_request("the body is not a JSON object"));
    }
    let request: PolicyRequest = serde_json::from_slice(body).map_err(|error| {
        ErrorResponse::bad_request(format!("the body is not the JSON of a query: {error}"))
    })?;
    if request.user_token.is_empty() {
        return Err(ErrorResponse::auth_required("send `user_token`"));
    }
    Ok(request)
}

/// Classifies the query; unknown types and empty queries are rejected with a reason.
fn classify(request: &PolicyRequest) -> Result<InputKind, &'static str> {
    if request.query.trim().is_empty() {
        return Err("the query is empty");
    }
    let kind = request.request_type.as_str();
    if QUERIES.contains(&kind) {
        Ok(InputKind::Query)
    } else if PROMPTS.contains(&kind) {
        Ok(InputKind::Text)
    } else {
        Err("the request type is unknown")
    }
}

/// Sends the query to a model, and evaluates its answer.
async fn complete(
    context: &mut RequestContext,
    policy: &PolicyLayer,
    request: &PolicyRequest,
    query: &str,
    headers: &HeaderMap,
) -> Result<String, ErrorResponse> {
    let proxy = provider(context)?;
    let model = request.context.get("model").and_then(Value::as_str).unwrap_or(DEFAULT_MODEL);
    let prompt = json!({"model": model, "messages": [{"role": "user", "content": query}]});
    let chat = Bytes::from(prompt.to_string());
    let completion = Box::pin(llm::complete(context, &proxy, chat, model, headers)).await?;
    let text = completion.pointer("/choices/0/message/content").and_then(Value::as_str);
    let (metrics, info) = (context.worker.metrics(), &mut context.llm_info);
    policy.evaluate(metrics, info, text.unwrap_or_default().to_owned(), InputKind::Text).await
}

/// The first upstream, which the endpoint sends its chats to.
fn provider(context: &RequestContext) -> Result<Proxy, ErrorResponse> {
    let upstream = context.config.upstreams.first();
    let upstream =
        upstream.ok_or_else(|| ErrorResponse::upstream_unavailable("no provider is configured"))?;
    Ok(Proxy::to(upstream))
}

/// Builds the responses to one request.
struct PolicyResponses<'a> {
    policy: &'a PolicyLayer,
    started: u64,
    tenant: String,
}

impl PolicyResponses<'_> {
    fn info(&self) -> Value {
        let evaluated = self.policy.evaluated();
        let millis = clock::now().saturating_sub(self.started) as f64 / 1e6;
        json!({
            "policies_evaluated": evaluated.policies,
            "static_checks": evaluated.checks,
            "processing_time": format!("{millis:.3}ms"),
            "tenant_id": self.tenant,
        })
    }

    fn passed(&self, data: &Value) -> Response<ResponseBody> {
        let body =
            json!({"success": true, "data": data, "blocked": false, "policy_info": self.info()});
        json_response(StatusCode::OK, body.to_string())
    }

    /// A blocked query is a regular response; other errors are not.
    fn refused(&self, error: ErrorResponse) -> HandlerResult {
        if error.kind == "policy_blocked" { Ok(self.blocked(&error.message)) } else { Err(error) }
    }

    fn blocked(&self, reason: &str) -> Response<ResponseBody> {
        let body = json!({
            "success": false, "blocked": true, "block_reason": reason, "policy_info": self.info(),
        });
        json_response(StatusCode::FORBIDDEN, body.to_string())
    }
}
