//! A decoder that knows shapes must decode like one that does not.

use std::thread;

use plimsoll_measure::{AnswerContent, ErrorClass, Outcome, Usage};
use plimsoll_protocol::{Decoder, DecoderOptions, DeltaKind, Dialect, ToolCall};
use proptest::prelude::*;

/// The complete result of decoding a response.
#[derive(Debug, PartialEq)]
struct Decoded {
    outcome: Outcome,
    failure: Option<ErrorClass>,
    text: String,
    finish_reason: Option<String>,
    usage: Usage,
    refused_usage: Option<String>,
    tool_calls: Vec<ToolCall>,
    deltas: Vec<(DeltaKind, String)>,
    detail: String,
    content: AnswerContent,
}

fn decode(dialect: Dialect, stream: bool, body: &str) -> Decoded {
    let options = DecoderOptions { keep_text: true, ..DecoderOptions::default() };
    let mut decoder = Decoder::new(dialect, stream, options);
    let mut deltas = Vec::new();
    decoder.head(200, None);
    decoder.feed(body.as_bytes(), &mut |delta| deltas.push((delta.kind, delta.text.to_owned())));
    Decoded {
        outcome: decoder.finish(),
        failure: decoder.failure(),
        text: decoder.text().to_owned(),
        finish_reason: decoder.finish_reason().map(str::to_owned),
        usage: decoder.usage(),
        refused_usage: decoder.refused_usage().map(str::to_owned),
        tool_calls: decoder.tool_calls().to_vec(),
        deltas,
        detail: format!("{:?}", decoder.error_detail()),
        content: decoder.content(),
    }
}

/// Shapes are stored per thread, so a new thread has none.
fn decode_first(dialect: Dialect, stream: bool, body: &str) -> Decoded {
    let body = body.to_owned();
    thread::spawn(move || decode(dialect, stream, &body)).join().unwrap()
}

