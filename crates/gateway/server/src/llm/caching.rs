//! The cache of answers: the same question is asked of the upstream once.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Response, StatusCode};
use plimsoll_gateway_dialect::{DialectError, write_cache_key};
use plimsoll_gateway_store::{Answer, CacheKey, Followed, Lead, Lookup};
use ring::digest::{Context, SHA256};
use tokio::time::timeout;

use super::answer::{self, Ready};
use super::settle::{Bill, soon};
use super::{Question, ask, pay, wrong};
use crate::body::{Body, Broken};
use crate::budget::{Tab, remaining};
use crate::clock;
use crate::exchange::Exchange;
use crate::refusal::Refusal;
use crate::relay::Tap;
use crate::router::Proxy;
use crate::worker::Worker;

/// The largest answer that is kept.
const LARGEST: usize = 4 << 20;

/// Answers a question: from the cache, or the upstream.
pub(super) async fn serve(
    exchange: &mut Exchange,
    parts: Parts,
    question: Question,
    proxy: &Proxy,
) -> Result<Ready, Refusal> {
    let tab = pay(exchange, &question).await?;
    let quota = tab.as_ref().map(|tab| remaining(&exchange.config, tab.state()));
    let mut ready = Box::pin(find(exchange, parts, question, (proxy, tab))).await?;
    ready.extra.extend(quota);
    Ok(ready)
}

async fn find(
    exchange: &mut Exchange,
    parts: Parts,
    question: Question,
    (proxy, tab): (&Proxy, Option<Tab>),
) -> Result<Ready, Refusal> {
    let Some(key) = key(exchange, &parts, &question, &proxy.upstream.name)? else {
        let mut ready = fetch(exchange, parts, (question, proxy), (tab, None)).await?;
        let cached = exchange.config.spec.cache.is_some();
        ready.extra.extend(cached.then(|| header("bypass")));
        return Ok(ready);
    };
    let worker = Rc::clone(&exchange.worker);
    let lead = match worker.store().lookup(clock::now(), key).await {
        Lookup::Hit(answer) => return Ok(hit(exchange, &answer)),
        Lookup::Lead(lead) => Some(lead),
        Lookup::Follow(follow) => {
            let waited = timeout(proxy.timeout.0, follow.wait()).await;
            let late = |_| Refusal::upstream_slow("the upstream did not answer in time");
            match waited.map_err(late)? {
                Followed::Answer(answer) => return Ok(hit(exchange, &answer)),
                Followed::Lead(lead) => Some(lead),
                Followed::Alone => None,
            }
        }
    };
    mark(exchange, "miss");
    let mut ready = fetch(exchange, parts, (question, proxy), (tab, lead)).await?;
    ready.extra.push(header("miss"));
    Ok(ready)
}

/// Under which key an answer is kept; `None` where the cache is off or to be passed by.
fn key(
    exchange: &mut Exchange,
    parts: &Parts,
    question: &Question,
    upstream: &str,
) -> Result<Option<CacheKey>, Refusal> {
    let config = Arc::clone(&exchange.config);
    let Some(cache) = &config.spec.cache else { return Ok(None) };
    if parts.headers.contains_key(&cache.bypass_header) {
        mark(exchange, "bypass");
        return Ok(None);
    }
    if let Some(key) = question.key {
        return Ok(Some(key));
    }
    let tenant = exchange.tenant.as_deref().unwrap_or_default();
    let key = digest([tenant, upstream], question).map_err(|error| wrong(&error))?;
    exchange.worker.memo().remember(question, key);
    Ok(Some(key))
}

/// Tenants share no answers, nor do upstreams.
fn digest(apart: [&str; 2], question: &Question) -> Result<CacheKey, DialectError> {
    let mut hash = Context::new(&SHA256);
    for name in apart {
        hash.update(&(name.len() as u64).to_be_bytes());
        hash.update(name.as_bytes());
    }
    write_cache_key(question.endpoint, &question.body, |bytes| hash.update(bytes))?;
    let mut key = [0; 32];
    key.copy_from_slice(hash.finish().as_ref());
    Ok(CacheKey(key))
}

