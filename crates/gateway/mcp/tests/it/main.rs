//! The readers of foreign bytes: whatever comes, in whatever pieces.

use plimsoll_gateway_mcp::ToolResult;
use plimsoll_gateway_mcp::client::{Answer, AnswerReader, Head};
use plimsoll_gateway_mcp::rpc::{Message, read_message, read_reply};
use proptest::prelude::*;
use serde_json::Value;

/// Bytes that are often nearly JSON-RPC.
fn messages() -> impl Strategy<Value = Vec<u8>> {
    let words = [
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"",
        "\\",
        "1",
        "-",
        "null",
        " ",
        "\n",
        "\"jsonrpc\":\"2.0\"",
        "\"id\":1",
        "\"id\":\"a\"",
        "\"method\":\"m\"",
        "\"params\":{}",
        "\"result\":{}",
        "\"error\":{\"code\":1,\"message\":\"x\"}",
        "data: ",
        "\n\n",
        "\u{e9}",
        "\u{0}",
    ];
    let word = prop::sample::select(words.to_vec()).prop_map(|word| word.as_bytes().to_vec());
    let part = prop_oneof![8 => word, 1 => any::<u8>().prop_map(|byte| vec![byte])];
    prop::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
}

fn read(bytes: &[u8], size: usize, kind: &str) -> Result<Answer, &'static str> {
    let head = Head { status: 200, content_type: kind, session: None };
    let mut reader = AnswerReader::new(Some(1), &head, 4_096);
    for piece in bytes.chunks(size.max(1)) {
        reader.feed(piece)?;
    }
    reader.finish()
}

proptest! {
    #[test]
    fn what_is_read_is_what_serde_json_reads(bytes in messages()) {
        if let Ok(Message::Request(request)) = read_message(&bytes) {
            let value: Value = serde_json::from_slice(&bytes).unwrap();
            let id: Value = serde_json::from_str(request.id).unwrap();
            prop_assert!(id.is_string() || id.is_number());
            prop_assert_eq!(&value["id"], &id);
            prop_assert_eq!(value["method"].as_str(), Some(request.method.as_str()));
            let params: Value = serde_json::from_str(request.params).unwrap();
            prop_assert!(params.is_object());
        }
        let _ = read_reply(&bytes, 1);
        if let Ok(text) = str::from_utf8(&bytes)
            && let Ok(result) = ToolResult::read(text)
        {
            let value: Value = serde_json::from_str(&result.json).unwrap();
            prop_assert!(value["content"].is_array() && value["isError"].is_boolean());
        }
    }

    #[test]
    fn any_split_of_an_answer_gives_the_same(bytes in messages(), size in 1..9_usize) {
        for kind in ["application/json", "text/event-stream"] {
            prop_assert_eq!(read(&bytes, size, kind), read(&bytes, bytes.len(), kind), "{}", kind);
        }
    }
}
