//! LLM routes. A request is parsed, checked by the policy, reserved in the budget, looked up in the
//! cache and translated; its response is metered, translated, scrubbed and cached.

mod cache;
mod cache_key;
mod cache_write;
mod complete;
mod parse;
mod request;
mod response;
mod send;

use std::rc::Rc;

use bytes::Bytes;
pub(crate) use complete::complete;
use hyper::Response;
use hyper::http::response::Parts;
use plimsoll_gateway_dialect::{Dialect, Endpoint, UsageObserver};

use crate::base::poll_or_spawn::poll_or_spawn;
use crate::exchange::request_context::{RequestContext, RoutedRequest};
use crate::exchange::respond::{Header, finish, respond_error, with_headers};
use crate::exchange::response_body::ResponseBody;
use crate::http::body_filter::{BodyFilter, BoxError};
use crate::http::error_response::ErrorFormat;
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

/// A response without its final headers and context.
struct ReadyResponse {
    response: Response<ResponseBody>,
    headers: Vec<Header>,
}

impl ReadyResponse {
    fn new(parts: Parts, body: ResponseBody) -> Self {
        Self { response: Response::from_parts(parts, body), headers: Vec::new() }
    }

    /// Adds the context, which finishes with the body.
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
/// unchanged, so a truncated stream reaches the client truncated.
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
        self.usage.usage.set(usage);
        // The reservation is charged if the usage is unknown: for a whole response that is not an
        // answer, such as a background task, and for a stream without known events.
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
        self.usage.ending.set(self.is_stream.then_some(ending));
        self.usage.is_answer.set(self.observer.is_answer());
        self.settle(true);
        Ok(Bytes::new())
    }

    fn buffered_bytes(&self) -> usize {
        self.observer.buffered()
    }

    fn is_transparent(&self) -> bool {
        true
    }
}

/// An aborted stream costs the tokens so far. For a whole response the upstream had finished before
/// it began, so its reservation is charged.
impl Drop for UsageFilter {
    fn drop(&mut self) {
        if self.is_stream {
            self.settle(false);
        }
    }
}
