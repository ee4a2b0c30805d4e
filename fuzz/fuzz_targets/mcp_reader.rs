//! Any bytes as a message of an MCP client, and as the answer of a tool server: no panic; what is
//! read is UTF-8, and what serde_json reads where it reads all of it (it refuses some escapes and
//! numbers that may stand in what is skipped); any split of an answer gives the same.
//!
//! Input: one byte for the size of the pieces, then the message.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_gateway_mcp::client::{Answer, AnswerReader, Head};
use plimsoll_gateway_mcp::mcp_server::{self, Headers};
use plimsoll_gateway_mcp::rpc::{Message, read_message};
use plimsoll_gateway_dialect::is_too_deep;
use plimsoll_gateway_mcp::{LocalTool, ToolResult, ToolTable};
use serde_json::Value;

fuzz_target!(|input: &[u8]| {
    let Some((size, bytes)) = input.split_first() else { return };
    if let Ok(Message::Request(request)) = read_message(bytes) {
        assert!(str::from_utf8(bytes).is_ok());
        let Ok(value) = serde_json::from_slice::<Value>(bytes) else { return };
        let id: Value = serde_json::from_str(request.id).unwrap();
        assert!(id.is_string() || id.is_number());
        assert_eq!((&value["id"], value["method"].as_str()), (&id, Some(request.method.as_str())));
        if let Ok((name, arguments)) = mcp_server::read_call(request.params) {
            assert_eq!(value["params"]["name"].as_str(), Some(name.as_str()));
            if !is_too_deep(arguments.as_bytes()) {
                for &tool in LocalTool::ALL {
                    let result: Value =
                        serde_json::from_str(&tool.call(arguments, 0).json).unwrap();
                    assert!(result["content"].is_array());
                }
            }
        }
        let _ = mcp_server::negotiate(request.params);
    }
    for version in [None, Some("2025-11-25"), Some("2026-07-28")] {
        let _ = mcp_server::read(&Headers { version, ..Headers::default() }, bytes);
    }
    let pieces = usize::from(*size).max(1);
    for kind in ["application/json", "text/event-stream"] {
        assert_eq!(read(bytes, pieces, kind), read(bytes, bytes.len().max(1), kind));
    }
    let Ok(text) = str::from_utf8(bytes) else { return };
    let _ = ToolTable::default().add(text);
    if let Ok(result) = ToolResult::read(text) {
        assert!(serde_json::from_str::<Value>(&result.json).unwrap()["isError"].is_boolean());
    }
});

fn read(bytes: &[u8], size: usize, content_type: &str) -> Result<Answer, &'static str> {
    let head = Head { status: 200, content_type, session: None };
    let mut reader = AnswerReader::new(Some(1), &head, 1 << 16);
    for piece in bytes.chunks(size) {
        reader.feed(piece)?;
    }
    reader.finish()
}
