//! LLM routes. A request is parsed, checked by the policy, reserved in the budget, looked up in the
//! cache and translated; its response is metered, translated, scrubbed and cached.

mod cache;
mod cache_key;
mod cache_write;
mod complete;
mod parse;
mod ready_response;
mod request;
mod response;
mod send;
mod usage;

use hyper::Response;
use plimsoll_gateway_dialect::{Dialect, Endpoint};

pub(crate) use complete::complete;

use crate::exchange::request_context::RoutedRequest;
use crate::exchange::respond::respond_error;
use crate::exchange::response_body::ResponseBody;
use crate::http::error_response::ErrorFormat;
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
