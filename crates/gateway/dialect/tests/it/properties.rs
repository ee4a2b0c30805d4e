//! Property tests: any bytes, split into any chunks.

use plimsoll_gateway_dialect::{
    Dialect, Endpoint, ErrorBody, LimitName, RequestView, StreamSettings, Translator, Usage,
    UsageObserver, write_cache_key,
};
use proptest::prelude::*;
use serde_json::{Value, json};

const ENDPOINTS: [Endpoint; 4] =
    [Endpoint::Chat, Endpoint::Responses, Endpoint::Embeddings, Endpoint::Messages];
const DIALECTS: [Dialect; 2] = [Dialect::OpenAi, Dialect::Anthropic];
const STREAMS: [&[u8]; 2] = [
    include_bytes!("../golden/stream_tools.from_openai.sse"),
    include_bytes!("../golden/stream_tools.from_anthropic.sse"),
];

fn translator(caller: Dialect) -> Translator {
    DIALECTS.into_iter().find_map(|other| Translator::between(caller, other)).unwrap()
}

/// Bytes with many of the tokens that the parsers look for.
fn token_soup() -> impl Strategy<Value = Vec<u8>> {
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

fn translated(caller: Dialect, chunks: &[&[u8]]) -> (Vec<u8>, bool, bool) {
    let mut stream = translator(caller).stream(StreamSettings::default());
    let mut out = Vec::new();
    let fed = chunks.iter().try_for_each(|chunk| stream.feed(chunk, &mut out));
    let finished = stream.finish(&mut out);
    (out, fed.is_ok(), finished.is_ok())
}

fn observed(endpoint: Endpoint, chunks: &[&[u8]]) -> String {
    let mut observer = UsageObserver::stream(endpoint);
    for chunk in chunks {
        observer.feed(chunk);
    }
    format!("{:?} {} {:?}", observer.usage(), observer.content_events(), observer.finish())
}

proptest! {
    #[test]
    fn chunk_boundaries_in_a_stream_do_not_matter(
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        for (stream, caller) in STREAMS.into_iter().zip([Dialect::Anthropic, Dialect::OpenAi]) {
            let chunks = cut(stream, &places);
            prop_assert_eq!(translated(caller, &chunks), translated(caller, &[stream]));
            for endpoint in ENDPOINTS {
                prop_assert_eq!(observed(endpoint, &chunks), observed(endpoint, &[stream]));
            }
        }
    }

    #[test]
    fn chunk_boundaries_in_any_bytes_do_not_matter(
        bytes in token_soup(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let chunks = cut(&bytes, &places);
        for dialect in DIALECTS {
            prop_assert_eq!(translated(dialect, &chunks), translated(dialect, &[&bytes]));
        }
        for endpoint in ENDPOINTS {
            prop_assert_eq!(observed(endpoint, &chunks), observed(endpoint, &[&bytes]));
        }
    }

    #[test]
    fn no_input_panics(bytes in prop_oneof![token_soup(), prop::collection::vec(any::<u8>(), 0..300)]) {
        for endpoint in ENDPOINTS {
            let _ = RequestView::read(endpoint, &bytes);
            let _ = write_cache_key(endpoint, &bytes, |_| {});
            let _ = Usage::from_body(endpoint, &bytes);
        }
        for dialect in DIALECTS {
            let _ = translator(dialect).request(&bytes, LimitName::default());
            let _ = translator(dialect).response(&bytes, 0);
            let _ = translator(dialect).error(500, &bytes);
            let _ = ErrorBody::parse(500, &bytes);
        }
    }

    #[test]
    fn a_truncated_stream_is_detected_where_something_is_missing(
        place in any::<prop::sample::Index>(),
    ) {
        for (stream, caller) in STREAMS.into_iter().zip([Dialect::Anthropic, Dialect::OpenAi]) {
            let (out, _, complete) = translated(caller, &[&stream[..place.index(stream.len())]]);
            prop_assert!(!complete || out == translated(caller, &[stream]).0);
        }
    }

    #[test]
    fn a_request_round_trip_keeps_texts_and_tools(
        // Blank texts are left out: Anthropic refuses them.
        texts in prop::collection::vec("\\PC{0,29}[^\\pC\\pZ]", 1..5),
        arguments in prop::collection::btree_map("[a-z\"]{1,5}", "\\PC{0,10}", 0..4),
        bound in 1_u64..100_000,
    ) {
        let source = openai_request(&texts, &json!(arguments), bound);
        let there = translator(Dialect::OpenAi).request(source.to_string().as_bytes(), LimitName::default()).unwrap();
        let back = translator(Dialect::Anthropic).request(&there, LimitName::default()).unwrap();
        let back: Value = serde_json::from_slice(&back).unwrap();
        prop_assert_eq!(&back["messages"], &source["messages"]);
        prop_assert_eq!(&back["tools"], &source["tools"]);
        prop_assert_eq!(&back["max_completion_tokens"], &source["max_completion_tokens"]);
        prop_assert_eq!(&back["stop"], &source["stop"]);
        prop_assert_eq!(&back["user"], &source["user"]);
    }

    #[test]
    fn a_response_round_trip_keeps_text_tools_and_usage(
        text in "\\PC{1,40}",
        arguments in prop::collection::btree_map("[a-z]{1,5}", "\\PC{0,10}", 0..4),
        prompt in 0_u64..1_000_000,
        completion in 0_u64..1_000_000,
        cached_share in 0_u64..=100,
    ) {
        let cached = prompt * cached_share / 100;
        let source = openai_response(&text, &json!(arguments), [prompt, completion, cached]);
        let there = translator(Dialect::Anthropic).response(source.to_string().as_bytes(), 7).unwrap();
        let back = translator(Dialect::OpenAi).response(&there, 7).unwrap();
        prop_assert_eq!(serde_json::from_slice::<Value>(&back).unwrap(), source);
    }

    /// An upstream may answer any of them differently, and any other value of it.
    #[test]
    fn every_member_of_a_request_is_part_of_the_cache_key(
        name in prop_oneof![prop::sample::select(MEMBERS).prop_map(str::to_owned), "\\PC{1,12}"],
        one in value(),
        other in value(),
    ) {
        prop_assume!(one != other && name != "model");
        for endpoint in ENDPOINTS {
            let body = |value: Option<&Value>| {
                let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "a"}]});
                value.map(|value| body.as_object_mut().unwrap().insert(name.clone(), value.clone()));
                key_of(endpoint, &body.to_string())
            };
            let keys = [body(None), body(Some(&one)), body(Some(&other))];
            prop_assert!(keys[0] != keys[1] && keys[1] != keys[2] && keys[2] != keys[0], "{}", name);
        }
    }

    #[test]
    fn the_cache_key_ignores_the_order_of_members(values in prop::collection::vec(("[a-e]{1,3}", "\\PC{0,8}"), 0..8)) {
        let mut values = values;
        values.sort();
        values.dedup_by(|a, b| a.0 == b.0);
        let body = |values: &[(String, String)]| {
            format!("{{{}}}", values.iter().map(|(name, value): &(String, String)| format!("{}:{{\"v\":{}}}", json!(name), json!(value))).collect::<Vec<_>>().join(","))
        };
        let forth = body(&values);
        values.reverse();
        prop_assert_eq!(key(&forth), key(&body(&values)));
    }
}

