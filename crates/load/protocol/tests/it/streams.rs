//! Streams of each dialect: valid, unusual and broken ones.

use plimsoll_measure::{ErrorClass, Outcome};
use plimsoll_protocol::Dialect;

use crate::support::{EVENTS, JSON, Read, decoder, read};

/// A chat stream with every kind of event.
pub(crate) const CHAT: &str = concat!(
    ": keep-alive\r\n\r\n",
    r#"data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null}"#,
    "\r\n\r\n",
    r#"data: {"choices":[{"index":0,"delta":{"reasoning_content":"Hm"}}]}"#,
    "\n\n",
    r#"data: {"choices":[{"index":0,"delta":{"content":"Ahoy, \"friend\"\n"}}]}"#,
    "\n\n",
    r#"data: {"choices":[{"index":0,"delta":{"content":"naïve 🚢"}}]}"#,
    "\n\n",
    r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"t","type":"function","function":{"name":"look_up","arguments":""}}]}}]}"#,
    "\n\n",
    r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"q\":"}},{"index":1,"function":{"arguments":"{}"}}]}}]}"#,
    "\n\n",
    r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
    "\n\n",
    r#"data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":12,"total_tokens":21,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":3}}}"#,
    "\n\ndata: [DONE]\n\n",
);

/// A Responses stream with every kind of event.
pub(crate) const RESPONSES: &str = concat!(
    "event: response.created\n",
    r#"data: {"type":"response.created","response":{"id":"r","status":"in_progress","output":[],"usage":null,"error":null}}"#,
    "\n\nevent: response.output_item.added\n",
    r#"data: {"type":"response.output_item.added","output_index":0,"item":{"type":"message","content":[]}}"#,
    "\n\nevent: response.reasoning_summary_text.delta\n",
    r#"data: {"type":"response.reasoning_summary_text.delta","delta":"Hm"}"#,
    "\n\nevent: response.reasoning_text.delta\n",
    r#"data: {"type":"response.reasoning_text.delta","delta":"m"}"#,
    "\n\nevent: response.output_text.delta\n",
    r#"data: {"type":"response.output_text.delta","item_id":"i","content_index":0,"delta":"Ahoy"}"#,
    "\n\nevent: response.output_text.delta\n",
    r#"data: {"type":"response.output_text.delta","delta":""}"#,
    "\n\nevent: response.refusal.delta\n",
    r#"data: {"type":"response.refusal.delta","delta":" No."}"#,
    "\n\nevent: response.output_text.done\n",
    r#"data: {"type":"response.output_text.done","text":"Ahoy"}"#,
    "\n\nevent: response.function_call_arguments.delta\n",
    r#"data: {"type":"response.function_call_arguments.delta","delta":"{}"}"#,
    "\n\nevent: response.completed\n",
    r#"data: {"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":"odd"}],"incomplete_details":null,"error":null,"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":4},"output_tokens":12,"output_tokens_details":{"reasoning_tokens":3}}}}"#,
    "\n\n",
);

/// An Anthropic stream with every kind of event.
pub(crate) const ANTHROPIC: &str = concat!(
    "event: message_start\n",
    r#"data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"stop_reason":null,"usage":{"input_tokens":5,"cache_creation_input_tokens":20,"cache_read_input_tokens":100,"output_tokens":1}}}"#,
    "\n\nevent: content_block_start\n",
    r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#,
    "\n\nevent: ping\ndata: {\"type\": \"ping\"}\n\nevent: content_block_delta\n",
    r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm"}}"#,
    "\n\nevent: content_block_delta\n",
    r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}"#,
    "\n\nevent: content_block_stop\n",
    r#"data: {"type":"content_block_stop","index":0}"#,
    "\n\nevent: content_block_delta\n",
    r#"data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Ahoy"}}"#,
    "\n\nevent: content_block_delta\n",
    r#"data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}"#,
    "\n\nevent: content_block_delta\n",
    r#"data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#,
    "\n\nevent: message_delta\n",
    r#"data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":12}}"#,
    "\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);

