//! An upstream's answer on its way back: counted, translated, scrubbed, recorded.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use hyper::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::http::response::Parts;
use hyper::{Response, StatusCode};
use plimsoll_gateway_dialect::{
    Endpoint, StreamSettings, StreamTranslator, Streaming, Translator, Usage, rewrite_response,
};
use plimsoll_gateway_policy::{Action, Actions, InputKind, Policy};

use super::caching::{Keep, Recorder};
use super::settle::{Bill, Meter};
use super::{Question, wrong};
use crate::body::{Body, Broken};
use crate::budget::Tab;
use crate::clock;
use crate::exchange::Exchange;
use crate::refusal::Refusal;
use crate::relay::{Relay, Tap};
use crate::router::Proxy;
use crate::scrub::ScrubDeltas;
use crate::service::forward::{Reply, is_stream};

/// An answer that only has to be booked and sent.
pub(crate) struct Ready {
    pub(super) response: Response<Body>,
    pub(super) extra: Vec<(HeaderName, HeaderValue)>,
}

impl Ready {
    pub(super) fn into_response(self, mut exchange: Exchange) -> Response<Body> {
        let mut response = self.response;
        for (name, value) in self.extra {
            response.headers_mut().insert(name, value);
        }
        exchange.status = response.status();
        match response.body_mut() {
            Body::Relay(relay) => relay.account_to(exchange),
            Body::Pieces(pieces) => {
                for piece in pieces.iter() {
                    exchange.sent(piece.len());
                }
                exchange.finish(true);
            }
            Body::Full(_) => crate::service::close(&mut exchange, &response),
        }
        response
    }

    fn of(parts: Parts, body: Body) -> Self {
        Self { response: Response::from_parts(parts, body), extra: Vec::new() }
    }
}

/// The answer for the caller.
pub(super) async fn relay(
    exchange: &mut Exchange,
    reply: Reply,
    (question, proxy): (&Question, &Proxy),
    (tab, keep): (Option<Tab>, Option<Keep>),
) -> Result<Ready, Refusal> {
    let status = reply.response.status();
    let bill = Rc::new(Bill::default());
    exchange.bill = Some(Rc::clone(&bill));
    if status != StatusCode::OK {
        if let Some(keep) = keep {
            keep.not();
        }
        return failed(exchange, reply, question).await;
    }
    let stream = is_stream(reply.response.headers());
    let opaque = reply.response.headers().contains_key(CONTENT_ENCODING);
    let changed = question.crossing.is_some() || exchange.config.scrub.is_some();
    if !stream && changed && !opaque {
        return whole(exchange, reply, question, (tab, keep, &bill)).await;
    }
    let endpoint = upstream_endpoint(question);
    let (mut parts, mut relay) = reply.into_relay(exchange, &proxy.upstream);
    // Nobody else asks what it cost, or whether it was whole.
    if tab.is_some() || keep.is_some() || exchange.config.records {
        relay.tap(Box::new(Meter::new((endpoint, stream), tab, &bill, &exchange.config)));
    }
    if stream && !opaque {
        shape(exchange, question, &mut relay);
    }
    match keep {
        // Kept without its encoding nobody could read it.
        Some(keep) if opaque => keep.not(),
        Some(keep) => {
            let kind = parts.headers.get(CONTENT_TYPE).cloned();
            relay.tap(Box::new(Recorder::new(keep, kind, bill)));
        }
        None => {}
    }
    if relay.is_changed() {
        parts.headers.remove(CONTENT_LENGTH);
    }
    Ok(Ready::of(parts, Body::Relay(Box::new(relay))))
}

/// The endpoint whose words the answer uses.
fn upstream_endpoint(question: &Question) -> Endpoint {
    question.crossing.map_or(question.endpoint, Translator::upstream_endpoint)
}

/// What changes a stream on its way.
fn shape(exchange: &Exchange, question: &Question, relay: &mut Relay) {
    if let Some(crossing) = question.crossing {
        let settings = StreamSettings {
            created: clock::unix_ms() / 1_000,
            include_usage: question.streaming == Streaming::WithUsage,
            prompt_tokens: question.prompt_tokens,
        };
        relay.tap(Box::new(Translate(crossing.stream(settings))));
    }
    if let Some(policy) = &exchange.config.scrub {
        let deltas = ScrubDeltas::new(Arc::clone(policy), question.endpoint.dialect());
        relay.tap(Box::new(deltas));
    }
}

/// A stream in another dialect.
struct Translate(StreamTranslator);

impl Tap for Translate {
    fn piece(&mut self, piece: Bytes) -> Result<Bytes, Broken> {
        let mut out = Vec::with_capacity(piece.len());
        self.0.feed(&piece, &mut out)?;
        Ok(Bytes::from(out))
    }

    /// A stream that ended before its last event is broken off for the caller, too.
    fn end(&mut self) -> Result<Bytes, Broken> {
        self.0.finish()?;
        Ok(Bytes::new())
    }
}

/// An upstream's error, in the caller's envelope.
async fn failed(exchange: &Exchange, reply: Reply, question: &Question) -> Result<Ready, Refusal> {
    let (mut parts, body) = reply.collect(exchange).await?;
    let Some(crossing) = question.crossing else {
        return Ok(Ready::of(parts, Body::Full(body)));
    };
    let (status, body) = crossing.error(parts.status.as_u16(), &body);
    parts.status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    retype(&mut parts);
    Ok(Ready::of(parts, Body::Full(Bytes::from(body))))
}

fn retype(parts: &mut Parts) {
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
}

/// An answer that is not streamed, and changed.
async fn whole(
    exchange: &Exchange,
    reply: Reply,
    question: &Question,
    (tab, keep, bill): (Option<Tab>, Option<Keep>, &Bill),
) -> Result<Ready, Refusal> {
    let (mut parts, mut body) = reply.collect(exchange).await?;
    let wanted = tab.is_some() || exchange.config.records;
    let usage = wanted.then(|| Usage::from_body(upstream_endpoint(question), &body).ok()).flatten();
    let usage = usage.flatten();
    bill.enter(usage);
    if let Some(tab) = tab {
        tab.settle(&exchange.config, usage, 0).await;
    }
    if let Some(crossing) = question.crossing {
        let said = crossing.response(&body, clock::unix_ms() / 1_000);
        body = Bytes::from(said.map_err(|error| wrong(&error))?);
    }
    if let Some(policy) = &exchange.config.scrub {
        let scrubbed = rewrite_response(question.endpoint, &body, |text| scrub(policy, text));
        body = scrubbed.map_err(|error| wrong(&error))?.map_or(body, Bytes::from);
    }
    retype(&mut parts);
    if let Some(keep) = keep {
        keep.whole(parts.headers.get(CONTENT_TYPE), body.clone());
    }
    Ok(Ready::of(parts, Body::Full(body)))
}

/// A whole text without its personal data.
fn scrub<'t>(policy: &Policy, text: &'t str) -> Cow<'t, str> {
    const PERSONAL: Actions = Actions { pii: Action::Redact, ..Actions::all(Action::Allow) };
    policy.scan(text, InputKind::Text, &PERSONAL).text
}