/// Members of the APIs besides model and messages.
const MEMBERS: &[&str] = &[
    "audio",
    "background",
    "conversation",
    "dimensions",
    "encoding_format",
    "frequency_penalty",
    "include",
    "input",
    "instructions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_output_tokens",
    "max_tokens",
    "mcp_servers",
    "metadata",
    "modalities",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "stop_sequences",
    "store",
    "stream",
    "stream_options",
    "system",
    "temperature",
    "text",
    "thinking",
    "tool_choice",
    "tools",
    "top_k",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
    "verbosity",
    "web_search_options",
];

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "\\PC{0,6}".prop_map(Value::from),
        prop::collection::vec("\\PC{0,3}", 0..3).prop_map(Value::from),
        ("[a-c]{1,2}", "\\PC{0,3}").prop_map(|(name, text)| json!({name: text})),
    ]
}

fn key(body: &str) -> Vec<u8> {
    key_of(Endpoint::Chat, body)
}

fn key_of(endpoint: Endpoint, body: &str) -> Vec<u8> {
    let mut key = Vec::new();
    write_cache_key(endpoint, body.as_bytes(), |bytes| key.extend_from_slice(bytes)).unwrap();
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

fn openai_response(text: &str, arguments: &Value, [prompt, completion, cached]: [u64; 3]) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 7, "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text, "tool_calls": call(arguments)},
            "logprobs": null, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": cached}},
    })
}
