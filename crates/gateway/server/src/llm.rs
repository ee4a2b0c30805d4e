//! LLM routes: the request is read, judged, paid for, looked up, translated, and its answer relayed.

mod answer;
mod caching;
mod memo;
mod settle;

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Response};
use plimsoll_gateway_dialect::{
    Dialect, DialectError, Endpoint, RequestView, Streaming, Translator,
};
use plimsoll_gateway_policy::InputKind;
use plimsoll_gateway_store::CacheKey;

use crate::auth::bearer;
use crate::body::{Body, Upload};
use crate::budget;
use crate::exchange::Exchange;
use crate::refusal::{Refusal, Voice};
use crate::router::Proxy;
use crate::service::forward::{self, Reply};
use crate::service::{Call, expect_json, expect_method, refuse};
use crate::spec::DialectSpec;

pub(crate) use memo::Memo;
pub(crate) use settle::Bill;

/// The version of Anthropic's interface that is spoken where the caller named none.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// What is asked, and how it is to be answered.
pub(crate) struct Question {
    pub(crate) endpoint: Endpoint,
    pub(crate) streaming: Streaming,
    pub(crate) body: Bytes,
    /// An estimate.
    pub(crate) prompt_tokens: u64,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) model: Arc<str>,
    /// Where the upstream speaks another dialect.
    pub(crate) crossing: Option<Translator>,
    /// Digest of the request as it came, where it may be remembered.
    raw: Option<memo::Raw>,
    /// Under which key its answer is kept, if that is known already.
    key: Option<CacheKey>,
}

impl Question {
    /// A chat of the gateway's own making, not streamed, neither paid for nor kept.
    pub(crate) fn simple(body: Bytes, model: &str, crossing: Option<Translator>) -> Self {
        Self {
            endpoint: Endpoint::Chat,
            streaming: Streaming::No,
            body,
            prompt_tokens: 0,
            max_tokens: None,
            model: Arc::from(model),
            crossing,
            raw: None,
            key: None,
        }
    }
}

impl From<DialectSpec> for Dialect {
    fn from(spec: DialectSpec) -> Self {
        match spec {
            DialectSpec::Openai => Self::OpenAi,
            DialectSpec::Anthropic => Self::Anthropic,
        }
    }
}

/// The dialect of a path, whose envelope the caller expects.
pub(crate) fn dialect_of(path: &str, proxy: &Proxy) -> Dialect {
    let path = stripped(path, proxy.strip.as_deref());
    Endpoint::from_path(path).map_or(Dialect::OpenAi, Endpoint::dialect)
}

/// Serves a request of an LLM route.
pub(crate) async fn serve(call: Call, proxy: &Proxy, voice: Voice) -> Response<Body> {
    let Call { request, mut exchange, .. } = call;
    let (parts, body) = request.into_parts();
    match take(&mut exchange, &parts, body, proxy).await {
        Ok(question) => match caching::serve(&mut exchange, parts, question, proxy).await {
            Ok(ready) => ready.into_response(exchange),
            Err(refusal) => refuse(exchange, refusal, voice),
        },
        Err(refusal) => refuse(exchange, refusal, voice),
    }
}

/// Reads and judges a request.
async fn take(
    exchange: &mut Exchange,
    parts: &Parts,
    body: hyper::body::Incoming,
    proxy: &Proxy,
) -> Result<Question, Refusal> {
    expect_method(&parts.method, &Method::POST)?;
    expect_json(&parts.headers)?;
    let path = stripped(parts.uri.path(), proxy.strip.as_deref());
    let endpoint = Endpoint::from_path(path)
        .ok_or_else(|| Refusal::not_found(format!("`{path}` is no endpoint of an LLM")))?;
    let upstream = Dialect::from(proxy.upstream.dialect);
    if endpoint.counterpart(upstream).is_none() {
        let why = format!("`{path}` cannot be said in the dialect of the route's upstream");
        return Err(Refusal::not_found(why));
    }
    let config = Arc::clone(&exchange.config);
    let body = forward::collect(&config, body).await?;
    exchange.received = body.len() as u64;
    let crossing = Translator::between(endpoint.dialect(), upstream);
    // A text that is to be judged is judged every time.
    let raw = (config.spec.cache.is_some() && config.guard.is_none()).then(|| {
        let tenant = exchange.tenant.as_deref().unwrap_or_default();
        memo::digest([tenant, &proxy.upstream.name], endpoint, &body)
    });
    let known = raw.as_ref().and_then(|raw| exchange.worker.memo().recall(raw));
    let question = match known {
        Some(known) => Question {
            endpoint,
            streaming: known.streaming,
            body,
            prompt_tokens: known.prompt_tokens,
            max_tokens: known.max_tokens,
            model: known.model,
            crossing,
            raw: None,
            key: Some(known.key),
        },
        None => read(exchange, endpoint, body, (crossing, raw))?,
    };
    if config.records {
        exchange.notes().model = Some(Arc::clone(&question.model));
    }
    Ok(question)
}