/// Reads a stream with a valid head in one piece.
fn stream(dialect: Dialect, body: &str) -> Read {
    read(&mut decoder(dialect, true), (200, EVENTS), [body.as_bytes()])
}

#[track_caller]
fn completed(read: &Read, events: &[&str], text: &str, usage: &str) {
    assert_eq!(read.events, events);
    assert_eq!(read.outcome, Outcome::Completed);
    assert_eq!(read.text, text);
    assert_eq!(read.usage, usage);
    assert_eq!(read.detail, None);
}

#[test]
fn only_parts_with_content_of_a_chat_stream_are_deltas() {
    completed(
        &stream(Dialect::OpenaiChat, CHAT),
        &[
            "reasoning: Hm",
            "text: Ahoy, \"friend\"\n",
            "text: naïve 🚢",
            "tool: look_up",
            "tool: {\"q\":",
            "tool: {}",
            "finish: tool_calls",
            "usage: 9 in, 12 out, 4 cached, 3 reasoning",
        ],
        "Ahoy, \"friend\"\nnaïve 🚢",
        "9 in, 12 out, 4 cached, 3 reasoning",
    );
}

#[test]
fn only_parts_with_content_of_a_responses_stream_are_deltas() {
    completed(
        &stream(Dialect::OpenaiResponses, RESPONSES),
        &[
            "reasoning: Hm",
            "reasoning: m",
            "text: Ahoy",
            "text:  No.",
            "tool: {}",
            "finish: completed",
            "usage: 9 in, 12 out, 4 cached, 3 reasoning",
        ],
        "Ahoy No.",
        "9 in, 12 out, 4 cached, 3 reasoning",
    );
}

#[test]
fn only_parts_with_content_of_an_anthropic_stream_are_deltas() {
    completed(
        &stream(Dialect::AnthropicMessages, ANTHROPIC),
        &[
            // Usage: 5 uncached + 100 read from the cache + 20 written to it.
            "reasoning: Hm",
            "text: Ahoy",
            "tool: {}",
            "finish: end_turn",
            "usage: 125 in, 12 out, 100 cached, 0 reasoning",
        ],
        "Ahoy",
        "125 in, 12 out, 100 cached, 0 reasoning",
    );
}

#[test]
fn content_events_estimate_tokens_that_are_not_reported() {
    let body = concat!(
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"reasoning\":\"b\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"\"}}]}\n\n",
        "data: [DONE]\n\n",
    );
    let read = stream(Dialect::OpenaiChat, body);
    assert_eq!(read.usage, "? in, ~2 out, 0 cached, 0 reasoning");
}

#[test]
fn the_output_count_of_message_start_is_ignored() {
    let cut = ANTHROPIC.split("event: message_delta").next().unwrap();
    let read = stream(Dialect::AnthropicMessages, cut);
    assert_eq!(read.outcome, Outcome::Failed(ErrorClass::StreamTruncated));
    assert_eq!(read.usage, "125 in, ~3 out, 100 cached, 0 reasoning");
}

#[test]
fn a_later_usage_replaces_an_earlier_one() {
    let usage = |prompt: u32, completion: u32| {
        format!(
            "data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":{prompt},\"completion_tokens\":{completion}}}}}\n\n"
        )
    };
    let body = [usage(9, 1), usage(9, 2), "data: [DONE]\n\n".to_owned()].concat();
    assert_eq!(stream(Dialect::OpenaiChat, &body).usage, "9 in, 2 out, 0 cached, 0 reasoning");
    let delta = |output| {
        format!(
            "data: {{\"type\":\"message_delta\",\"delta\":{{}},\"usage\":{{\"input_tokens\":0,\"output_tokens\":{output}}}}}\n\n"
        )
    };
    let start = ANTHROPIC.split("event: content_block_start").next().unwrap();
    let body = [start, &delta(3), &delta(7), "data: {\"type\":\"message_stop\"}\n\n"].concat();
    let read = stream(Dialect::AnthropicMessages, &body);
    assert_eq!(read.usage, "125 in, 7 out, 100 cached, 0 reasoning");
}

