//! Errors as each dialect wraps them.

use serde::Serialize;

use crate::dialect::Dialect;
use crate::error::DialectError;
use crate::wire::{anthropic, openai, write_json};

/// What went wrong, for a client to act on. Each dialect has its own word for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The request is wrong in itself.
    InvalidRequest,
    /// A policy of the gateway does not let it pass.
    Blocked,
    /// No key, or a wrong one.
    Authentication,
    /// The key may not do this.
    Permission,
    /// No such model or path.
    NotFound,
    /// The request is too large.
    TooLarge,
    /// Too many requests; later they will pass.
    RateLimit,
    /// The budget is spent.
    Quota,
    /// The server failed.
    Server,
    /// The server or its upstream is overloaded or away.
    Overloaded,
    /// The upstream did not answer in time.
    Timeout,
}

impl Fault {
    /// What a status says where nothing else is known.
    pub const fn of_status(status: u16) -> Self {
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

    /// OpenAI's `type` and `code`.
    const fn openai(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::InvalidRequest => ("invalid_request_error", None),
            Self::Blocked => ("invalid_request_error", Some("content_filter")),
            Self::Authentication => ("invalid_request_error", Some("invalid_api_key")),
            Self::Permission => ("permission_error", None),
            Self::NotFound => ("invalid_request_error", Some("not_found")),
            Self::TooLarge => ("invalid_request_error", Some("request_too_large")),
            Self::RateLimit => ("rate_limit_error", Some("rate_limit_exceeded")),
            Self::Quota => ("insufficient_quota", Some("insufficient_quota")),
            Self::Server => ("server_error", None),
            Self::Overloaded => ("server_error", Some("overloaded")),
            Self::Timeout => ("server_error", Some("timeout")),
        }
    }

    /// Anthropic's `type`.
    const fn anthropic(self) -> &'static str {
        match self {
            Self::InvalidRequest | Self::Blocked => "invalid_request_error",
            Self::Authentication => "authentication_error",
            Self::Permission => "permission_error",
            Self::NotFound => "not_found_error",
            Self::TooLarge => "request_too_large",
            Self::RateLimit => "rate_limit_error",
            Self::Quota => "billing_error",
            Self::Server => "api_error",
            Self::Overloaded => "overloaded_error",
            Self::Timeout => "timeout_error",
        }
    }

    /// What either dialect's `type` or `code` says.
    fn of_word(word: &str) -> Option<Self> {
        Some(match word {
            "authentication_error" | "invalid_api_key" => Self::Authentication,
            "permission_error" => Self::Permission,
            "not_found_error" | "not_found" | "model_not_found" => Self::NotFound,
            "request_too_large" => Self::TooLarge,
            "rate_limit_error" | "rate_limit_exceeded" => Self::RateLimit,
            "insufficient_quota" | "billing_error" => Self::Quota,
            "api_error" | "server_error" => Self::Server,
            "overloaded_error" | "overloaded" => Self::Overloaded,
            "timeout_error" | "timeout" => Self::Timeout,
            "content_filter" => Self::Blocked,
            "invalid_request_error" => Self::InvalidRequest,
            _ => return None,
        })
    }
}

/// An error before it is wrapped in a dialect's envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// What kind it is.
    pub fault: Fault,
    /// What a person reads.
    pub message: String,
    /// The field at fault; only OpenAI's envelope has a place for it.
    pub param: Option<String>,
}

impl Envelope {
    /// An error that names no field.
    pub fn new(fault: Fault, message: impl Into<String>) -> Self {
        Self { fault, message: message.into(), param: None }
    }

    /// Reads an upstream's error body. What is not an envelope becomes a message that names the status
    /// and repeats nothing of the body.
    pub fn read(dialect: Dialect, status: u16, body: &[u8]) -> Self {
        let read = match dialect {
            Dialect::OpenAi => serde_json::from_slice::<openai::ErrorBody<'_>>(body)
                .map(|body| Self::of_openai(&body.error, status)),
            Dialect::Anthropic => serde_json::from_slice::<anthropic::ErrorBody<'_>>(body)
                .map(|body| Self::of_anthropic(&body.error, status)),
        };
        read.unwrap_or_else(|_| {
            Self::new(
                Fault::of_status(status),
                format!("the upstream answered with status {status}"),
            )
        })
    }

    pub(crate) fn of_openai(failure: &openai::Failure<'_>, status: u16) -> Self {
        let code = failure.code.as_ref().map(|code| code.0.get().trim_matches('"'));
        let fault = code.and_then(Fault::of_word);
        let fault = fault.or_else(|| failure.kind.as_deref().and_then(Fault::of_word));
        Self::of_upstream(fault, failure.message.as_deref(), status)
    }

    pub(crate) fn of_anthropic(failure: &anthropic::Failure<'_>, status: u16) -> Self {
        let fault = failure.kind.as_deref().and_then(Fault::of_word);
        Self::of_upstream(fault, failure.message.as_deref(), status)
    }

    /// The general word for a wrong request says less than a status of its own.
    fn of_upstream(fault: Option<Fault>, message: Option<&str>, status: u16) -> Self {
        let fault = fault.filter(|fault| *fault != Fault::InvalidRequest);
        let fault = fault.unwrap_or_else(|| Fault::of_status(status));
        Self::new(fault, message.unwrap_or("the upstream failed without a message"))
    }

    /// Appends the error as a dialect's JSON.
    pub fn write(&self, dialect: Dialect, out: &mut Vec<u8>) {
        let start = out.len();
        let written = match dialect {
            Dialect::OpenAi => write_json(out, &self.openai()),
            Dialect::Anthropic => write_json(out, &self.anthropic()),
        };
        if written.is_err() {
            out.truncate(start);
        }
    }

    /// The error as a dialect's JSON.
    pub fn to_bytes(&self, dialect: Dialect) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.message.len() + 96);
        self.write(dialect, &mut out);
        out
    }

    fn openai(&self) -> OpenAiEnvelope<'_> {
        let (kind, code) = self.fault.openai();
        let error =
            OpenAiError { message: &self.message, kind, code, param: self.param.as_deref() };
        OpenAiEnvelope { error }
    }

    fn anthropic(&self) -> AnthropicEnvelope<'_> {
        let error = AnthropicError { kind: self.fault.anthropic(), message: &self.message };
        AnthropicEnvelope { kind: "error", error }
    }
}

impl From<&DialectError> for Envelope {
    fn from(error: &DialectError) -> Self {
        let fault = Fault::of_status(error.status());
        let param = error.field().map(str::to_owned);
        Self { fault, message: error.to_string(), param }
    }
}

/// The status for a caller of another dialect: 529 is a word of Anthropic's alone.
pub const fn status_for(caller: Dialect, status: u16) -> u16 {
    match (caller, status) {
        (Dialect::OpenAi, 529) => 503,
        (_, status) => status,
    }
}

#[derive(Serialize)]
struct OpenAiEnvelope<'a> {
    error: OpenAiError<'a>,
}

#[derive(Serialize)]
struct OpenAiError<'a> {
    message: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    param: Option<&'a str>,
    code: Option<&'a str>,
}

#[derive(Serialize)]
struct AnthropicEnvelope<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    error: AnthropicError<'a>,
}

#[derive(Serialize)]
struct AnthropicError<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    message: &'a str,
}
