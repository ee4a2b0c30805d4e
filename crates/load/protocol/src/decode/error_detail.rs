//! The error that a target reports in a response.

use serde_json::Value;

/// Longest message, in bytes.
const MAX_MESSAGE: usize = 512;
/// Longest code or type, in bytes.
const MAX_WORD: usize = 64;

/// The error that a target reports, made safe for a terminal or a log: bounded in length, with
/// control characters escaped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorDetail {
    /// The `type` member, like `rate_limit_error`.
    pub kind: Option<String>,
    /// The `code` member, like `insufficient_quota`.
    pub code: Option<String>,
    /// The message; at most 512 bytes and an ellipsis.
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

    /// The error object in a body that is JSON, if there is one.
    pub(super) fn from_error_object(body: &[u8]) -> Option<Self> {
        Self::in_object(&serde_json::from_slice(body).ok()?)
    }

    /// Parses the value of an `error` member, given as JSON text.
    pub(super) fn from_member(error: &str) -> Self {
        serde_json::from_str(error)
            .map_or_else(|_| Self::message(error), |value| Self::from_error(&value))
    }

    /// Reads the value of an `error` member: an object, or just a message.
    fn from_error(error: &Value) -> Self {
        let word = |name| error.get(name).and_then(scalar).map(|text| sanitize(&text, MAX_WORD));
        let message = error.get("message").unwrap_or(error);
        Self {
            kind: word("type"),
            code: word("code"),
            message: sanitize(&scalar(message).unwrap_or_else(|| message.to_string()), MAX_MESSAGE),
        }
    }

    fn in_object(value: &Value) -> Option<Self> {
        value.get("error").filter(|error| !error.is_null()).map(Self::from_error)
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Escapes control characters, and cuts the text at a character boundary.
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