#[test]
fn a_stream_without_its_terminator_is_truncated_wherever_it_was_cut() {
    for (dialect, body, terminator) in [
        (Dialect::OpenaiChat, CHAT, "data: [DONE]"),
        (Dialect::OpenaiResponses, RESPONSES, "event: response.completed"),
        (Dialect::AnthropicMessages, ANTHROPIC, "event: message_stop"),
    ] {
        let whole = body.trim_end().len();
        let mut cuts = vec![0, 30, whole / 2];
        if dialect != Dialect::OpenaiChat {
            cuts.extend([body.find(terminator).unwrap(), whole - 1]);
        }
        // The terminator counts without the blank line after it.
        let end = read(&mut decoder(dialect, true), (200, EVENTS), [&body.as_bytes()[..whole]]);
        assert_eq!(end.outcome, Outcome::Completed, "{}", dialect.name());
        for cut in cuts {
            let read = read(&mut decoder(dialect, true), (200, EVENTS), [&body.as_bytes()[..cut]]);
            let truncated = Outcome::Failed(ErrorClass::StreamTruncated);
            assert_eq!(read.outcome, truncated, "{} at {cut}", dialect.name());
            let last = read.events.last().unwrap();
            assert!(
                last.starts_with("error: stream_truncated: the stream ended without"),
                "{last}"
            );
        }
    }
}

#[test]
fn done_does_not_end_the_other_dialects() {
    for (dialect, body) in
        [(Dialect::OpenaiResponses, RESPONSES), (Dialect::AnthropicMessages, ANTHROPIC)]
    {
        let read = stream(dialect, "data: [DONE]\n\n");
        assert_eq!(read.outcome, Outcome::Failed(ErrorClass::StreamTruncated));
        let read = stream(dialect, &format!("{body}data: [DONE]\n\n"));
        assert_eq!(read.outcome, Outcome::Completed);
    }
}

#[test]
fn data_after_the_terminator_is_ignored() {
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"late\"}}]}\n\n";
    let body = format!("{text}data: [DONE]\n\n{text}data: {{\n\n\u{7f}");
    let read = stream(Dialect::OpenaiChat, &body);
    completed(&read, &["text: late"], "late", "? in, ~1 out, 0 cached, 0 reasoning");
}

#[test]
fn responses_that_stop_early_are_complete_and_name_the_reason() {
    let body = r#"data: {"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}"#;
    let read = stream(Dialect::OpenaiResponses, &format!("{body}\n\n"));
    completed(&read, &["finish: max_output_tokens"], "", "? in, ? out, 0 cached, 0 reasoning");
}

#[test]
fn the_name_of_an_event_replaces_a_missing_type() {
    let body = "event: content_block_delta\ndata: {\"delta\":{\"text\":\"x\"}}\n\nevent: message_stop\ndata: {}\n\n";
    let read = stream(Dialect::AnthropicMessages, body);
    completed(&read, &["text: x"], "x", "? in, ~1 out, 0 cached, 0 reasoning");
}

