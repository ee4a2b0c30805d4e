use super::*;

fn watched(endpoint: Endpoint, stream: &[u8], chunk: usize) -> (Option<Usage>, u64, Ending) {
    let mut tap = UsageObserver::stream(endpoint);
    let contents: u64 = stream.chunks(chunk).map(|bytes| tap.feed(bytes)).sum();
    assert_eq!(contents, tap.contents());
    (tap.usage(), tap.contents(), tap.finish())
}

#[expect(clippy::unnecessary_wraps, reason = "rows compare with what may be absent")]
fn usage(prompt: u64, completion: u64, cached: u64) -> Option<Usage> {
    Some(Usage { prompt, completion, cached })
}

const CHAT: &str = concat!(
    r#"data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"usage":null}"#,
    "\n\n: ping\n\n",
    r#"data: {"choices":[{"index":0,"delta":{"content":"\"usage\":{\"prompt_tokens\":9}"}}]}"#,
    "\n\n",
    r#"data: {"choices":[{"index":0,"delta":{"reasoning_content":"x","content":null}}]}"#,
    "\n\n",
    r#"data: {"choices":[{"delta": {"tool_calls": [{"index":0,"function":{"arguments":"{}"}}]}}]}"#,
    "\n\n",
    r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
    "\n\n",
    r#"data: {"choices":[],"usage": {"prompt_tokens":5,"completion_tokens":3,"total_tokens":8}}"#,
    "\n\ndata: [DONE]\n\n",
);

const MESSAGES: &str = concat!(
    "event: message_start\n",
    r#"data: {"type":"message_start","message":{"usage":{"input_tokens":2,"cache_read_input_tokens":3,"output_tokens":1}}}"#,
    "\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\nevent: content_block_delta\n",
    r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\"usage\""}}"#,
    "\n\nevent: message_delta\n",
    r#"data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":4}}"#,
    "\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);

const RESPONSES: &str = concat!(
    "event: response.created\n",
    r#"data: {"type":"response.created","response":{"usage":null}}"#,
    "\n\nevent: response.output_text.delta\n",
    r#"data: {"type":"response.output_text.delta","delta":"hi"}"#,
    "\n\nevent: response.completed\n",
    r#"data: {"type":"response.completed","response":{"usage":{"input_tokens":6,"output_tokens":2,"input_tokens_details":{"cached_tokens":1}}}}"#,
    "\n\n",
);

#[test]
fn streams_of_all_endpoints_however_they_are_cut() {
    let rows = [
        (Endpoint::Chat, CHAT, usage(5, 3, 0), 3),
        (Endpoint::Messages, MESSAGES, usage(5, 4, 3), 1),
        (Endpoint::Responses, RESPONSES, usage(6, 2, 1), 1),
    ];
    for (endpoint, stream, usage, contents) in rows {
        for chunk in [usize::MAX, 1, 13, 100] {
            let seen = watched(endpoint, stream.as_bytes(), chunk);
            assert_eq!(seen, (usage, contents, Ending::Finished), "{endpoint:?} by {chunk}");
        }
    }
}

#[test]
fn names_of_events_are_not_needed() {
    let lines = MESSAGES.split_inclusive('\n');
    let unnamed: String = lines.filter(|line| !line.starts_with("event")).collect();
    let seen = watched(Endpoint::Messages, unnamed.as_bytes(), 9);
    assert_eq!(seen, (usage(5, 4, 3), 1, Ending::Finished));
}

#[test]
fn a_stream_without_its_last_event_is_truncated() {
    for (endpoint, stream) in
        [(Endpoint::Chat, CHAT), (Endpoint::Messages, MESSAGES), (Endpoint::Responses, RESPONSES)]
    {
        let cut = &stream.as_bytes()[..stream.len() - 1];
        assert_eq!(watched(endpoint, cut, 50).2, Ending::Truncated, "{endpoint:?}");
    }
}

#[test]
fn an_error_in_the_place_of_an_event() {
    let chat = b"data: {\"error\":{\"message\":\"no\",\"type\":\"server_error\"}}\n\n";
    assert_eq!(watched(Endpoint::Chat, chat, 9).2, Ending::Failed);
    let messages =
        b"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n";
    assert_eq!(watched(Endpoint::Messages, messages, 9).2, Ending::Failed);
}

#[test]
fn the_first_content_is_told_when_it_comes() {
    let mut tap = UsageObserver::stream(Endpoint::Messages);
    let (before, after) = MESSAGES.split_at(MESSAGES.find("event: message_delta").unwrap());
    assert_eq!(tap.feed(&before.as_bytes()[..before.len() - 1]), 0);
    assert_eq!(tap.usage(), usage(5, 1, 3), "the prompt is known already");
    assert_eq!(tap.feed(b"\n"), 1);
    assert_eq!(tap.feed(after.as_bytes()), 0);
}

#[test]
fn whole_bodies() {
    let body = br#"{"id":"x","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":3}}"#;
    let mut tap = UsageObserver::body(Endpoint::Chat);
    body.chunks(7).for_each(|bytes| assert_eq!(tap.feed(bytes), 0));
    assert_eq!(tap.ending(), Ending::Truncated);
    assert_eq!((tap.finish(), tap.usage(), tap.contents()), (Ending::Finished, usage(5, 3, 0), 1));
    let mut tap = UsageObserver::body(Endpoint::Chat);
    tap.feed(&body[..body.len() - 1]);
    assert_eq!((tap.finish(), tap.usage()), (Ending::Truncated, None));
}

#[test]
fn of_too_long_an_event_nothing_is_known() {
    let mut tap = UsageObserver::stream(Endpoint::Chat);
    tap.feed(&vec![b'x'; MAX_EVENT_BYTES + 1]);
    tap.feed(b"\n\ndata: [DONE]\n\n");
    assert_eq!((tap.usage(), tap.finish()), (None, Ending::Truncated));
}
