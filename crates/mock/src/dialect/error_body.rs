//! Bodies of error responses, in the shape of each dialect.

use super::Dialect;

/// The body of an error response. Without a dialect it has `OpenAI`'s shape.
pub(crate) fn error_body(dialect: Option<Dialect>, status: u16, message: &str) -> Vec<u8> {
    // A string always has a JSON form.
    let message = serde_json::to_string(message).unwrap_or_default();
    let body = if dialect == Some(Dialect::AnthropicMessages) {
        let kind = anthropic_type(status);
        format!(r#"{{"type":"error","error":{{"type":"{kind}","message":{message}}}}}"#)
    } else {
        let (kind, code) = openai_type(status);
        // The type of a chat message.
        let start = if dialect == Some(Dialect::Websocket) { r#""type":"error","# } else { "" };
        let error = format!(r#""message":{message},"type":"{kind}","param":null,"code":{code}"#);
        format!(r#"{{{start}"error":{{{error}}}}}"#)
    };
    body.into_bytes()
}

const fn anthropic_type(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    }
}

/// The type, and the code as a JSON value.
const fn openai_type(status: u16) -> (&'static str, &'static str) {
    match status {
        401 => ("invalid_request_error", r#""invalid_api_key""#),
        404 => ("invalid_request_error", r#""not_found""#),
        429 => ("requests", r#""rate_limit_exceeded""#),
        400..=499 => ("invalid_request_error", "null"),
        503 => ("server_error", r#""service_unavailable""#),
        _ => ("server_error", "null"),
    }
}
