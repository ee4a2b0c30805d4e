//! LLM routes: the request is parsed, checked by the policy, paid for, looked up in the cache and
//! translated; its response is metered, translated, scrubbed and cached.

mod cache;
mod cache_key;
mod cache_write;
mod complete;
mod parse;
mod parse_cache;
mod ready_response;
mod request;
mod response;
mod send;
mod usage;

use bytes::Bytes;
use hyper::Response;
use hyper::http::request::Parts;
use plimsoll_gateway_dialect::{Dialect, Endpoint};

use crate::http::error_response::{ErrorFormat, ErrorResponse};
use crate::http::respond::respond_error;
use crate::http::response_body::ResponseBody;
use crate::request_context::{RequestContext, RoutedRequest};
use crate::routes::router::{Proxy, strip_prefix};

pub(crate) use complete::complete;
pub(crate) use parse_cache::ParseCache;
use request::LlmRequest;
pub(crate) use usage::ObservedUsage;

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
    let parsed = parse::parse(&mut context, &parts, body, proxy).await;
    answer(context, &mut parts, parsed, proxy, format).await
}

/// Serves a chat that has not come as a request of its own.
pub(crate) async fn serve_chat(
    mut context: Box<RequestContext>,
    mut parts: Parts,
    body: Bytes,
    proxy: &Proxy,
    format: ErrorFormat,
) -> Response<ResponseBody> {
    let parsed = parse::parse_chat(&mut context, body, proxy).await;
    answer(context, &mut parts, parsed, proxy, format).await
}

async fn answer(
    mut context: Box<RequestContext>,
    parts: &mut Parts,
    parsed: Result<LlmRequest, ErrorResponse>,
    proxy: &Proxy,
    format: ErrorFormat,
) -> Response<ResponseBody> {
    match parsed {
        Ok(request) => match cache::serve(&mut context, parts, &request, proxy).await {
            Ok(ready) => ready.into_response(context),
            Err(error) => respond_error(context, error, format),
        },
        Err(error) => respond_error(context, error, format),
    }
}
