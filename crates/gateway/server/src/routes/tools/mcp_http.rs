//! MCP over HTTP: reads the heads of requests, and writes answers.

use bytes::Bytes;
use hyper::header::{ACCEPT, ALLOW, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, ORIGIN};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use hyper::{Response, StatusCode, Uri};
use plimsoll_gateway_mcp::mcp_server::{Headers, Refusal};
use plimsoll_gateway_mcp::rpc;
use plimsoll_gateway_mcp::version::{METHOD_HEADER, NAME_HEADER, SESSION_HEADER, VERSION_HEADER};

use crate::exchange::request_context::RequestContext;
use crate::exchange::respond::{HandlerResult, json as json_response};
use crate::exchange::response_body::ResponseBody;
use crate::http::error_response::ErrorResponse;

/// The MCP headers of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head<'a> {
    pub(super) headers: Headers<'a>,
    pub(super) session: Option<&'a str>,
    /// The client accepts only streams of events.
    only_events: bool,
}

impl<'a> Head<'a> {
    /// # Errors
    /// The head is invalid for a message, or shows a browser page of another site.
    pub(super) fn read(parts: &'a Parts, answers_are_json: bool) -> Result<Self, Refusal> {
        let headers = &parts.headers;
        if !is_own(&parts.uri, headers) {
            return Err(Refusal::new(403, "the header Origin names another site"));
        }
        let (json, events) = accepted(headers);
        if !json && (answers_are_json || !events) {
            let problem = "the client must accept application/json";
            return Err(Refusal::new(406, problem));
        }
        let head = Self {
            headers: Headers {
                version: single(headers, VERSION_HEADER)?,
                method: single(headers, METHOD_HEADER)?,
                name: single(headers, NAME_HEADER)?,
            },
            session: single(headers, SESSION_HEADER)?,
            only_events: !json,
        };
        Ok(head)
    }

    /// The response with a message.
    pub(super) fn answer(
        &self,
        context: &RequestContext,
        status: u16,
        message: Vec<u8>,
    ) -> HandlerResult {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
        if !(self.only_events && status == StatusCode::OK) {
            return Ok(json_response(status, context.made(message)?));
        }
        let mut response = Response::new(ResponseBody::Full(context.made(event(message))?));
        let kind = HeaderValue::from_static("text/event-stream");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        Ok(response)
    }
}

/// A message as an event. JSON has line breaks only between its tokens.
fn event(mut message: Vec<u8>) -> Vec<u8> {
    for byte in message.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')) {
        *byte = b' ';
    }
    [b"event: message\ndata: ", &*message, b"\n\n"].concat()
}

/// The response to a refused request.
pub(super) fn refuse(context: &RequestContext, refusal: &Refusal) -> Response<ResponseBody> {
    context.worker.metrics().count_error("invalid_rpc");
    let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::BAD_REQUEST);
    json_response(status, rpc::failure(refusal.id.as_deref(), &refusal.error))
}

/// The response to an accepted notification.
pub(super) fn accept() -> Response<ResponseBody> {
    empty(StatusCode::ACCEPTED)
}

/// A response without a body.
pub(super) fn empty(status: StatusCode) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::Full(Bytes::new()));
    *response.status_mut() = status;
    response
}

/// The response to another method.
pub(super) fn wrong_method(has_sessions: bool) -> ErrorResponse {
    let allowed = if has_sessions { "POST, DELETE" } else { "POST" };
    let mut error = ErrorResponse::method_not_allowed(format!("use {allowed}"));
    error.headers.push((ALLOW, HeaderValue::from_static(allowed)));
    error
}

/// Adds the id of a new session.
pub(super) fn with_session(
    mut response: Response<ResponseBody>,
    session: &str,
) -> Response<ResponseBody> {
    if let Ok(value) = HeaderValue::try_from(session) {
        response.headers_mut().insert(SESSION_HEADER, value);
    }
    response
}

/// A header that may occur once. With two, readers may use different ones.
fn single<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Refusal> {
    let mut all = headers.get_all(name).iter();
    let Some(value) = all.next() else { return Ok(None) };
    let text = value.to_str().ok().filter(|_| all.next().is_none());
    text.map(Some).ok_or_else(|| Refusal::new(400, &format!("the header {name} is malformed")))
}

/// Whether the client accepts JSON, and streams of events.
fn accepted(headers: &HeaderMap) -> (bool, bool) {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let kinds = values
        .flat_map(|value| value.split(','))
        .map(|kind| kind.split(';').next().unwrap_or_default().trim());
    let (mut any, mut json, mut events) = (true, false, false);
    for kind in kinds {
        let is = |wanted: &str| kind.eq_ignore_ascii_case(wanted);
        any = false;
        json |= is("*/*") || is("application/*") || is("application/json");
        events |= is("*/*") || is("text/*") || is("text/event-stream");
    }
    (any || json, any || events)
}

/// Whether the request is free of signs of a browser page from another site. Such a page can point
/// its own host name to this gateway (DNS rebinding), so requests from pages must use an address or
/// `localhost` as host.
fn is_own(uri: &Uri, headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(ORIGIN) else { return true };
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let asked = uri.authority().map(Authority::as_str).or(host);
    let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    let (Some((_, origin)), Some(asked)) = (origin, asked) else { return false };
    let name = origin.rsplit_once(':').filter(|_| !origin.ends_with(']'));
    let name = name.map_or(origin, |(name, _)| name);
    origin.eq_ignore_ascii_case(asked) && matches!(name, "localhost" | "127.0.0.1" | "[::1]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Request;

    type Pairs<'a> = &'a [(&'a str, &'a str)];

    fn read(headers: Pairs<'_>) -> Result<bool, u16> {
        let mut request = Request::post("/mcp").header("host", "127.0.0.1:80");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        Head::read(&parts, false).map(|head| head.only_events).map_err(|refusal| refusal.status)
    }

    #[test]
    fn heads_are_those_of_a_client_that_takes_the_answer() {
        let cases: [(Pairs<'_>, Result<bool, u16>); 14] = [
            (&[], Ok(false)),
            (&[("accept", "application/json, text/event-stream")], Ok(false)),
            (&[("accept", "text/event-stream;q=1")], Ok(true)),
            (&[("accept", "text/html")], Err(406)),
            (&[("accept", "*/*")], Ok(false)),
            (&[("origin", "http://127.0.0.1:80")], Ok(false)),
            (&[("origin", "http://127.0.0.1:81")], Err(403)),
            (&[("origin", "http://evil.example")], Err(403)),
            (&[("origin", "null")], Err(403)),
            (&[("mcp-session-id", "a"), ("mcp-session-id", "a")], Err(400)),
            (&[("mcp-protocol-version", "a"), ("mcp-protocol-version", "b")], Err(400)),
            (&[("mcp-method", "a"), ("mcp-method", "b")], Err(400)),
            (&[("mcp-name", "a"), ("mcp-name", "b")], Err(400)),
            (&[("mcp-session-id", "a")], Ok(false)),
        ];
        for (headers, expected) in cases {
            assert_eq!(read(headers), expected, "{headers:?}");
        }
    }
}
