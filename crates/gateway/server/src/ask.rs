//! `POST /api/request`: a query is judged, and goes on to a model if it may.

use std::sync::Arc;

use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{HeaderMap, Method, Response, StatusCode, Uri, Version};
use plimsoll_gateway_dialect::{Dialect, Translator};
use plimsoll_gateway_policy::InputKind;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::body::Body;
use crate::clock;
use crate::exchange::Exchange;
use crate::guard::{Blocked, Guard};
use crate::llm::Question;
use crate::refusal::Refusal;
use crate::router::Proxy;
use crate::service::{
    Call, close, expect_json, expect_method, forward, json as answer_json, refuse,
};

/// Kinds of queries; those of the first list go to a database, the others to a model.
const QUERIES: [&str; 3] = ["sql", "rag_search", "test"];
const PROMPTS: [&str; 5] = ["llm_chat", "multi-agent-plan", "chat", "completion", "embedding"];

/// What is asked.
#[derive(Debug, Deserialize)]
struct Ask {
    #[serde(default)]
    query: String,
    #[serde(default)]
    user_token: String,
    #[serde(default)]
    client_id: String,
    #[serde(default)]
    request_type: String,
    #[serde(default)]
    skip_llm: bool,
    #[serde(default)]
    context: Value,
}

/// Serves a query.
pub(crate) async fn serve(call: Call) -> Response<Body> {
    let started = clock::now();
    let Call { request, mut exchange, .. } = call;
    let answer = answer(&mut exchange, request, started).await;
    match answer {
        Ok(response) => {
            close(&mut exchange, &response);
            response
        }
        Err(refusal) => {
            let voice = exchange.config.voice;
            refuse(exchange, refusal, voice)
        }
    }
}

async fn answer(
    exchange: &mut Exchange,
    request: hyper::Request<hyper::body::Incoming>,
    started: u64,
) -> Result<Response<Body>, Refusal> {
    expect_method(request.method(), &Method::POST)?;
    expect_json(request.headers())?;
    let config = Arc::clone(&exchange.config);
    let Some(guard) = &config.guard else {
        return Err(Refusal::not_found("there is no policy"));
    };
    let (parts, body) = request.into_parts();
    let body = forward::collect(&config, body).await?;
    exchange.received = body.len() as u64;
    // A list would pass for an object with its members in order.
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(Refusal::bad_request("the body is not a JSON object"));
    }
    let ask: Ask = serde_json::from_slice(&body).map_err(|error| {
        Refusal::bad_request(format!("the body is not the JSON of a query: {error}"))
    })?;
    if ask.user_token.is_empty() {
        return Err(Refusal::auth_required("send `user_token`"));
    }
    let told = Told {
        guard,
        started,
        tenant: exchange.tenant.as_deref().unwrap_or(&ask.client_id).to_owned(),
    };
    let reading = match reading(&ask) {
        Ok(reading) => reading,
        Err(reason) => return Ok(told.blocked(reason)),
    };
    let query = match guard.judge(exchange, &ask.query, reading) {
        Ok(query) => query.into_owned(),
        Err(blocked) => return Ok(told.blocked(&blocked.reason())),
    };
    let redacted = query != ask.query;
    if ask.skip_llm {
        let data = json!({"query": query, "redacted": redacted, "skipped": true});
        return Ok(told.passed(&data));
    }
    match complete(exchange, guard, &ask, (&query, &parts.headers)).await? {
        Ok(text) => Ok(told.passed(&json!({"answer": text, "redacted": redacted}))),
        Err(blocked) => Ok(told.blocked(&blocked.reason())),
    }
}

/// How a query is meant; what is of no known kind, or says nothing, does not pass.
fn reading(ask: &Ask) -> Result<InputKind, &'static str> {
    if ask.query.trim().is_empty() {
        return Err("the query is empty");
    }
    let kind = ask.request_type.as_str();
    if QUERIES.contains(&kind) {
        Ok(InputKind::Query)
    } else if PROMPTS.contains(&kind) {
        Ok(InputKind::Text)
    } else {
        Err("the request type is unknown")
    }
}

/// Asks a model, and judges what it says.
async fn complete(
    exchange: &mut Exchange,
    guard: &Guard,
    ask: &Ask,
    (query, headers): (&str, &HeaderMap),
) -> Result<Result<String, Box<Blocked>>, Refusal> {
    let proxy = provider(exchange)?;
    let model = ask.context.get("model").and_then(Value::as_str).unwrap_or(DEFAULT_MODEL);
    let prompt = json!({"model": model, "messages": [{"role": "user", "content": query}]});
    let crossing = Translator::between(Dialect::OpenAi, proxy.upstream.dialect.into());
    let question = Question::simple(Bytes::from(prompt.to_string()), model, crossing);
    let mut parts = hyper::Request::new(()).into_parts().0;
    (parts.method, parts.version) = (Method::POST, Version::HTTP_11);
    parts.uri = Uri::from_static("/v1/chat/completions");
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let key = headers.get(hyper::header::AUTHORIZATION).cloned();
    parts.headers.extend(key.map(|key| (hyper::header::AUTHORIZATION, key)));
    let reply = crate::llm::ask(exchange, parts, &question, &proxy).await?;
    let status = reply.response.status();
    let (_, mut body) = reply.collect(exchange).await?;
    if !status.is_success() {
        return Err(Refusal::bad_gateway(format!("the provider answered {status}")));
    }
    if let Some(crossing) = question.crossing {
        let said = crossing.response(&body, clock::unix_ms() / 1_000);
        body = Bytes::from(said.map_err(|error| Refusal::bad_gateway(error.to_string()))?);
    }
    let said: Value = serde_json::from_slice(&body)
        .map_err(|_| Refusal::bad_gateway("the provider's answer is not JSON"))?;
    let text =
        said.pointer("/choices/0/message/content").and_then(Value::as_str).unwrap_or_default();
    let judged = guard.judge(exchange, text, InputKind::Text);
    Ok(judged.map(std::borrow::Cow::into_owned))
}

/// Model that is asked when the context names none.
const DEFAULT_MODEL: &str = "mock-fast";

/// The first upstream.
fn provider(exchange: &Exchange) -> Result<Proxy, Refusal> {
    let upstream = exchange.config.upstreams.first();
    let upstream = upstream.ok_or_else(|| Refusal::unavailable("no provider is configured"))?;
    Ok(Proxy {
        upstream: Arc::clone(upstream),
        strip: None,
        timeout: upstream.timeout,
        llm: false,
        websocket: false,
    })
}

/// What the caller is told about the policy.
struct Told<'a> {
    guard: &'a Guard,
    started: u64,
    tenant: String,
}

impl Told<'_> {
    fn info(&self) -> Value {
        let evaluated = self.guard.policy.evaluated();
        let millis = clock::now().saturating_sub(self.started) as f64 / 1e6;
        json!({
            "policies_evaluated": evaluated.policies,
            "static_checks": evaluated.checks,
            "processing_time": format!("{millis:.3}ms"),
            "tenant_id": self.tenant,
        })
    }

    fn passed(&self, data: &Value) -> Response<Body> {
        let told =
            json!({"success": true, "data": data, "blocked": false, "policy_info": self.info()});
        answer_json(StatusCode::OK, told.to_string())
    }

    fn blocked(&self, reason: &str) -> Response<Body> {
        let told = json!({
            "success": false, "blocked": true, "block_reason": reason, "policy_info": self.info(),
        });
        answer_json(StatusCode::FORBIDDEN, told.to_string())
    }
}