#[test]
fn an_error_event_ends_the_response() {
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    for (dialect, body, events) in [
        (
            Dialect::OpenaiChat,
            format!("{text}data: {{\"error\":{{\"message\":\"boom\",\"type\":\"server_error\",\"code\":500}}}}\n\n{text}data: [DONE]\n\n"),
            vec!["text: a", "error: stream_error: boom"],
        ),
        (
            Dialect::OpenaiChat,
            "event: error\ndata: out of luck\n\n".to_owned(),
            vec!["error: stream_error: out of luck"],
        ),
        (
            Dialect::OpenaiChat,
            "data: {\"error\":\"just words\"}\n\n".to_owned(),
            vec!["error: stream_error: just words"],
        ),
        (
            Dialect::OpenaiResponses,
            "data: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"boom\",\"param\":null}\n\n".to_owned(),
            vec!["error: stream_error: boom"],
        ),
        (
            Dialect::OpenaiResponses,
            "data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"c\",\"message\":\"boom\"}}}\n\n".to_owned(),
            vec!["error: stream_error: boom"],
        ),
        (
            Dialect::AnthropicMessages,
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n".to_owned(),
            vec!["error: stream_error: Overloaded"],
        ),
        (
            Dialect::AnthropicMessages,
            "data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n".to_owned(),
            vec!["error: stream_error: Overloaded"],
        ),
    ] {
        let read = stream(dialect, &body);
        assert_eq!(read.events, events, "{body}");
        assert_eq!(read.outcome, Outcome::Failed(ErrorClass::StreamError), "{body}");
    }
}

#[test]
fn an_event_of_the_wrong_shape_is_malformed() {
    for (dialect, event) in [
        (Dialect::OpenaiChat, "not JSON"),
        (Dialect::OpenaiChat, "{}"),
        (Dialect::OpenaiChat, "{\"choices\":7}"),
        (Dialect::OpenaiChat, "{\"choices\":[{\"delta\":{\"content\":\"\\ud800\"}}]}"),
        (Dialect::OpenaiResponses, "{\"delta\":\"x\"}"),
        (Dialect::OpenaiResponses, "{\"type\":\"response.completed\"}"),
        (Dialect::AnthropicMessages, "{\"delta\":{\"text\":\"x\"}}"),
        (Dialect::AnthropicMessages, "[[[[[["),
    ] {
        let read = stream(dialect, &format!("data: {event}\n\ndata: [DONE]\n\n"));
        let malformed = Outcome::Failed(ErrorClass::MalformedBody);
        assert_eq!(read.outcome, malformed, "{} {event}", dialect.name());
        assert_eq!(read.events.len(), 1, "{event}");
    }
}

#[test]
fn pings_and_other_foreign_events_are_no_content_and_no_fault() {
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    for ping in [
        "event: ping\ndata: {}\n\n",
        "event: ping\ndata: {\"type\": \"ping\"}\n\n",
        "data: {\"type\": \"ping\"}\n\n",
        "event: ping\ndata: 2026-11-21T21:00:00Z\n\n",
        "event: ping\ndata:\n\n",
        "event: ping\n\n",
        "data:\n\n",
        ": comment\n\n",
        "retry: 3000\nid: 7\n\n",
        "event: x-metrics\ndata: {\"cost\": 0.1}\n\n",
    ] {
        let chat = format!("{ping}{text}{ping}{text}{ping}data: [DONE]\n\n");
        let read = stream(Dialect::OpenaiChat, &chat);
        completed(&read, &["text: a", "text: a"], "aa", "? in, ~2 out, 0 cached, 0 reasoning");
        for (dialect, body) in
            [(Dialect::OpenaiResponses, RESPONSES), (Dialect::AnthropicMessages, ANTHROPIC)]
        {
            let without = stream(dialect, body);
            // Before every event of the body.
            let with = stream(dialect, &body.replace("event: ", &format!("{ping}event: ")));
            assert_eq!(with.events, without.events, "{} {ping:?}", dialect.name());
            assert_eq!(with.outcome, Outcome::Completed);
        }
    }
}

#[test]
fn a_broken_event_with_a_name_is_still_malformed() {
    let body = "event: chunk\ndata: {\"choices\":[{\n\ndata: [DONE]\n\n";
    let read = stream(Dialect::OpenaiChat, body);
    assert_eq!(read.outcome, Outcome::Failed(ErrorClass::MalformedBody));
}

