//! The cost of finding and judging texts without matches.
//!
//! `cargo bench -p plimsoll-gateway-inspect`.

use std::sync::Arc;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use plimsoll_gateway_inspect::{EventScrubber, FileRule, Inspector, Source};
use plimsoll_gateway_policy::{Actions, Policy};

fn main() {
    divan::main();
}

/// A chat of 128 tokens, and its answer.
fn chat() -> String {
    let text = "abc ".repeat(116);
    format!(
        r#"{{"model":"gpt-4o-mini","messages":[{{"role":"system","content":"You are a helpful assistant, be brief, ok?"}},{{"role":"user","content":"{text}"}}],"max_tokens":128,"temperature":0.7,"stream":true}}"#
    )
}

fn answer() -> String {
    let text = "word ".repeat(128);
    format!(
        r#"{{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{{"index":0,"message":{{"role":"assistant","content":"{text}"}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":128,"completion_tokens":128,"total_tokens":256}}}}"#
    )
}

fn judge(bencher: Bencher<'_, '_>, inspector: &Inspector, document: &str) {
    bencher.counter(BytesCount::of_str(document)).bench_local(|| {
        inspector
            .document(black_box(document), Source::Protocol)
            .is_ok_and(|j| j.matches.is_empty())
    });
}

#[divan::bench]
fn policy_on_a_chat(bencher: Bencher<'_, '_>) {
    let Ok(policy) = Policy::builtin() else { return };
    let inspector = Inspector::new(Arc::new(policy), Actions::default(), FileRule::default());
    judge(bencher, &inspector, &chat());
}

#[divan::bench]
fn scrub_of_an_answer(bencher: Bencher<'_, '_>) {
    let Ok(policy) = Policy::builtin() else { return };
    let inspector = Inspector::personal_data(Arc::new(policy), FileRule::default());
    judge(bencher, &inspector, &answer());
}

#[divan::bench]
fn scrub_of_an_event(bencher: Bencher<'_, '_>) {
    let Ok(policy) = Policy::builtin() else { return };
    let inspector = Arc::new(Inspector::personal_data(Arc::new(policy), FileRule::default()));
    let mut scrubber = EventScrubber::new(inspector);
    let event = "data: {\"id\":\"chatcmpl-9f8e7d6c5b4a39281706\",\"object\":\"chat.completion.chunk\",\
\"created\":1700000000,\"model\":\"gpt-4o-mini-2024-07-18\",\"choices\":[{\"index\":0,\"delta\":\
{\"content\":\" word\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n";
    let mut out = Vec::with_capacity(4_096);
    bencher.bench_local(|| {
        out.clear();
        scrubber.feed(black_box(event.as_bytes()), &mut out).is_ok()
    });
}