/// Reads and judges a body.
fn read(
    exchange: &mut Exchange,
    endpoint: Endpoint,
    body: Bytes,
    (crossing, raw): (Option<Translator>, Option<memo::Raw>),
) -> Result<Question, Refusal> {
    let peek = RequestView::read(endpoint, &body).map_err(|error| wrong(&error))?;
    let (streaming, max_tokens) = (peek.streaming(), peek.max_tokens());
    let counts = exchange.config.budgets.is_some() || crossing.is_some() || raw.is_some();
    let prompt_tokens = if counts { peek.prompt_tokens() } else { 0 };
    let model = Arc::from(peek.model());
    let changed = judge(exchange, &peek)?;
    let body = changed.map_or(body, Bytes::from);
    let key = None;
    Ok(Question { endpoint, streaming, body, prompt_tokens, max_tokens, model, crossing, raw, key })
}

fn stripped<'a>(path: &'a str, prefix: Option<&str>) -> &'a str {
    prefix.and_then(|prefix| path.strip_prefix(prefix)).unwrap_or(path)
}

/// Scans every text of a request; the changed body comes back where something was redacted.
fn judge(exchange: &mut Exchange, peek: &RequestView<'_>) -> Result<Option<Vec<u8>>, Refusal> {
    let config = Arc::clone(&exchange.config);
    let Some(guard) = &config.guard else { return Ok(None) };
    let mut changed = Vec::new();
    for (at, text) in peek.texts().iter().enumerate() {
        let judged = guard.judge(exchange, text.as_str(), InputKind::Text)?;
        if let Cow::Owned(redacted) = judged {
            changed.resize(at, None);
            changed.push(Some(redacted));
        }
    }
    if changed.is_empty() {
        return Ok(None);
    }
    let mut changed = changed.into_iter();
    peek.rewrite(|text| changed.next().flatten().map_or(Cow::Borrowed(text), Cow::Owned))
        .map_err(|error| wrong(&error))
}

/// A request that its dialect does not know.
fn wrong(error: &DialectError) -> Refusal {
    match error.status() {
        400 => Refusal::bad_request(error.to_string()),
        _ => Refusal::bad_gateway(error.to_string()),
    }
}

/// Asks the upstream.
pub(crate) async fn ask(
    exchange: &Exchange,
    mut parts: Parts,
    question: &Question,
    proxy: &Proxy,
) -> Result<Reply, Refusal> {
    let body = match &question.crossing {
        None => question.body.clone(),
        Some(crossing) => {
            let path = crossing.upstream_endpoint().path();
            parts.uri = hyper::Uri::from_static(path);
            translate_head(&mut parts.headers, crossing.upstream_endpoint().dialect());
            let body = crossing.request(&question.body, None);
            Bytes::from(body.map_err(|error| wrong(&error))?)
        }
    };
    // Answers that are looked into must not be compressed, nor those that are kept for other callers.
    let kept = exchange.config.spec.cache.is_some();
    if kept || question.crossing.is_some() || exchange.config.looks_into_answers() {
        parts.headers.remove(hyper::header::ACCEPT_ENCODING);
    }
    forward::send(exchange, proxy, parts, Upload::Full(body)).await
}

/// The credential and the version where the other dialect has them.
fn translate_head(headers: &mut HeaderMap, upstream: Dialect) {
    let api_key = HeaderName::from_static("x-api-key");
    let version = HeaderName::from_static("anthropic-version");
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if upstream == Dialect::Anthropic {
        headers.entry(version).or_insert(HeaderValue::from_static(ANTHROPIC_VERSION));
        let key = headers.remove(AUTHORIZATION);
        let key = key.as_ref().and_then(|key| bearer(key.as_bytes()));
        if let Some(Ok(key)) = key.map(HeaderValue::from_bytes) {
            headers.insert(api_key, key);
        }
        return;
    }
    headers.remove(version);
    let Some(key) = headers.remove(api_key) else { return };
    let value = [b"Bearer ", key.as_bytes()].concat();
    if let Ok(value) = HeaderValue::try_from(value) {
        headers.insert(AUTHORIZATION, value);
    }
}

/// Sets aside what a question may cost.
pub(crate) async fn pay(
    exchange: &Exchange,
    question: &Question,
) -> Result<Option<budget::Tab>, Refusal> {
    budget::open(exchange, question.prompt_tokens, question.max_tokens).await
}