#[test]
fn a_function_call_of_the_time_before_tools_is_content() {
    let call = |call: &str| {
        format!("data: {{\"choices\":[{{\"delta\":{{\"function_call\":{call}}}}}]}}\n\n")
    };
    let body = [
        call(r#"{"name":"look_up","arguments":""}"#),
        call(r#"{"arguments":"{}"}"#),
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"function_call\"}]}\n\n".to_owned(),
        "data: [DONE]\n\n".to_owned(),
    ]
    .concat();
    completed(
        &stream(Dialect::OpenaiChat, &body),
        &["tool: look_up", "tool: {}", "finish: function_call"],
        "",
        "? in, ~2 out, 0 cached, 0 reasoning",
    );
}

#[test]
fn the_decoder_knows_whether_a_read_ended_with_content() {
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    let role = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n";
    for (bytes, ends_with_content, within_event) in [
        (text.to_owned(), true, false),
        (format!("{role}{text}"), true, false),
        (format!("{text}{role}"), false, false),
        (format!("{text}: comment\n"), true, false),
        (format!("{text}data: [DONE]\n\n"), false, false),
        (format!("{text}{}", &role[..20]), false, true),
        (text[..text.len() - 1].to_owned(), false, true),
    ] {
        let mut decoder = decoder(Dialect::OpenaiChat, true);
        decoder.head(200, EVENTS.map(str::as_bytes));
        decoder.feed(bytes.as_bytes(), &mut |_| {});
        assert_eq!(decoder.ends_with_content(), ends_with_content, "{bytes}");
        assert_eq!(decoder.is_within_event(), within_event, "{bytes}");
    }
}

#[test]
fn bytes_that_are_not_utf8_are_malformed() {
    let body = b"data: {\"choices\":[{\"delta\":{\"content\":\"\xc3\"}}]}\n\n";
    let read = read(&mut decoder(Dialect::OpenaiChat, true), (200, EVENTS), [&body[..]]);
    assert_eq!(read.outcome, Outcome::Failed(ErrorClass::MalformedBody));
}

#[test]
fn a_stream_over_its_limits_fails_after_the_deltas_before_it() {
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    let fits = 20_000 / text.len();
    let endless = text.repeat(2 * fits);
    let long_line = format!("{text}{}", "x".repeat(5_000));
    for (body, deltas) in [(endless, fits), (long_line, 1)] {
        for pieces in [13, 100_000] {
            let read = read(
                &mut decoder(Dialect::OpenaiChat, true),
                (200, EVENTS),
                body.as_bytes().chunks(pieces),
            );
            assert_eq!(read.outcome, Outcome::Failed(ErrorClass::BodyTooLarge));
            assert_eq!(read.events.len(), deltas + 1);
            assert_eq!(read.received, body.len() as u64);
        }
    }
}

#[test]
fn a_requested_stream_must_have_its_content_type() {
    for (content_type, body, outcome) in [
        (JSON, "{\"choices\":[]}", Outcome::Failed(ErrorClass::ContentType)),
        (JSON, "{\"error\":{\"message\":\"m\"}}", Outcome::Failed(ErrorClass::StreamError)),
        (Some("text/html"), "<html>", Outcome::Failed(ErrorClass::ContentType)),
        (Some("text/plain"), "data: [DONE]\n\n", Outcome::Failed(ErrorClass::EmptyAnswer)),
        (JSON, "\u{feff}: hello\n\ndata: [DONE]\n\n", Outcome::Failed(ErrorClass::EmptyAnswer)),
        (Some("text/plain"), "dat", Outcome::Failed(ErrorClass::ContentType)),
        (None, "data: [DONE]\n\n", Outcome::Failed(ErrorClass::EmptyAnswer)),
    ] {
        let mut decoder = decoder(Dialect::OpenaiChat, true);
        let read = read(&mut decoder, (200, content_type), [body.as_bytes()]);
        assert_eq!(read.outcome, outcome, "{content_type:?} {body}");
    }
}
