//! Results of tools and approvals, extracted from successful responses of plain HTTP and of tool
//! servers.

use plimsoll_measure::{ErrorClass, Operation, Outcome};
use plimsoll_protocol::rpc::Expectation;
use plimsoll_protocol::{Decoder, DecoderOptions, Dialect, PlainAnswer, PlainReading};
use proptest::prelude::*;

const JSON: Option<&[u8]> = Some(b"application/json");
const EVENTS: Option<&[u8]> = Some(b"text/event-stream; charset=utf-8");

/// The expected content, and the protocol.
#[derive(Clone, Copy)]
struct Asked {
    dialect: Dialect,
    reading: PlainReading,
}

const REST: Asked = Asked { dialect: Dialect::Http, reading: PlainReading::ToolResult };
/// A call with the id 7.
const MCP: Asked = Asked { dialect: Dialect::Mcp, reading: PlainReading::ToolResult };
const APPROVAL: Asked = Asked { dialect: Dialect::Http, reading: PlainReading::Approval };

/// Reads a body in pieces of `size` bytes.
fn read(
    Asked { dialect, reading }: Asked,
    status: u16,
    content_type: Option<&[u8]>,
    body: impl AsRef<[u8]>,
    size: usize,
) -> (Outcome, Option<PlainAnswer>, String) {
    let options = DecoderOptions { reading, max_body_bytes: 4_000, ..DecoderOptions::default() };
    let mut decoder = Decoder::new(dialect, false, options);
    decoder.expect(Expectation { operation: Operation::CallTool, id: 7 });
    decoder.head(status, content_type);
    let mut deltas = 0;
    for piece in body.as_ref().chunks(size) {
        decoder.feed(piece, &mut |_| deltas += 1);
    }
    assert_eq!(deltas, 0);
    let outcome = decoder.finish();
    let message = decoder.error_detail().map(|detail| detail.message.clone());
    let answer = decoder.take_plain_answer().map(|answer| *answer);
    (outcome, answer, message.unwrap_or_default())
}

fn tool(text: &str, is_error: bool) -> PlainAnswer {
    PlainAnswer::Tool { text: text.to_owned(), is_error }
}

