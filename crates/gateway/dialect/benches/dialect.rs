//! The cost of the dialects per request and per event.
//!
//! Targets: 2 µs for the view of a chat request of 128 tokens, 100 ns for an observed event.

use std::fmt::Write as _;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use plimsoll_gateway_dialect::{
    Dialect, Endpoint, LimitName, RequestView, StreamSettings, Translator, Usage, UsageObserver,
    write_cache_key,
};

fn main() {
    divan::main();
}

/// A system prompt and a user's message of 128 tokens, at four bytes each.
fn request() -> String {
    let text = "abc ".repeat(116);
    format!(
        r#"{{"model":"gpt-4o-mini","messages":[{{"role":"system","content":"You are a helpful assistant, be brief, ok?"}},{{"role":"user","content":"{text}"}}],"max_tokens":128,"temperature":0.7,"stream":true}}"#
    )
}

fn chunk(usage: &str) -> String {
    format!(
        "data: {{\"id\":\"chatcmpl-9f8e7d6c5b4a39281706\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"gpt-4o-mini-2024-07-18\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\" word\"}},\"logprobs\":null,\"finish_reason\":null}}]{usage}}}\n\n"
    )
}

const DELTA: &str = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" word\"}}\n\n";

#[divan::bench]
fn request_view(bencher: Bencher<'_, '_>) {
    let body = request();
    bencher
        .counter(BytesCount::of_str(&body))
        .bench_local(|| RequestView::read(Endpoint::Chat, black_box(body.as_bytes())).is_ok());
}

#[divan::bench]
fn cache_key(bencher: Bencher<'_, '_>) {
    let body = request();
    bencher.counter(BytesCount::of_str(&body)).bench_local(|| {
        let mut bytes = 0;
        let written =
            write_cache_key(Endpoint::Chat, black_box(body.as_bytes()), |more| bytes += more.len());
        (written.is_ok(), bytes)
    });
}

#[divan::bench]
fn request_to_anthropic(bencher: Bencher<'_, '_>) {
    let body = request();
    let translator = Translator::between(Dialect::OpenAi, Dialect::Anthropic);
    bencher.bench_local(|| {
        translator.map(|translator| {
            translator.request(black_box(body.as_bytes()), LimitName::default()).is_ok()
        })
    });
}

fn observe(bencher: Bencher<'_, '_>, endpoint: Endpoint, event: &str) {
    let mut observer = UsageObserver::stream(endpoint);
    bencher
        .counter(BytesCount::of_str(event))
        .bench_local(|| observer.feed(black_box(event.as_bytes())));
}

#[divan::bench]
fn observe_chat_event(bencher: Bencher<'_, '_>) {
    observe(bencher, Endpoint::Chat, &chunk(""));
}

#[divan::bench]
fn observe_chat_event_with_null_usage(bencher: Bencher<'_, '_>) {
    observe(bencher, Endpoint::Chat, &chunk(",\"usage\":null"));
}

#[divan::bench]
fn observe_messages_event(bencher: Bencher<'_, '_>) {
    observe(bencher, Endpoint::Messages, DELTA);
}

/// Sixteen events in one chunk; the time is for all of them.
#[divan::bench]
fn observe_chat_16_events(bencher: Bencher<'_, '_>) {
    let mut events = String::new();
    for _ in 0..16 {
        let _ = write!(events, "{}", chunk(""));
    }
    observe(bencher, Endpoint::Chat, &events);
}

fn translate_stream(bencher: Bencher<'_, '_>, caller: Dialect, upstream: Dialect, event: &str) {
    let Some(translator) = Translator::between(caller, upstream) else { return };
    let mut stream = translator.stream(StreamSettings::default());
    let mut out = Vec::with_capacity(4_096);
    bencher.bench_local(|| {
        out.clear();
        stream.feed(black_box(event.as_bytes()), &mut out).is_ok()
    });
}

#[divan::bench]
fn stream_to_anthropic_event(bencher: Bencher<'_, '_>) {
    translate_stream(bencher, Dialect::Anthropic, Dialect::OpenAi, &chunk(""));
}

#[divan::bench]
fn stream_to_openai_event(bencher: Bencher<'_, '_>) {
    translate_stream(bencher, Dialect::OpenAi, Dialect::Anthropic, DELTA);
}

/// A response of 128 tokens.
fn response() -> String {
    let text = "word ".repeat(128);
    format!(
        r#"{{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{{"index":0,"message":{{"role":"assistant","content":"{text}"}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":128,"completion_tokens":128,"total_tokens":256}}}}"#
    )
}

#[divan::bench]
fn usage_of_a_response(bencher: Bencher<'_, '_>) {
    let body = response();
    bencher.bench_local(|| Usage::from_body(Endpoint::Chat, black_box(body.as_bytes())).is_ok());
}
