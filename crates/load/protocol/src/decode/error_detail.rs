//! The error that a target reports in a response.

use serde_json::Value;

/// Longest message, in bytes.
const MAX_MESSAGE: usize = 512;
/// Longest quote of received data, in bytes.
const MAX_QUOTE: usize = 200;
/// Longest code or type, in bytes.
const MAX_WORD: usize = 64;

/// A target's error, made safe for a terminal or a log: limited in length, with control characters
/// escaped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorDetail {
    /// The `type` member, such as `rate_limit_error`.
    pub kind: Option<String>,
    /// The `code` member, such as `insufficient_quota`.
    pub code: Option<String>,
    /// The message, truncated to 512 bytes with an ellipsis.
    pub message: String,
}

impl ErrorDetail {
    /// A detail with a message only.
    pub(super) fn message(text: &str) -> Self {
        Self { message: sanitize(text, MAX_MESSAGE), ..Self::default() }
    }

    /// Parses an error body. It can be JSON in the shape of `OpenAI`
    /// (`{"error": {message, type, code}}`) or Anthropic
    /// (`{"type": "error", "error": {type, message}}`), JSON with `error` as a plain string or with
    /// the members at the top, or plain text. `None` for an empty body.
    pub(super) fn from_body(body: &[u8]) -> Option<Self> {
        if body.trim_ascii().is_empty() {
            return None;
        }
        let plain = || {
            Self::message(String::from_utf8_lossy(&body[..body.len().min(MAX_MESSAGE * 2)]).trim())
        };
        let Ok(value) = serde_json::from_slice::<Value>(body) else { return Some(plain()) };
        Some(Self::in_object(&value).unwrap_or_else(|| match value.get("message") {
            Some(Value::String(_)) => Self::from_error(&value),
            _ => plain(),
        }))
    }

    /// The error in a body that was sent instead of another type of response.
    pub(super) fn in_place_of_stream(body: &[u8]) -> Option<Self> {
        let text = str::from_utf8(body).ok()?;
        let in_object = Self::in_object(&serde_json::from_str(text).ok()?);
        in_object.or_else(|| Self::in_place_of_answer(text))
    }

    /// The error in a text that has neither a response nor an `error` member. Its `object`, `type`
    /// or `code` identifies it, or a message without a type.
    pub(super) fn in_place_of_answer(text: &str) -> Option<Self> {
        const MESSAGES: [&str; 7] =
            ["message", "msg", "detail", "error_message", "error_msg", "errors", "reason"];
        let value: Value = serde_json::from_str(text).ok()?;
        let members = value.as_object()?;
        let kinds = ["object", "type"].map(|name| members.get(name).and_then(Value::as_str));
        let code = ["code", "status", "status_code"].iter().find_map(|name| members.get(*name));
        let says_so =
            kinds.iter().flatten().any(|kind| kind.to_ascii_lowercase().contains("error"))
                || code.and_then(Value::as_u64).is_some_and(|code| code >= 400);
        let message = MESSAGES.iter().find_map(|name| {
            members.get(*name).filter(|message| !message.is_null() && **message != "")
        });
        // Ollama and Cohere have a `message` in normal responses, with the model's answer.
        let message = message.filter(|message| message.get("role").is_none());
        let has_message = message.is_some() && kinds[1].is_none();
        (says_so || has_message).then(|| Self {
            message: message.map_or_else(|| quote(text), message_of),
            ..Self::from_error(&value)
        })
    }

    /// Parses the value of an `error` member, given as JSON text.
    pub(super) fn from_member(error: &str) -> Self {
        serde_json::from_str(error)
            .map_or_else(|_| Self::message(error), |value| Self::from_error(&value))
    }

    /// Parses the value of an `error` member: an object, or only a message.
    fn from_error(error: &Value) -> Self {
        let [kind, code] = ["type", "code"]
            .map(|name| error.get(name).and_then(scalar).map(|text| sanitize(&text, MAX_WORD)));
        let message = error.get("message").unwrap_or(error);
        Self { kind, code, message: message_of(message) }
    }

    /// Google's services wrap the object in a list.
    fn in_object(value: &Value) -> Option<Self> {
        let value = value.get(0).unwrap_or(value);
        value.get("error").filter(|error| !error.is_null()).map(Self::from_error)
    }
}

/// Converts a message of any type to text.
fn message_of(value: &Value) -> String {
    sanitize(&scalar(value).unwrap_or_else(|| value.to_string()), MAX_MESSAGE)
}

/// Quotes received data for an error message.
pub(super) fn quote(received: &str) -> String {
    format!("`{}`", sanitize(received.trim(), MAX_QUOTE))
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Escapes control characters, and truncates the text at a character boundary.
fn sanitize(text: &str, max: usize) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if out.len() + c.len_utf8() > max {
            out.push('…');
            break;
        }
        if c.is_control() { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}

// The content that an agent extracts from responses other than the model's.

/// Content to extract from successful responses of plain HTTP or a tool server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlainReading {
    /// Nothing; bytes are only counted.
    #[default]
    Nothing,
    /// The result of a tool, in an object with the member `result`: any object over plain HTTP, or
    /// a tool server's JSON-RPC response.
    ToolResult,
    /// An approval, with `id` and `state`.
    Approval,
}

/// The extracted content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlainAnswer {
    /// The result of a tool.
    Tool {
        /// The texts, one per line. Other content is replaced by its type, such as `[image]`.
        text: String,
        /// Value of `isError`.
        is_error: bool,
    },
    /// An approval.
    Approval {
        /// Id of the approval, at most 256 bytes; empty if missing.
        id: String,
        /// State of the approval, such as `pending`; empty if missing.
        state: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let detail = ErrorDetail::message(&"é".repeat(1000));
        assert_eq!(detail.message, format!("{}…", "é".repeat(MAX_MESSAGE / 2)));
        let odd = ErrorDetail::message(&format!("x{}", "é".repeat(1000)));
        assert_eq!(odd.message, format!("x{}…", "é".repeat(MAX_MESSAGE / 2 - 1)));
    }

    #[test]
    fn control_characters_are_escaped() {
        let detail = ErrorDetail::message("a\nb\u{1b}[31m\u{7f}\u{9b}c");
        assert_eq!(detail.message, "a\\nb\\u{1b}[31m\\u{7f}\\u{9b}c");
    }

    #[test]
    fn an_empty_body_has_no_detail() {
        assert_eq!(ErrorDetail::from_body(b" \r\n"), None);
    }
}