/// Bodies with `$s` for any string, `$n` for any number, and `$v` for any value.
const WHOLE: [(Dialect, &str); 6] = [
    (
        Dialect::OpenaiChat,
        r#"{"id":$s,"created":$n,"choices":[{"index":$n,"message":{"role":$s,"content":$s},"logprobs":$v,"finish_reason":$s}],"usage":{"prompt_tokens":$n,"completion_tokens":$n,"total_tokens":$n,"prompt_tokens_details":{"cached_tokens":$n}}}"#,
    ),
    (
        Dialect::OpenaiChat,
        r#"{"choices":[{"message":{"content":$s,"refusal":$v,"content":$s},"finish_reason":$v},{"x":$v}],"usage":$v,"model":$s}"#,
    ),
    (
        Dialect::OpenaiChat,
        r#"{"choices":[{"message":{"content":$v,"tool_calls":[{"id":$s,"function":{"name":$s,"arguments":$s}}]},"finish_reason":$s}]}"#,
    ),
    (Dialect::OpenaiChat, r#"{"error":$v,"choices":[{"message":{"content":$s}}]}"#),
    (
        Dialect::AnthropicMessages,
        r#"{"id":$s,"content":[{"type":"text","text":$s}],"stop_reason":$s,"usage":{"input_tokens":$n,"output_tokens":$n,"cache_read_input_tokens":$n}}"#,
    ),
    (
        Dialect::AnthropicMessages,
        r#"{"content":[{"type":$s,"text":$s,"id":$s,"name":$s}],"usage":{"output_tokens":$n}}"#,
    ),
];

const EVENTS: [(Dialect, &str); 8] = [
    (
        Dialect::OpenaiChat,
        r#"{"id":$s,"created":$n,"choices":[{"index":$n,"delta":{"content":$s},"finish_reason":null}]}"#,
    ),
    (
        Dialect::OpenaiChat,
        r#"{"choices":[{"delta":{"reasoning":$s,"reasoning_content":$s,"content":$v}}]}"#,
    ),
    (Dialect::OpenaiChat, r#"{"choices":[{"delta":{},"finish_reason":$s}],"usage":$v}"#),
    (Dialect::OpenaiChat, r#"{"choices":[],"usage":{"prompt_tokens":$n,"completion_tokens":$n}}"#),
    (Dialect::OpenaiChat, r#"{"type":$s,"more":$v}"#),
    (Dialect::AnthropicMessages, r#"{"type":$s,"index":$n,"delta":{"text":$s}}"#),
    (
        Dialect::AnthropicMessages,
        r#"{"type":"message_delta","delta":{"stop_reason":$s},"usage":{"output_tokens":$n}}"#,
    ),
    (Dialect::OpenaiResponses, r#"{"type":$s,"delta":$s,"sequence_number":$n}"#),
];

fn string() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => "[a-z]{1,12}".prop_map(|text| format!("\"{text}\"")),
        1 => Just("\"\"".to_owned()),
        1 => Just(r#""a\nb \u00e9 \"quoted\"""#.to_owned()),
        1 => Just("\"\u{e9}\u{4e2d}\"".to_owned()),
        1 => Just("\"content_block_delta\"".to_owned()),
        1 => Just("\"response.output_text.delta\"".to_owned()),
        1 => Just("\"tool_use\"".to_owned()),
        1 => Just(r#""bad \x escape""#.to_owned()),
        1 => Just("\"the value 1\"".to_owned()),
    ]
}

fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => (0_u32..1_000_000).prop_map(|number| number.to_string()),
        1 => Just("700001".to_owned()),
        1 => Just("0".to_owned()),
        1 => Just("1700000000".to_owned()),
        1 => Just("12.0".to_owned()),
        1 => Just("-5".to_owned()),
        1 => Just("01".to_owned()),
        1 => Just("1e3".to_owned()),
        1 => Just("99999999999".to_owned()),
    ]
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => Just("null".to_owned()),
        2 => string(),
        2 => number(),
        1 => Just("{}".to_owned()),
        1 => Just("[1, \"a\"]".to_owned()),
        1 => Just(r#"{"message":"no"}"#.to_owned()),
    ]
}

/// A body with its placeholders filled, sometimes truncated, or with an extra byte.
fn filled(template: &'static str) -> impl Strategy<Value = String> {
    let places = template.matches('$').count();
    let values = prop::collection::vec((string(), number(), value()), places);
    let end = prop_oneof![12 => Just(None), 1 => (1_usize..40).prop_map(Some), 1 => Just(Some(0))];
    (values, end).prop_map(move |(values, end)| {
        let mut parts = template.split('$');
        let mut body = parts.next().unwrap_or_default().to_owned();
        for ((string, number, value), part) in values.into_iter().zip(parts) {
            body += match part.as_bytes()[0] {
                b's' => &string,
                b'n' => &number,
                _ => &value,
            };
            body += &part[1..];
        }
        match end {
            Some(0) => body + "}",
            Some(cut) => {
                let end = body.floor_char_boundary(body.len().saturating_sub(cut));
                body[..end].to_owned()
            }
            None => body,
        }
    })
}

fn bodies(
    templates: &'static [(Dialect, &'static str)],
) -> impl Strategy<Value = (Dialect, Vec<String>)> {
    prop::sample::select(templates).prop_flat_map(|(dialect, template)| {
        prop::collection::vec(filled(template), 2..8).prop_map(move |bodies| (dialect, bodies))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_response_of_a_known_shape(bodies in bodies(&WHOLE)) {
        let (dialect, bodies) = bodies;
        for body in &bodies {
            prop_assert_eq!(decode(dialect, false, body), decode_first(dialect, false, body), "{}", body);
        }
    }

    #[test]
    fn an_event_of_a_known_shape(bodies in bodies(&EVENTS), name in "(|event: [a-z]{1,3}\n)") {
        let (dialect, bodies) = bodies;
        // The events of one stream, and each of its prefixes, which end without the terminator.
        let events: Vec<String> = bodies.iter().map(|data| format!("{name}data: {data}\n\n")).collect();
        let stream = events.concat();
        prop_assert_eq!(decode(dialect, true, &stream), decode_first(dialect, true, &stream), "{}", stream);
        let ended = stream + "data: [DONE]\n\n";
        prop_assert_eq!(decode(dialect, true, &ended), decode_first(dialect, true, &ended), "{}", ended);
        for event in &events {
            prop_assert_eq!(decode(dialect, true, event), decode_first(dialect, true, event), "{}", event);
        }
    }
}
