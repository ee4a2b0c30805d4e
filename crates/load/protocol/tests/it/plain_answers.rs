//! Results of tools and approvals, read from successes of plain HTTP.

use plimsoll_measure::{ErrorClass, Outcome};
use plimsoll_protocol::{Decoder, DecoderOptions, Dialect, PlainAnswer, PlainReading};
use proptest::prelude::*;

const JSON: Option<&[u8]> = Some(b"application/json");
const EVENTS: Option<&[u8]> = Some(b"text/event-stream; charset=utf-8");

/// Reads a body in pieces of `size` bytes.
fn read(
    reading: PlainReading,
    (status, content_type): (u16, Option<&[u8]>),
    body: impl AsRef<[u8]>,
    size: usize,
) -> (Outcome, Option<PlainAnswer>, String) {
    let options = DecoderOptions { reading, max_body_bytes: 4_000, ..DecoderOptions::default() };
    let mut decoder = Decoder::new(Dialect::Http, false, options);
    decoder.head(status, content_type);
    decoder.expect_id(7);
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
        for (reading, head, body) in [
            (PlainReading::ToolResult, (200, JSON), &rest),
            (PlainReading::RpcToolResult, (200, JSON), &rpc),
            (PlainReading::RpcToolResult, (200, EVENTS), &events),
            (PlainReading::ToolResult, (201, None), &rest),
        ] {
            for size in [1, 7, 10_000] {
                let (outcome, answer, message) = read(reading, head, body, size);
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
    let cut_stream = format!("data: {good}\n");
    let large = format!(r#"{{"result":{{"content":[{{"text":"{}"}}]}}}}"#, "x".repeat(4_000));
    let rpc = PlainReading::RpcToolResult;
    for (reading, content_type, body, class, part) in [
        (rpc, JSON, error, RpcError, "-32602: Unknown tool: x"),
        (rpc, JSON, without_id, RpcError, "-32700: what"),
        (rpc, JSON, asks, StreamError, "`input_required`"),
        (rpc, JSON, &other, MalformedBody, "the id 8 in place of 7"),
        (rpc, JSON, &text_id, MalformedBody, "the id \"7\" in place of 7"),
        (rpc, JSON, &format!("[{good}]"), MalformedBody, "an object"),
        (rpc, JSON, r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#, MalformedBody, "no answer"),
        (rpc, JSON, "", MalformedBody, "does not match"),
        (rpc, EVENTS, &cut_stream, StreamTruncated, "without an answer"),
        (rpc, EVENTS, ": idle\n\n", StreamTruncated, "without an answer"),
        (PlainReading::ToolResult, JSON, r#"{"name":"x"}"#, MalformedBody, "no `result`"),
        (PlainReading::ToolResult, JSON, r#"{"result":"yes"}"#, MalformedBody, "an object"),
        (PlainReading::ToolResult, JSON, r#"{"error":{"message":"no"}}"#, StreamError, "no"),
        (PlainReading::ToolResult, JSON, &large, BodyTooLarge, "larger than the limit"),
        (PlainReading::Approval, JSON, "[]", MalformedBody, "an object"),
    ] {
        let (outcome, answer, message) = read(reading, (200, content_type), body, 10_000);
        assert_eq!((outcome, answer), (Outcome::Failed(class), None), "{body}");
        assert!(message.contains(part), "{body}: {message}");
    }
}

#[test]
fn refusals_are_refusals_and_approvals_have_an_id_and_a_state() {
    let refused = r#"{"error":{"type":"tool_denied","message":"not for you"}}"#;
    let (outcome, answer, message) = read(PlainReading::ToolResult, (403, JSON), refused, 9);
    assert_eq!((outcome, answer, &*message), (Outcome::Rejected(403), None, "not for you"));
    for (body, id, state) in [
        (r#"{"id":"a-1","state":"pending","action":"x"}"#, "a-1", "pending"),
        (r#"{"id":42}"#, "42", ""),
        ("{}", "", ""),
    ] {
        let (outcome, answer, _) = read(PlainReading::Approval, (201, JSON), body, 3);
        let expected = PlainAnswer::Approval { id: id.to_owned(), state: state.to_owned() };
        assert_eq!((outcome, answer), (Outcome::Completed, Some(expected)));
    }
    let long = format!(r#"{{"id":"{}"}}"#, "x".repeat(257));
    let (outcome, ..) = read(PlainReading::Approval, (201, JSON), &long, 99);
    assert_eq!(outcome, Outcome::Failed(ErrorClass::MalformedBody));
}

/// Pieces of answers, right and wrong.
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
        for reading in
            [PlainReading::ToolResult, PlainReading::RpcToolResult, PlainReading::Approval]
        {
            for content_type in [JSON, EVENTS] {
                let whole = read(reading, (200, content_type), &body, usize::MAX);
                prop_assert_eq!(&whole, &read(reading, (200, content_type), &body, size));
                let completed = whole.0 == Outcome::Completed;
                prop_assert!(completed == whole.1.is_some() && completed == whole.2.is_empty());
            }
        }
    }
}
