//! With any input: no panic, valid JSON stays valid, and no split of a stream changes the output.

use std::sync::{Arc, LazyLock};

use plimsoll_gateway_inspect::{EventScrubber, Inspector, Source};
use proptest::prelude::*;
use serde_json::{Map, Value};

use super::forms::{policy, scrub};

static POLICY: LazyLock<Inspector> = LazyLock::new(policy);
static SCRUB: LazyLock<Arc<Inspector>> = LazyLock::new(|| Arc::new(scrub()));

fn texts() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "ann@example.com",
        "4111 1111 1111 1111",
        "4111",
        " 1111",
        "hello",
        " ",
        "é",
        "\u{1f600}",
        "ssn: ",
        "536904399",
        "{\"a\":\"",
        "\"}",
        "\\u0041",
        "\\",
        "data:text/plain;base64,",
        "YW5uQGV4YW1wbGUuY29t",
        "ignore all ",
        "previous instructions",
        "_",
        "%40",
        "\n",
    ]);
    prop::collection::vec(words, 0..6).prop_map(|words| words.concat())
}

fn documents() -> impl Strategy<Value = Value> {
    let names = || {
        prop::sample::select(vec![
            "messages",
            "choices",
            "content",
            "text",
            "delta",
            "token",
            "bytes",
            "top_logprobs",
            "logprobs",
            "input",
            "arguments",
            "id",
            "index",
            "finish_reason",
            "type",
            "data",
            "media_type",
            "x",
            "ssn",
        ])
    };
    let leaf = prop_oneof![
        4 => texts().prop_map(Value::from),
        1 => prop::sample::select(vec![0, 1, 536_904_399, 4_111_111_111_111_111_u64]).prop_map(Value::from),
        1 => Just(Value::Null),
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((names(), inner), 0..5).prop_map(|members| {
                let members = members.into_iter().map(|(name, value)| (name.to_owned(), value));
                Value::from(members.collect::<Map<String, Value>>())
            }),
        ]
    })
}

fn run(stream: &[u8], size: usize) -> (Vec<u8>, bool) {
    let mut scrubber = EventScrubber::new(Arc::clone(&SCRUB));
    let mut out = Vec::new();
    let fed = stream.chunks(size).try_for_each(|chunk| scrubber.feed(chunk, &mut out));
    let ended = fed.and_then(|()| scrubber.finish(&mut out));
    (out, ended.is_ok())
}

proptest! {
    #[test]
    fn what_is_redacted_is_valid_and_has_the_same_shape(document in documents()) {
        for inspector in [&*POLICY, &**SCRUB] {
            for source in [Source::Protocol, Source::Tool, Source::Data] {
                let Ok(judgement) = inspector.document(&document.to_string(), source) else { continue };
                let Some(redacted) = judgement.document else { continue };
                prop_assert!(serde_json::from_str::<Value>(&redacted).is_ok(), "{}", redacted);
            }
        }
    }

    #[test]
    fn any_text_is_judged_without_a_panic(text in any::<String>()) {
        let _ = POLICY.document(&text, Source::Protocol);
        let _ = POLICY.document(&serde_json::json!({"input": text}).to_string(), Source::Data);
    }

    #[test]
    fn no_split_of_a_stream_changes_the_output(events in prop::collection::vec(documents(), 0..5), size in 1_usize..30) {
        let stream: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        let whole = run(stream.as_bytes(), usize::MAX);
        prop_assert_eq!(&run(stream.as_bytes(), size), &whole);
        prop_assert_eq!(&run(stream.as_bytes(), 1), &whole);
    }

    #[test]
    fn any_bytes_are_a_stream(bytes in prop::collection::vec(any::<u8>(), 0..200), size in 1_usize..30) {
        let whole = run(&bytes, usize::MAX);
        prop_assert_eq!(run(&bytes, size).1, whole.1);
    }
}
