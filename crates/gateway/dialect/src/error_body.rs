//! Errors in the format of each dialect.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::dialect::{Dialect, Endpoint};
use crate::error::DialectError;
use crate::wire::{RawJson, Typed, write_json};

/// The kind of an error. Each dialect has its own code for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::EnumString)]
#[strum(serialize_all = "snake_case")]
pub enum ErrorKind {
    /// The request is invalid.
    InvalidRequest,
    /// A policy of the gateway blocked the request.
    Blocked,
    /// The API key is missing or invalid.
    Authentication,
    /// The API key lacks the permission.
    Permission,
    /// No such model or path.
    NotFound,
    /// The request is too large.
    TooLarge,
    /// Too many requests; retry later.
    RateLimit,
    /// The budget is spent.
    Quota,
    /// The server failed.
    Server,
    /// The server or its upstream is overloaded or unavailable.
    Overloaded,
    /// The upstream did not respond in time.
    Timeout,
}

impl ErrorKind {
    /// The kind that a status implies if nothing else is known.
    pub const fn from_status(status: u16) -> Self {
        match status {
            401 => Self::Authentication,
            402 => Self::Quota,
            403 => Self::Permission,
            404 => Self::NotFound,
            408 | 504 => Self::Timeout,
            413 => Self::TooLarge,
            429 => Self::RateLimit,
            503 | 529 => Self::Overloaded,
            400..500 => Self::InvalidRequest,
            _ => Self::Server,
        }
    }

    /// OpenAI's `type` and `code`, and Anthropic's `type`.
    fn names(self) -> Names {
        let row = KINDS.iter().find(|(kind, _)| *kind == self);
        row.map_or(("server_error", None, "api_error"), |(_, names)| *names)
    }

    /// The kind for a `type` or `code` of either dialect.
    fn from_code(code: &str) -> Option<Self> {
        if code == "model_not_found" {
            return Some(Self::NotFound);
        }
        // Several kinds share a type of OpenAI, so the other names go first.
        let specific = KINDS.iter().find(|(_, (_, own, kind))| *own == Some(code) || *kind == code);
        let row = specific.or_else(|| KINDS.iter().find(|(_, (kind, ..))| *kind == code));
        row.map(|(kind, _)| *kind)
    }
}

/// OpenAI's `type` and `code`, and Anthropic's `type`.
type Names = (&'static str, Option<&'static str>, &'static str);

/// The kinds and their names.
static KINDS: LazyLock<Vec<(ErrorKind, Names)>> = LazyLock::new(|| {
    let rows = include_str!("errors.tsv").lines().filter_map(|row| {
        let [kind, own, code, other] = row.split('\t').collect::<Vec<_>>().try_into().ok()?;
        Some((kind.parse().ok()?, (own, Some(code).filter(|code| *code != "-"), other)))
    });
    rows.collect()
});

/// The content of an error response, independent of the dialect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorBody {
    /// The kind of the error.
    pub kind: ErrorKind,
    /// The text for a person.
    pub message: String,
    /// The field at fault; only OpenAI's format has a member for it.
    pub param: Option<String>,
}

impl ErrorBody {
    /// An error that names no field.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), param: None }
    }

    /// Parses an upstream's error body: of either dialect, or of a server that writes `error` as a
    /// text, a `detail` or a bare `message`. If it has another format, the message names the status
    /// and repeats nothing of the body.
    pub fn parse(status: u16, body: &[u8]) -> Self {
        let parsed = serde_json::from_slice::<Value>(body).ok();
        parsed.and_then(|body| Self::from_answer(&body, status)).unwrap_or_else(|| {
            Self::new(
                ErrorKind::from_status(status),
                format!("the upstream answered with status {status}"),
            )
        })
    }

    fn from_answer(body: &Value, status: u16) -> Option<Self> {
        let error = &body["error"];
        if error.is_object() || error.is_string() {
            return Some(Self::from_member(error, status));
        }
        let message = detail(&body["detail"]);
        let message = message.or_else(|| body["message"].as_str().map(str::to_owned))?;
        Some(Self::from_upstream(None, Some(&message), status))
    }

    /// The error in a member `error`: an object, or only its message.
    pub(crate) fn from_member(error: &Value, status: u16) -> Self {
        let kind = error["code"].as_str().and_then(ErrorKind::from_code);
        let kind = kind.or_else(|| error["type"].as_str().and_then(ErrorKind::from_code));
        let message = error.as_str().or_else(|| error["message"].as_str());
        Self::from_upstream(kind, message, status)
    }

    /// The same, of JSON that has not been read.
    pub(crate) fn from_json(error: &RawJson<'_>, status: u16) -> Self {
        Self::from_member(&serde_json::from_str(error.0.get()).unwrap_or_default(), status)
    }

    /// `InvalidRequest` covers many errors; the status is more specific.
    fn from_upstream(kind: Option<ErrorKind>, message: Option<&str>, status: u16) -> Self {
        let kind = kind.filter(|kind| *kind != ErrorKind::InvalidRequest);
        let kind = kind.unwrap_or_else(|| ErrorKind::from_status(status));
        Self::new(kind, message.unwrap_or("the upstream failed without a message"))
    }

    /// Appends the error as a dialect's JSON.
    pub fn write(&self, dialect: Dialect, out: &mut Vec<u8>) {
        let (kind, code, anthropic_kind) = self.kind.names();
        let Self { message, param, .. } = self;
        match dialect {
            Dialect::OpenAi => {
                let error = json!({"message": message, "type": kind, "param": param, "code": code});
                write_json(out, &json!({"error": error}));
            }
            Dialect::Anthropic => {
                let error = json!({"type": anthropic_kind, "message": message});
                write_json(out, &Typed { kind: "error", members: json!({"error": error}) });
            }
        }
    }

    /// The error as a dialect's JSON.
    pub fn to_bytes(&self, dialect: Dialect) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.message.len() + 96);
        self.write(dialect, &mut out);
        out
    }
}

impl From<&DialectError> for ErrorBody {
    fn from(error: &DialectError) -> Self {
        let kind = ErrorKind::from_status(error.status());
        let param = error.field().map(str::to_owned);
        Self { kind, message: error.to_string(), param }
    }
}

/// An event that reports why a stream of this endpoint ends early.
pub fn error_event(endpoint: Endpoint, message: &str) -> Vec<u8> {
    let error = ErrorBody::new(ErrorKind::Server, message);
    let start: &[u8] = match endpoint {
        Endpoint::Chat | Endpoint::Embeddings => b"data: ",
        Endpoint::Responses | Endpoint::Messages => b"event: error\ndata: ",
    };
    let mut event = start.to_vec();
    if endpoint == Endpoint::Responses {
        let data = json!({"type": "error", "code": "server_error",
            "message": message, "param": null});
        event.extend_from_slice(data.to_string().as_bytes());
    } else {
        error.write(endpoint.dialect(), &mut event);
    }
    event.extend_from_slice(b"\n\n");
    event
}

/// The status for a caller of this dialect: only Anthropic uses 529.
pub const fn status_for(caller: Dialect, status: u16) -> u16 {
    match (caller, status) {
        (Dialect::OpenAi, 529) => 503,
        (_, status) => status,
    }
}

/// The message of a `detail`: a text, or the texts of the problems that were found.
fn detail(detail: &Value) -> Option<String> {
    if let Some(problems) = detail.as_array() {
        let texts: Vec<&str> = problems.iter().filter_map(|one| one["msg"].as_str()).collect();
        return (!texts.is_empty()).then(|| texts.join("; "));
    }
    detail.as_str().map(str::to_owned)
}
