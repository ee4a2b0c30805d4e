//! Requests that are refused, and how the caller is told.

use bytes::Bytes;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Method, Response, StatusCode};

use plimsoll_gateway_dialect::{Dialect, ErrorBody, ErrorKind, status_for};

use crate::body::Body;
use crate::spec::EnvelopeSpec;

/// Why a request is not carried out.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    /// For programs: `auth_required`.
    pub(crate) kind: &'static str,
    /// For people.
    pub(crate) message: String,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
}

/// In which words a caller is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Voice {
    Plain,
    Typed,
    Llm(Dialect),
}

impl From<EnvelopeSpec> for Voice {
    fn from(spec: EnvelopeSpec) -> Self {
        match spec {
            EnvelopeSpec::Typed => Self::Typed,
            EnvelopeSpec::Plain => Self::Plain,
        }
    }
}

macro_rules! refusals {
    ($($(#[$doc:meta])* $name:ident => $status:ident, $kind:literal;)*) => {
        impl Refusal {
            $($(#[$doc])* pub(crate) fn $name(message: impl Into<String>) -> Self {
                Self { status: StatusCode::$status, kind: $kind, message: message.into(), headers: Vec::new() }
            })*
        }
    };
}

refusals! {
    bad_request => BAD_REQUEST, "invalid_request";
    auth_required => UNAUTHORIZED, "auth_required";
    auth_failed => FORBIDDEN, "auth_failed";
    insufficient_scope => FORBIDDEN, "insufficient_scope";
    forbidden => FORBIDDEN, "forbidden";
    blocked => FORBIDDEN, "policy_blocked";
    not_found => NOT_FOUND, "not_found";
    not_allowed => METHOD_NOT_ALLOWED, "method_not_allowed";
    too_slow => REQUEST_TIMEOUT, "request_timeout";
    too_large => PAYLOAD_TOO_LARGE, "request_too_large";
    long_path => URI_TOO_LONG, "path_too_long";
    large_head => REQUEST_HEADER_FIELDS_TOO_LARGE, "headers_too_large";
    wrong_type => UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type";
    rate_limited => TOO_MANY_REQUESTS, "rate_limited";
    over_budget => TOO_MANY_REQUESTS, "budget_exceeded";
    planted => INTERNAL_SERVER_ERROR, "planted_fault";
    bad_gateway => BAD_GATEWAY, "upstream_error";
    unavailable => SERVICE_UNAVAILABLE, "upstream_unavailable";
    store_gone => SERVICE_UNAVAILABLE, "store_unavailable";
    upstream_slow => GATEWAY_TIMEOUT, "upstream_timeout";
}

impl Refusal {
    /// Another method is wanted.
    pub(crate) fn wrong_method(wanted: &Method) -> Self {
        let allowed = if wanted == Method::GET { "GET, HEAD" } else { wanted.as_str() };
        let mut refusal = Self::not_allowed(format!("use {wanted}"));
        refusal.headers.extend(HeaderValue::try_from(allowed).ok().map(|value| (ALLOW, value)));
        refusal
    }

    /// A head that could not be read, by the status that hyper answers it with.
    pub(crate) fn of_malformed(status: u16) -> Option<Self> {
        match status {
            400 => Some(Self::bad_request("the head of the request is malformed")),
            414 => Some(Self::long_path("the path is too long")),
            431 => Some(Self::large_head("the head of the request is larger than allowed")),
            _ => None,
        }
    }

    /// The answer as it goes over an HTTP/1.1 connection that is closed behind it.
    pub(crate) fn to_wire(&self, voice: Voice) -> Bytes {
        let (body, kind) = self.body(voice);
        let head = format!(
            "HTTP/1.1 {}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            self.status,
            body.len()
        );
        [head.into_bytes(), body].concat().into()
    }

    /// What a dialect calls it.
    fn fault(&self) -> ErrorKind {
        match self.kind {
            "policy_blocked" => ErrorKind::Blocked,
            "budget_exceeded" => ErrorKind::Quota,
            _ => ErrorKind::from_status(self.status.as_u16()),
        }
    }

    /// The answer in the caller's words.
    pub(crate) fn answer(mut self, voice: Voice) -> Response<Body> {
        let (body, kind) = self.body(voice);
        if let Voice::Llm(dialect) = voice {
            self.status = StatusCode::from_u16(status_for(dialect, self.status.as_u16()))
                .unwrap_or(self.status);
        }
        let mut response = Response::new(Body::Full(Bytes::from(body)));
        *response.status_mut() = self.status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        response.headers_mut().extend(self.headers);
        response
    }
}

impl Refusal {
    /// Body and its media type.
    fn body(&self, voice: Voice) -> (Vec<u8>, &'static str) {
        match voice {
            Voice::Plain => (self.message.clone().into_bytes(), "text/plain; charset=utf-8"),
            Voice::Typed => (typed(self.kind, &self.message), "application/json"),
            Voice::Llm(dialect) => {
                let envelope = ErrorBody::new(self.fault(), self.message.clone());
                (envelope.to_bytes(dialect), "application/json")
            }
        }
    }
}

fn typed(kind: &str, message: &str) -> Vec<u8> {
    serde_json::json!({"error": {"type": kind, "message": message}}).to_string().into_bytes()
}