#[test]
fn results_of_tools_are_read_over_rest_and_json_rpc() {
    let texts = r#"{"content":[{"type":"text","text":"it \"rains\""},{"type":"image","data":"AA"},{"type":"text","text":"b"}]}"#;
    let joined = tool("it \"rains\"\n[image]\nb", false);
    for (result, expected) in [
        (texts, joined),
        (r#"{"content":[{"type":"text","text":"no"}],"isError":true}"#, tool("no", true)),
        (r#"{"content":[],"structuredContent":{"t":1.50}}"#, tool(r#"{"t":1.50}"#, false)),
        (r#"{"resultType":"complete","content":[]}"#, tool("", false)),
        ("{}", tool("", false)),
    ] {
        let rest = format!(r#"{{"name":"n","server":"s","result":{result}}}"#);
        let rpc = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{result}}}"#);
        let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{}}"#;
        let events = format!("data: {progress}\n\nevent: message\ndata: {rpc}\n\n");
        for (asked, head, body) in [
            (REST, (200, JSON), &rest),
            (MCP, (200, JSON), &rpc),
            (MCP, (200, EVENTS), &events),
            (REST, (201, None), &rest),
        ] {
            for size in [1, 7, 10_000] {
                let (outcome, answer, message) = read(asked, head.0, head.1, body, size);
                let found = (outcome, answer.as_ref());
                assert_eq!(found, (Outcome::Completed, Some(&expected)), "{message} {body}");
            }
        }
    }
}

#[test]
fn wrong_answers_fail_with_their_reason() {
    use ErrorClass::{BodyTooLarge, MalformedBody, RpcError, StreamError, StreamTruncated};
    let error = r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"Unknown tool: x"}}"#;
    let without_id = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what"}}"#;
    let asks = r#"{"jsonrpc":"2.0","id":7,"result":{"resultType":"input_required"}}"#;
    let good = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[]}}"#;
    let other = good.replace('7', "8");
    let text_id = good.replace('7', "\"7\"");
    let cut_stream = format!("data: {}", &good[..20]);
    let large = format!(r#"{{"result":{{"content":[{{"text":"{}"}}]}}}}"#, "x".repeat(4_000));
    // A JSON-RPC response is judged as in a session with a tool server.
    let version_1 = good.replace("2.0", "1.0");
    let no_version = good.replace(r#""jsonrpc":"2.0","#, "");
    let both = good.replace(r#""result""#, r#""error":{"code":1,"message":"m"},"result""#);
    let twice = format!("data: {good}\n\ndata: {good}\n\n");
    for (asked, content_type, body, class, part) in [
        (MCP, JSON, error, RpcError, "-32602: Unknown tool: x"),
        (MCP, JSON, without_id, RpcError, "-32700: what"),
        (MCP, JSON, asks, StreamError, "`input_required`"),
        (MCP, JSON, &other, MalformedBody, "the id 8, and the request had 7"),
        (MCP, JSON, &text_id, MalformedBody, "the id \"7\", and the request had 7"),
        (MCP, JSON, &format!("[{good}]"), MalformedBody, "a batch of messages"),
        (MCP, JSON, &version_1, MalformedBody, "without `jsonrpc: \"2.0\"`"),
        (MCP, JSON, &no_version, MalformedBody, "without `jsonrpc: \"2.0\"`"),
        (MCP, JSON, &both, MalformedBody, "with `result` and `error`"),
        (
            MCP,
            JSON,
            r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#,
            MalformedBody,
            "instead of a response",
        ),
        (MCP, JSON, "", MalformedBody, "the body is empty"),
        (MCP, EVENTS, &twice, MalformedBody, "a second answer"),
        (MCP, EVENTS, &cut_stream, StreamTruncated, "ended before the answer"),
        (MCP, EVENTS, ": idle\n\n", StreamTruncated, "ended before the answer"),
        (REST, JSON, r#"{"name":"x"}"#, MalformedBody, "no `result`"),
        (REST, JSON, r#"{"result":"yes"}"#, MalformedBody, "an object"),
        (REST, JSON, r#"{"error":{"message":"no"}}"#, StreamError, "no"),
        (REST, JSON, &large, BodyTooLarge, "larger than the limit"),
        (APPROVAL, JSON, "[]", MalformedBody, "an object"),
    ] {
        let (outcome, answer, message) = read(asked, 200, content_type, body, 10_000);
        assert_eq!((outcome, answer), (Outcome::Failed(class), None), "{body}");
        assert!(message.contains(part), "{body}: {message}");
    }
}

#[test]
fn refusals_are_refusals_and_approvals_have_an_id_and_a_state() {
    let refused = r#"{"error":{"type":"tool_denied","message":"not for you"}}"#;
    let (outcome, answer, message) = read(REST, 403, JSON, refused, 9);
    assert_eq!((outcome, answer, &*message), (Outcome::Rejected(403), None, "not for you"));
    for (body, id, state) in [
        (r#"{"id":"a-1","state":"pending","action":"x"}"#, "a-1", "pending"),
        (r#"{"id":42}"#, "42", ""),
        ("{}", "", ""),
    ] {
        let (outcome, answer, _) = read(APPROVAL, 201, JSON, body, 3);
        let expected = PlainAnswer::Approval { id: id.to_owned(), state: state.to_owned() };
        assert_eq!((outcome, answer), (Outcome::Completed, Some(expected)));
    }
    let long = format!(r#"{{"id":"{}"}}"#, "x".repeat(257));
    let (outcome, ..) = read(APPROVAL, 201, JSON, &long, 99);
    assert_eq!(outcome, Outcome::Failed(ErrorClass::MalformedBody));
}

/// Fragments of responses, right and wrong.
const PIECES: [&str; 16] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    "\"result\":",
    "\"content\":",
    "\"isError\":true",
    "\"jsonrpc\":\"2.0\",",
    "\"id\":7,",
    "\"error\":{\"code\":-1,\"message\":\"no\"}",
    "{\"type\":\"text\",\"text\":\"a\\u00e9\"}",
    "\"method\":\"x\"",
    "data: ",
    "\n\n",
    "\u{e9}\r",
];

proptest! {
    #[test]
    fn any_body_in_any_split_is_read_the_same(
        pieces in prop::collection::vec(0..PIECES.len(), 0..12),
        odd in prop::collection::vec(any::<u8>(), 0..4),
        size in 1usize..9,
    ) {
        let mut body = pieces.iter().map(|piece| PIECES[*piece]).collect::<String>().into_bytes();
        body.extend(odd);
        for asked in [REST, MCP, APPROVAL] {
            for content_type in [JSON, EVENTS] {
                let whole = read(asked, 200, content_type, &body, usize::MAX);
                prop_assert_eq!(&whole, &read(asked, 200, content_type, &body, size));
                let completed = whole.0 == Outcome::Completed;
                prop_assert!(completed == whole.1.is_some() && completed == whole.2.is_empty());
            }
        }
    }
}
