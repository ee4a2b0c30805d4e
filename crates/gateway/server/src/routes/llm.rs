//! LLM routes: the request is parsed, checked by the policy, paid for, looked up in the cache and
//! translated; its response is metered, translated, scrubbed and cached.

mod cache;
mod cache_key;
mod complete;
mod parse;
mod request;
mod response;
mod send;

use std::mem;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
pub(crate) use complete::complete;
use hyper::Response;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::http::response::Parts;
use plimsoll_gateway_dialect::{Dialect, Endpoint, UsageObserver};
use plimsoll_gateway_store::{CachedResponse, Lead};

use crate::base::clock;
use crate::base::poll_or_spawn;
use crate::exchange::ResponseBody;
use crate::exchange::request_context::{RequestContext, RoutedRequest};
use crate::exchange::respond::{Header, finish, respond_error, with_headers};
use crate::http::error_response::ErrorFormat;
use crate::http::{BodyFilter, BoxError};
use crate::layers::ObservedUsage;
use crate::layers::budget::RequestReservation;
use crate::upstream::proxy::{Proxy, strip_prefix};

/// The dialect of a path, whose error format the caller expects.
pub(crate) fn dialect_of(path: &str, proxy: &Proxy) -> Dialect {
    let path = strip_prefix(path, proxy.strip.as_deref());
    Endpoint::from_path(path).map_or(Dialect::OpenAi, Endpoint::dialect)
}

/// Serves a request of an LLM route.
pub(crate) async fn serve(
    routed: RoutedRequest,
    proxy: &Proxy,
    format: ErrorFormat,
) -> Response<ResponseBody> {
    let RoutedRequest { request, mut context, .. } = routed;
    let (mut parts, body) = request.into_parts();
    let result = match parse::parse(&mut context, &parts, body, proxy).await {
        Ok(request) => cache::serve(&mut context, &mut parts, &request, proxy).await,
        Err(error) => Err(error),
    };
    match result {
        Ok(ready) => ready.into_response(context),
        Err(error) => respond_error(context, error, format),
    }
}

/// The largest response that is cached.
const MAX_BYTES: usize = 4 << 20;

/// The task to write a response to the cache, for which other requests may be waiting.
struct CacheWrite {
    lead: Lead,
    ttl: Duration,
}

impl CacheWrite {
    /// The response cannot be cached: all that wait for it send their own request.
    fn cancel(self) {
        self.lead.alone();
    }

    /// As [`Self::write`], for a response in one piece. The copy is the cache's own: it counts it.
    fn write_whole(self, content_type: Option<&HeaderValue>, body: &Bytes) {
        if body.len() > MAX_BYTES {
            return self.cancel();
        }
        self.write(content_type, vec![Bytes::copy_from_slice(body)]);
    }

    /// Caches a response, frame by frame, and hands it to all that wait.
    fn write(self, content_type: Option<&HeaderValue>, frames: Vec<Bytes>) {
        let content_type = content_type.map(|value| {
            (
                Bytes::from_static(CONTENT_TYPE.as_str().as_bytes()),
                Bytes::copy_from_slice(value.as_bytes()),
            )
        });
        let answer =
            CachedResponse { status: 200, headers: content_type.into_iter().collect(), frames };
        let Self { lead, ttl } = self;
        poll_or_spawn(async move { lead.fill(clock::now(), answer, ttl).await });
    }
}

/// Records a response on its way to the client, and caches it at its end.
struct CacheFilter {
    write: Option<CacheWrite>,
    content_type: Option<HeaderValue>,
    usage: Rc<ObservedUsage>,
    frames: Vec<Bytes>,
    size: usize,
}

impl CacheFilter {
    /// `usage` tells at the end whether the response was a whole and good answer.
    const fn new(
        write: CacheWrite,
        content_type: Option<HeaderValue>,
        usage: Rc<ObservedUsage>,
    ) -> Self {
        Self { write: Some(write), content_type, usage, frames: Vec::new(), size: 0 }
    }
}

