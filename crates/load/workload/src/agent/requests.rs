//! The requests of an agent besides those to the model.

use plimsoll_protocol::{HttpContent, ToolCall};
use serde_json::Value;

use super::rules::{AgentRules, ApprovalRules};
use crate::spec::ToolProtocol;
use crate::template::percent_encoded;

/// The revision of the Model Context Protocol that has no sessions.
const MCP_VERSION: &str = "2026-07-28";

/// What every request of that revision says of its client.
const MCP_META: &str = concat!(
    r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientInfo":{"name":"plimsoll","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""},"io.modelcontextprotocol/clientCapabilities":{}}"#
);

/// The call of a tool. `id` numbers the request.
pub(super) fn call(rules: &AgentRules, call: &ToolCall, id: u16) -> HttpContent {
    let (name, arguments) = (quoted(&call.name), call.arguments_object());
    match rules.tools {
        ToolProtocol::Rest => {
            let body = format!(r#"{{"name":{name},"arguments":{arguments}}}"#);
            post(rules.tool_path.clone(), &[ACCEPT], body)
        }
        ToolProtocol::Mcp => {
            let headers = [
                ("accept", "application/json, text/event-stream"),
                ("mcp-protocol-version", MCP_VERSION),
                ("mcp-method", "tools/call"),
                ("mcp-name", &*header_value(&call.name)),
            ];
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":{name},"arguments":{arguments},"_meta":{MCP_META}}}}}"#
            );
            post(rules.tool_path.clone(), &headers, body)
        }
    }
}

/// Asks for the approval of a call.
pub(super) fn ask(rules: &ApprovalRules, call: &ToolCall) -> HttpContent {
    let (name, arguments) = (quoted(&call.name), call.arguments_object());
    let body =
        format!(r#"{{"action":"tool_call","details":{{"name":{name},"arguments":{arguments}}}}}"#);
    post(rules.path.clone(), &[ACCEPT], body)
}

/// Approves or rejects a call.
pub(super) fn decide(rules: &ApprovalRules, id: &str, approves: bool) -> HttpContent {
    let word = if approves { "approve" } else { "reject" };
    let path = format!("{}/{}/{word}", rules.path, percent_encoded(id));
    post(path, &[ACCEPT], "{}".to_owned())
}

const ACCEPT: (&str, &str) = ("accept", "application/json");

fn post(path: String, headers: &[(&str, &str)], body: String) -> HttpContent {
    let headers = [("content-type", "application/json")].iter().chain(headers);
    let headers = headers.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    HttpContent { method: "POST".to_owned(), path, headers, body: body.into_bytes() }
}

/// A text as JSON.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// A name as the value of a header: as it is, or in base64 where it is no plain visible ASCII
/// (revision 2026-07-28, "Streamable HTTP").
fn header_value(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
    let is_padded = name.starts_with(' ') || name.ends_with(' ');
    let is_plain = name.bytes().all(plain) && !is_padded && !name.starts_with("=?base64?");
    if is_plain { name.to_owned() } else { format!("=?base64?{}?=", base64(name.as_bytes())) }
}

/// Padded base64 (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for index in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * index) & 63) as usize];
            out.push(if index <= group.len() { char::from(digit) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_no_header_can_carry_are_encoded() {
        // Encoded with coreutils' base64.
        for (name, value) in [
            ("read_file", "read_file"),
            ("two words", "two words"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("=?base64?x", "=?base64?PT9iYXNlNjQ/eA==?="),
            ("a\r\nb: c", "=?base64?YQ0KYjogYw==?="),
        ] {
            assert_eq!(header_value(name), value);
        }
    }
}
