//! Error responses of the gateway itself, and the formats they are written in.

use bytes::Bytes;
use hyper::header::{ALLOW, CONNECTION, HeaderName, HeaderValue};
use hyper::{Method, StatusCode, Version};
use plimsoll_gateway_dialect::{Dialect, ErrorBody, ErrorKind, status_for};

use crate::http::normal_form::Refusal;

/// An error response: why a request was refused or failed.
#[derive(Debug)]
pub(crate) struct ErrorResponse {
    pub(crate) status: StatusCode,
    /// Machine-readable: `auth_required`.
    pub(crate) kind: &'static str,
    /// Human-readable.
    pub(crate) message: String,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    /// Whether the request reached an upstream and may cost something.
    pub(crate) reached_upstream: bool,
    /// The layer that refused the request.
    pub(crate) refused_by: Option<&'static str>,
}

/// The format of an error's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorFormat {
    /// The message alone, as text.
    Plain,
    /// `{"error":{"type":...,"message":...}}`.
    Typed,
    /// The error object of an LLM dialect.
    Llm(Dialect),
}

macro_rules! error_responses {
    ($($status:ident: $($name:ident $(= $kind:literal)?),+;)*) => {
        impl ErrorResponse {
            $($(pub(crate) fn $name(message: impl Into<String>) -> Self {
                let [kind, ..] = [$($kind,)? stringify!($name)];
                Self {
                    status: StatusCode::$status,
                    kind,
                    message: message.into(),
                    headers: Vec::new(),
                    reached_upstream: false,
                    refused_by: None,
                }
            })+)*
        }
    };
}

// By status. The kind of an error is its name, unless it is given.
error_responses! {
    BAD_REQUEST: bad_request = "invalid_request";
    UNAUTHORIZED: auth_required;
    FORBIDDEN:
        auth_failed, insufficient_scope, forbidden, policy_blocked, content_blocked, agent_denied,
        tool_denied;
    NOT_FOUND:
        not_found, session_not_found, approval_not_found, agent_not_found, run_not_found,
        tool_not_found;
    CONFLICT: already_decided, agent_loop, agent_depth, step_limit, restart_needed;
    METHOD_NOT_ALLOWED: method_not_allowed;
    REQUEST_TIMEOUT: request_timeout;
    PAYLOAD_TOO_LARGE: request_too_large;
    URI_TOO_LONG: path_too_long;
    REQUEST_HEADER_FIELDS_TOO_LARGE: headers_too_large;
    UNSUPPORTED_MEDIA_TYPE: unsupported_media_type;
    TOO_MANY_REQUESTS: rate_limited, budget_exceeded, owner_limit, tool_call_limit;
    INTERNAL_SERVER_ERROR: internal_error, injected_fault = "planted_fault";
    BAD_GATEWAY: bad_gateway = "upstream_error", response_unreadable, agent_error;
    SERVICE_UNAVAILABLE: upstream_unavailable, store_unavailable, overloaded, store_full;
    GATEWAY_TIMEOUT: upstream_timeout;
}

/// The message about a missing resource.
pub(crate) fn no_such(what: &str) -> String {
    format!("there is no such {what}")
}

impl ErrorResponse {
    /// Marks the error as occurring after the request reached an upstream.
    pub(crate) fn after_upstream(mut self) -> Self {
        self.reached_upstream = true;
        self
    }

    /// Names the layer that refused the request.
    pub(crate) const fn by(mut self, layer: &'static str) -> Self {
        self.refused_by = Some(layer);
        self
    }

    /// The route only accepts these methods.
    pub(crate) fn wrong_methods(allowed: &'static str) -> Self {
        let mut error = Self::method_not_allowed(format!("use one of {allowed}"));
        error.headers.push((ALLOW, HeaderValue::from_static(allowed)));
        error
    }

    /// The route only accepts another method.
    pub(crate) fn wrong_method(wanted: &Method) -> Self {
        let allowed = if wanted == Method::GET { "GET, HEAD" } else { wanted.as_str() };
        let mut error = Self::method_not_allowed(format!("use {wanted}"));
        error.headers.extend(HeaderValue::try_from(allowed).ok().map(|value| (ALLOW, value)));
        error
    }

    /// The request has no normal form. On HTTP/1.1 the connection is closed, because the two sides
    /// may disagree about the start of the next request.
    pub(crate) fn no_normal_form(refusal: Refusal, version: Version) -> Self {
        let mut error = Self::bad_request(refusal.message);
        error.kind = refusal.code;
        if version < Version::HTTP_2 {
            error.headers.push((CONNECTION, HeaderValue::from_static("close")));
        }
        error
    }

    /// The error for a malformed head, by hyper's status for it.
    pub(crate) fn for_malformed_head(status: u16) -> Option<Self> {
        match status {
            400 => Some(Self::bad_request("the head of the request is malformed")),
            414 => Some(Self::path_too_long("the path is too long")),
            431 => Some(Self::headers_too_large("the head of the request is larger than allowed")),
            _ => None,
        }
    }

    /// The bytes of the response on an HTTP/1.1 connection that is closed afterwards.
    pub(crate) fn to_http1_bytes(&self, format: ErrorFormat) -> Bytes {
        let (body, media_type) = self.body(format);
        let head = format!(
            "HTTP/1.1 {}\r\ncontent-type: {media_type}\r\ncontent-length: {}\r\n\
             connection: close\r\n\r\n",
            self.status,
            body.len()
        );
        [head.into_bytes(), body].concat().into()
    }

    /// The status in this format: the dialects use other statuses for some errors.
    pub(crate) fn status_in(&self, format: ErrorFormat) -> StatusCode {
        let ErrorFormat::Llm(dialect) = format else { return self.status };
        StatusCode::from_u16(status_for(dialect, self.status.as_u16())).unwrap_or(self.status)
    }

    /// The body and its media type.
    pub(crate) fn body(&self, format: ErrorFormat) -> (Vec<u8>, &'static str) {
        match format {
            ErrorFormat::Plain => (self.message.clone().into_bytes(), "text/plain; charset=utf-8"),
            ErrorFormat::Typed => (typed_body(self.kind, &self.message), "application/json"),
            ErrorFormat::Llm(dialect) => {
                let envelope = ErrorBody::new(self.dialect_fault(), self.message.clone());
                (envelope.to_bytes(dialect), "application/json")
            }
        }
    }

    /// The dialects' name for the error.
    fn dialect_fault(&self) -> ErrorKind {
        match self.kind {
            "policy_blocked" => ErrorKind::Blocked,
            "budget_exceeded" => ErrorKind::Quota,
            _ => ErrorKind::from_status(self.status.as_u16()),
        }
    }
}

fn typed_body(kind: &str, message: &str) -> Vec<u8> {
    serde_json::json!({"error": {"type": kind, "message": message}}).to_string().into_bytes()
}