impl BodyFilter for CacheFilter {
    fn chunk(&mut self, chunk: Bytes) -> Result<Bytes, BoxError> {
        if self.write.is_some() {
            self.size += chunk.len();
            // A copy, since the chunk may keep a much larger buffer alive.
            self.frames.push(Bytes::copy_from_slice(&chunk));
        }
        if self.size > MAX_BYTES {
            self.frames = Vec::new();
            self.size = 0;
            if let Some(write) = self.write.take() {
                write.cancel();
            }
        }
        Ok(chunk)
    }

    /// Only whole and good answers are cached. If the filter is dropped before, one of those that
    /// wait takes over.
    fn end(&mut self) -> Result<Bytes, BoxError> {
        match self.write.take() {
            Some(write) if self.usage.is_answer() => {
                write.write(self.content_type.as_ref(), mem::take(&mut self.frames));
            }
            Some(write) => write.cancel(),
            None => {}
        }
        Ok(Bytes::new())
    }

    fn held(&self) -> usize {
        self.size
    }

    fn is_transparent(&self) -> bool {
        true
    }
}

/// A response that only lacks some headers and its context.
struct ReadyResponse {
    response: Response<ResponseBody>,
    headers: Vec<Header>,
}

impl ReadyResponse {
    fn new(parts: Parts, body: ResponseBody) -> Self {
        Self { response: Response::from_parts(parts, body), headers: Vec::new() }
    }

    /// The complete response; the context is finished with its body.
    fn into_response(self, mut context: Box<RequestContext>) -> Response<ResponseBody> {
        let mut response = with_headers(self.response, self.headers);
        context.status = response.status();
        match response.body_mut() {
            ResponseBody::Proxy(body) => body.set_context(context),
            ResponseBody::Frames(frames) => {
                for frame in frames.iter() {
                    context.count_sent(frame.len());
                }
                context.finish(true);
            }
            ResponseBody::Full(_) => finish(&mut context, &response),
        }
        response
    }
}

/// Observes the usage of a passing response, and settles its reservation at the end. The bytes stay
/// unchanged: a truncated stream reaches the client truncated.
struct UsageFilter {
    observer: UsageObserver,
    is_stream: bool,
    reservation: Option<RequestReservation>,
    usage: Rc<ObservedUsage>,
}

impl UsageFilter {
    /// `endpoint` is the upstream's, whose dialect the response has.
    fn new(
        endpoint: Endpoint,
        is_stream: bool,
        reservation: Option<RequestReservation>,
        usage: &Rc<ObservedUsage>,
    ) -> Self {
        let observer =
            if is_stream { UsageObserver::stream(endpoint) } else { UsageObserver::body(endpoint) };
        Self { observer, is_stream, reservation, usage: Rc::clone(usage) }
    }

    fn settle(&mut self, has_ended: bool) {
        let usage = self.observer.usage();
        self.usage.set(usage);
        // A whole response that is no answer tells nothing of its cost, such as that of a task in
        // the background, and neither does a stream in which nothing is understood: the reservation
        // is charged.
        let is_read = self.is_stream && self.observer.is_understood(has_ended);
        let is_known = is_read || usage.is_some() || self.observer.is_answer();
        if let Some(reservation) = self.reservation.take().filter(|_| is_known) {
            let estimated = self.observer.estimated_tokens();
            poll_or_spawn(async move { reservation.settle(usage, estimated).await });
        }
    }
}

impl BodyFilter for UsageFilter {
    fn chunk(&mut self, chunk: Bytes) -> Result<Bytes, BoxError> {
        self.observer.feed(&chunk);
        Ok(chunk)
    }

    fn end(&mut self) -> Result<Bytes, BoxError> {
        let ending = self.observer.finish();
        self.usage.set_ending(self.is_stream.then_some(ending), self.observer.is_answer());
        self.settle(true);
        Ok(Bytes::new())
    }

    fn held(&self) -> usize {
        self.observer.buffered()
    }

    fn is_transparent(&self) -> bool {
        true
    }
}

/// An aborted stream costs the tokens that passed. Of a whole response the upstream had done all
/// before it began: its reservation is charged.
impl Drop for UsageFilter {
    fn drop(&mut self) {
        if self.is_stream {
            self.settle(false);
        }
    }
}