fn mark(exchange: &mut Exchange, state: &'static str) {
    exchange.worker.shared().meters.cache(state);
    if exchange.config.records {
        exchange.notes().cache = Some(state);
    }
}

fn header(state: &'static str) -> (HeaderName, HeaderValue) {
    (HeaderName::from_static("x-cache"), HeaderValue::from_static(state))
}

/// A kept answer, a stream in its own pieces. What was set aside for it is given back.
fn hit(exchange: &mut Exchange, answer: &Answer) -> Ready {
    mark(exchange, "hit");
    let body = match answer.frames.as_slice() {
        [whole] => Body::Full(whole.clone()),
        frames => Body::Pieces(frames.iter().cloned().collect()),
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or_default();
    for (name, value) in &answer.headers {
        let name = HeaderName::from_bytes(name);
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_maybe_shared(value.clone())) {
            response.headers_mut().insert(name, value);
        }
    }
    Ready { response, extra: vec![header("hit")] }
}

async fn fetch(
    exchange: &mut Exchange,
    parts: Parts,
    (question, proxy): (Question, &Proxy),
    (tab, lead): (Option<Tab>, Option<Lead>),
) -> Result<Ready, Refusal> {
    let ttl = exchange.config.spec.cache.as_ref().map_or(Duration::ZERO, |cache| cache.ttl.0);
    let reply = ask(exchange, parts, &question, proxy).await?;
    let keep = lead.map(|lead| Keep { lead, ttl, worker: Rc::clone(&exchange.worker) });
    answer::relay(exchange, reply, (&question, proxy), (tab, keep)).await
}

/// The duty to keep an answer.
pub(super) struct Keep {
    lead: Lead,
    ttl: Duration,
    worker: Rc<Worker>,
}

impl Keep {
    /// It cannot be kept: all who wait for it ask for themselves.
    pub(super) fn not(self) {
        self.lead.alone();
    }

    /// Keeps a whole answer, and gives it to all who wait.
    pub(super) fn whole(self, kind: Option<&HeaderValue>, body: Bytes) {
        self.fill(kind, vec![body]);
    }

    fn fill(self, kind: Option<&HeaderValue>, frames: Vec<Bytes>) {
        let kind = kind.map(|kind| {
            (
                Bytes::from_static(CONTENT_TYPE.as_str().as_bytes()),
                Bytes::copy_from_slice(kind.as_bytes()),
            )
        });
        let answer = Answer { status: 200, headers: kind.into_iter().collect(), frames };
        let Self { lead, ttl, worker: _worker } = self;
        soon(async move { lead.fill(clock::now(), answer, ttl).await });
    }
}

/// Records an answer as it goes to the client.
pub(super) struct Recorder {
    keep: Option<Keep>,
    kind: Option<HeaderValue>,
    bill: Rc<Bill>,
    frames: Vec<Bytes>,
    size: usize,
}

impl Recorder {
    /// The bill says whether the answer was whole.
    pub(super) const fn new(keep: Keep, kind: Option<HeaderValue>, bill: Rc<Bill>) -> Self {
        Self { keep: Some(keep), kind, bill, frames: Vec::new(), size: 0 }
    }
}

impl Tap for Recorder {
    fn piece(&mut self, piece: Bytes) -> Result<Bytes, Broken> {
        if self.keep.is_some() {
            self.size += piece.len();
            // A copy of its own: the piece may hold on to a much larger buffer.
            self.frames.push(Bytes::copy_from_slice(&piece));
        }
        if self.size > LARGEST {
            self.frames = Vec::new();
            if let Some(keep) = self.keep.take() {
                keep.not();
            }
        }
        Ok(piece)
    }

    /// Only what is whole is kept; dropped before, the duty passes to one of those who wait.
    fn end(&mut self) -> Result<Bytes, Broken> {
        match self.keep.take() {
            Some(keep) if self.bill.is_truncated() => keep.not(),
            Some(keep) => keep.fill(self.kind.as_ref(), std::mem::take(&mut self.frames)),
            None => {}
        }
        Ok(Bytes::new())
    }

    fn is_silent(&self) -> bool {
        true
    }
}
