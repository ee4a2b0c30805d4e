//! What holds for any bytes and any split of them.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::borrow::Cow;

use plimsoll_gateway_dialect::{
    DeltaText, Dialect, Endpoint, Envelope, Piece, RequestView, StreamSettings, Translator, Usage,
    UsageObserver, rewrite_answer, write_cache_key,
};
use proptest::prelude::*;
use serde_json::{Value, json};

const ENDPOINTS: [Endpoint; 4] =
    [Endpoint::Chat, Endpoint::Responses, Endpoint::Embeddings, Endpoint::Messages];
const DIALECTS: [Dialect; 2] = [Dialect::OpenAi, Dialect::Anthropic];
const STREAMS: [&[u8]; 2] = [
    include_bytes!("golden/stream_tools.from_openai.sse"),
    include_bytes!("golden/stream_tools.from_anthropic.sse"),
];

fn crossing(caller: Dialect) -> Translator {
    let mut ways = DIALECTS.into_iter().filter_map(|other| Translator::between(caller, other));
    ways.next().unwrap()
}

/// Bytes that come close to what the parsers look for.
fn close() -> impl Strategy<Value = Vec<u8>> {
    let pieces = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        "\"",
        "\\",
        ":",
        ",",
        "\n",
        "\n\n",
        "\r\n",
        "data: ",
        "event: ",
        "null",
        "true",
        "1",
        "\"model\":\"m\"",
        "\"messages\":[",
        "\"content\":",
        "\"role\":\"user\"",
        "\"usage\":{",
        "\"type\":\"text\"",
        "\"text\":\"é\"",
        "\"choices\":[{\"delta\":{",
        "[DONE]",
        "content_block_delta",
        "message_start",
        "\"error\":{",
        "\\ud800",
        "\u{e9}",
    ]);
    let piece = prop_oneof![
        9 => pieces.prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn cut<'b>(bytes: &'b [u8], at: &[prop::sample::Index]) -> Vec<&'b [u8]> {
    let mut places: Vec<usize> = at.iter().map(|index| index.index(bytes.len() + 1)).collect();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

fn crossed(caller: Dialect, chunks: &[&[u8]]) -> (Vec<u8>, bool, bool) {
    let mut stream = crossing(caller).stream(StreamSettings::default());
    let mut out = Vec::new();
    let fed = chunks.iter().try_for_each(|chunk| stream.feed(chunk, &mut out));
    (out, fed.is_ok(), stream.finish().is_ok())
}

