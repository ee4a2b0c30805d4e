//! LLM routes: the request is parsed, checked by the policy, paid for, looked up in the cache and
//! translated; its response is metered, translated, scrubbed and cached.

mod cache;
mod cache_key;
mod cache_write;
mod parse;
mod parse_cache;
mod ready_response;
mod request;
mod response;
mod send;
mod usage;

use hyper::Response;
use plimsoll_gateway_dialect::{Dialect, Endpoint};

use crate::error_response::ErrorFormat;
use crate::request_context::RoutedRequest;
use crate::respond::respond_error;
use crate::response_body::ResponseBody;
use crate::router::Proxy;

pub(crate) use parse_cache::ParseCache;
pub(crate) use request::LlmRequest;
pub(crate) use send::send_upstream;
pub(crate) use usage::ObservedUsage;

/// The dialect of a path, whose error format the caller expects.
pub(crate) fn dialect_of(path: &str, proxy: &Proxy) -> Dialect {
    let path = request::strip_prefix(path, proxy.strip.as_deref());
    Endpoint::from_path(path).map_or(Dialect::OpenAi, Endpoint::dialect)
}

/// Serves a request of an LLM route.
pub(crate) async fn serve(
    routed: RoutedRequest,
    proxy: &Proxy,
    format: ErrorFormat,
) -> Response<ResponseBody> {
    let RoutedRequest { request, mut context, .. } = routed;
    let (parts, body) = request.into_parts();
    match parse::parse(&mut context, &parts, body, proxy).await {
        Ok(request) => match cache::serve(&mut context, parts, request, proxy).await {
            Ok(ready) => ready.into_response(context),
            Err(error) => respond_error(context, error, format),
        },
        Err(error) => respond_error(context, error, format),
    }
}
