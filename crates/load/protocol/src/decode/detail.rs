//! What a target says about an error.

use serde_json::Value;

/// Longest message, in bytes.
const MESSAGE: usize = 512;
/// Longest code or type, in bytes.
const WORD: usize = 64;

/// What a target says about an error, made safe for a terminal or a log: bounded in length, and
/// with control characters escaped.
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
    /// A message and nothing else.
    pub(super) fn message(text: &str) -> Self {
        Self { message: tame(text, MESSAGE), ..Self::default() }
    }

    /// An error body: JSON in the shape of `OpenAI` (`{"error": {message, type, code}}`), of
    /// Anthropic (`{"type": "error", "error": {type, message}}`), with `error` as a plain string, or
    /// with the members at the top; else plain text. `None` where nothing was said.
    pub(super) fn of_body(body: &[u8]) -> Option<Self> {
        if body.trim_ascii().is_empty() {
            return None;
        }
        let plain =
            || Self::message(String::from_utf8_lossy(&body[..body.len().min(MESSAGE * 2)]).trim());
        let Ok(value) = serde_json::from_slice::<Value>(body) else { return Some(plain()) };
        Some(Self::in_object(&value).unwrap_or_else(|| match value.get("message") {
            Some(Value::String(_)) => Self::of_error(&value),
            _ => plain(),
        }))
    }

    /// The error object in a body that is JSON, if there is one.
    pub(super) fn of_error_object(body: &[u8]) -> Option<Self> {
        Self::in_object(&serde_json::from_slice(body).ok()?)
    }

    /// The value of an `error` member, as it is written.
    pub(super) fn of_member(error: &str) -> Self {
        serde_json::from_str(error)
            .map_or_else(|_| Self::message(error), |value| Self::of_error(&value))
    }

    /// The value of an `error` member: an object, or just a message.
    fn of_error(error: &Value) -> Self {
        let word = |name| error.get(name).and_then(scalar).map(|text| tame(&text, WORD));
        let message = error.get("message").unwrap_or(error);
        Self {
            kind: word("type"),
            code: word("code"),
            message: tame(&scalar(message).unwrap_or_else(|| message.to_string()), MESSAGE),
        }
    }

    fn in_object(value: &Value) -> Option<Self> {
        value.get("error").filter(|error| !error.is_null()).map(Self::of_error)
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The text with control characters escaped, cut at a character's boundary.
fn tame(text: &str, max: usize) -> String {
    let mut tamed = String::new();
    for c in text.chars() {
        if tamed.len() + c.len_utf8() > max {
            tamed.push('…');
            break;
        }
        if c.is_control() { tamed.extend(c.escape_default()) } else { tamed.push(c) }
    }
    tamed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let detail = ErrorDetail::message(&"é".repeat(1000));
        assert_eq!(detail.message, format!("{}…", "é".repeat(MESSAGE / 2)));
        let odd = ErrorDetail::message(&format!("x{}", "é".repeat(1000)));
        assert_eq!(odd.message, format!("x{}…", "é".repeat(MESSAGE / 2 - 1)));
    }

    #[test]
    fn control_characters_are_escaped() {
        let detail = ErrorDetail::message("a\nb\u{1b}[31m\u{7f}\u{9b}c");
        assert_eq!(detail.message, "a\\nb\\u{1b}[31m\\u{7f}\\u{9b}c");
    }

    #[test]
    fn nothing_said_is_no_detail() {
        assert_eq!(ErrorDetail::of_body(b" \r\n"), None);
    }
}