fn upper(piece: Piece<'_>) -> Cow<'_, str> {
    match piece {
        Piece::Delta { text, .. } => Cow::Owned(text.to_uppercase()),
        Piece::End { .. } => Cow::Borrowed("!"),
    }
}

fn rewritten(dialect: Dialect, chunks: &[&[u8]]) -> Vec<u8> {
    let mut texts = DeltaText::new(dialect);
    let mut out = Vec::new();
    for chunk in chunks {
        texts.feed(chunk, &mut out, upper).unwrap();
    }
    let _ = texts.finish(&mut out, upper);
    out
}

fn watched(endpoint: Endpoint, chunks: &[&[u8]]) -> String {
    let mut tap = UsageObserver::stream(endpoint);
    for chunk in chunks {
        tap.feed(chunk);
    }
    format!("{:?} {} {:?}", tap.usage(), tap.contents(), tap.finish())
}

proptest! {
    #[test]
    fn any_split_of_a_stream_gives_the_same(
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        for (stream, caller) in STREAMS.into_iter().zip([Dialect::Anthropic, Dialect::OpenAi]) {
            let chunks = cut(stream, &places);
            prop_assert_eq!(crossed(caller, &chunks), crossed(caller, &[stream]));
            for dialect in DIALECTS {
                prop_assert_eq!(rewritten(dialect, &chunks), rewritten(dialect, &[stream]));
            }
            for endpoint in ENDPOINTS {
                prop_assert_eq!(watched(endpoint, &chunks), watched(endpoint, &[stream]));
            }
        }
    }

    #[test]
    fn any_split_of_any_bytes_gives_the_same(
        bytes in close(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let chunks = cut(&bytes, &places);
        for dialect in DIALECTS {
            prop_assert_eq!(crossed(dialect, &chunks), crossed(dialect, &[&bytes]));
            prop_assert_eq!(rewritten(dialect, &chunks), rewritten(dialect, &[&bytes]));
        }
        for endpoint in ENDPOINTS {
            prop_assert_eq!(watched(endpoint, &chunks), watched(endpoint, &[&bytes]));
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop_oneof![close(), prop::collection::vec(any::<u8>(), 0..300)]) {
        for endpoint in ENDPOINTS {
            if let Ok(peek) = RequestView::read(endpoint, &bytes) {
                prop_assert!(peek.texts().iter().all(|text| bytes[text.range()].starts_with(b"\"")));
            }
            let _ = write_cache_key(endpoint, &bytes, |_| {});
            let _ = Usage::of_body(endpoint, &bytes);
            let _ = rewrite_answer(endpoint, &bytes, |text| Cow::Owned(text.to_uppercase()));
        }
        for dialect in DIALECTS {
            let _ = crossing(dialect).request(&bytes, None);
            let _ = crossing(dialect).answer(&bytes, 0);
            let _ = crossing(dialect).error(500, &bytes);
            let _ = Envelope::read(dialect, 500, &bytes);
        }
    }

    #[test]
    fn a_cut_stream_is_always_told_from_a_whole_one(place in any::<prop::sample::Index>()) {
        for (stream, caller) in STREAMS.into_iter().zip([Dialect::Anthropic, Dialect::OpenAi]) {
            let cut = &stream[..place.index(stream.len())];
            prop_assert!(!crossed(caller, &[cut]).2);
        }
    }

    #[test]
    fn a_request_there_and_back_keeps_texts_and_tools(
        texts in prop::collection::vec("\\PC{1,30}", 1..5),
        arguments in prop::collection::btree_map("[a-z\"]{1,5}", "\\PC{0,10}", 0..4),
        bound in 1_u64..100_000,
    ) {
        let source = openai_request(&texts, &json!(arguments), bound);
        let there = crossing(Dialect::OpenAi).request(source.to_string().as_bytes(), None).unwrap();
        let back = crossing(Dialect::Anthropic).request(&there, None).unwrap();
        let back: Value = serde_json::from_slice(&back).unwrap();
        prop_assert_eq!(&back["messages"], &source["messages"]);
        prop_assert_eq!(&back["tools"], &source["tools"]);
        prop_assert_eq!(&back["max_completion_tokens"], &source["max_completion_tokens"]);
        prop_assert_eq!(&back["stop"], &source["stop"]);
        prop_assert_eq!(&back["user"], &source["user"]);
    }

    #[test]
    fn an_answer_there_and_back_keeps_text_tools_and_usage(
        text in "\\PC{1,40}",
        arguments in prop::collection::btree_map("[a-z]{1,5}", "\\PC{0,10}", 0..4),
        prompt in 0_u64..1_000_000,
        completion in 0_u64..1_000_000,
        cached_share in 0_u64..=100,
    ) {
        let cached = prompt * cached_share / 100;
        let source = openai_answer(&text, &json!(arguments), [prompt, completion, cached]);
        let there = crossing(Dialect::Anthropic).answer(source.to_string().as_bytes(), 7).unwrap();
        let back = crossing(Dialect::OpenAi).answer(&there, 7).unwrap();
        prop_assert_eq!(serde_json::from_slice::<Value>(&back).unwrap(), source);
    }

    #[test]
    fn the_cache_key_does_not_see_the_order(values in prop::collection::vec(("[a-e]{1,3}", "\\PC{0,8}"), 0..8)) {
        let mut values = values;
        values.sort();
        values.dedup_by(|a, b| a.0 == b.0);
        let body = |values: &[(String, String)]| {
            let member = |(name, value): &(String, String)| format!("{}:{{\"v\":{}}}", json!(name), json!(value));
            format!("{{{}}}", values.iter().map(member).collect::<Vec<_>>().join(","))
        };
        let forth = body(&values);
        values.reverse();
        prop_assert_eq!(key(&forth), key(&body(&values)));
    }
}

fn key(body: &str) -> Vec<u8> {
    let mut key = Vec::new();
    write_cache_key(Endpoint::Chat, body.as_bytes(), |bytes| key.extend_from_slice(bytes)).unwrap();
    key
}

fn call(arguments: &Value) -> Value {
    json!([{"id": "c1", "type": "function", "function": {"name": "f", "arguments": arguments.to_string()}}])
}

fn openai_request(texts: &[String], arguments: &Value, bound: u64) -> Value {
    let mut messages = vec![json!({"role": "system", "content": texts[0]})];
    messages.extend(texts.iter().map(|text| json!({"role": "user", "content": text})));
    messages.push(json!({"role": "assistant", "content": texts[0], "tool_calls": call(arguments)}));
    messages.push(json!({"role": "tool", "tool_call_id": "c1", "content": texts[0]}));
    json!({
        "model": "m", "messages": messages, "max_completion_tokens": bound, "stop": [texts[0]], "user": texts[0],
        "tools": [{"type": "function", "function": {"name": "f", "description": texts[0], "parameters": {"type": "object"}}}],
    })
}

fn openai_answer(text: &str, arguments: &Value, [prompt, completion, cached]: [u64; 3]) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 7, "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text, "tool_calls": call(arguments)},
            "logprobs": null, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": cached}},
    })
}
