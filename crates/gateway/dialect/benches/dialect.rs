//! What the dialects cost a gateway per request and per event.
//!
//! Targets: a look at a chat request of 128 tokens 2 µs, a watched event 100 ns.

use std::borrow::Cow;
use std::fmt::Write as _;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use plimsoll_gateway_dialect::{
    DeltaText, Dialect, Endpoint, Piece, RequestView, StreamSettings, Translator, Usage,
    UsageObserver, rewrite_answer, write_cache_key,
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
fn peek(bencher: Bencher<'_, '_>) {
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
    let crossing = Translator::between(Dialect::OpenAi, Dialect::Anthropic);
    bencher.bench_local(|| {
        crossing.map(|crossing| crossing.request(black_box(body.as_bytes()), None).is_ok())
    });
}

fn watch(bencher: Bencher<'_, '_>, endpoint: Endpoint, event: &str) {
    let mut tap = UsageObserver::stream(endpoint);
    bencher
        .counter(BytesCount::of_str(event))
        .bench_local(|| tap.feed(black_box(event.as_bytes())));
}

#[divan::bench]
fn tap_chat_event(bencher: Bencher<'_, '_>) {
    watch(bencher, Endpoint::Chat, &chunk(""));
}

#[divan::bench]
fn tap_chat_event_with_null_usage(bencher: Bencher<'_, '_>) {
    watch(bencher, Endpoint::Chat, &chunk(",\"usage\":null"));
}

#[divan::bench]
fn tap_messages_event(bencher: Bencher<'_, '_>) {
    watch(bencher, Endpoint::Messages, DELTA);
}

/// Sixteen events in one chunk; the time is for all of them.
#[divan::bench]
fn tap_chat_16_events(bencher: Bencher<'_, '_>) {
    let mut events = String::new();
    for _ in 0..16 {
        let _ = write!(events, "{}", chunk(""));
    }
    watch(bencher, Endpoint::Chat, &events);
}

fn cross(bencher: Bencher<'_, '_>, caller: Dialect, upstream: Dialect, event: &str) {
    let Some(crossing) = Translator::between(caller, upstream) else { return };
    let mut stream = crossing.stream(StreamSettings::default());
    let mut out = Vec::with_capacity(4_096);
    bencher.bench_local(|| {
        out.clear();
        stream.feed(black_box(event.as_bytes()), &mut out).is_ok()
    });
}

#[divan::bench]
fn stream_to_anthropic_event(bencher: Bencher<'_, '_>) {
    cross(bencher, Dialect::Anthropic, Dialect::OpenAi, &chunk(""));
}

#[divan::bench]
fn stream_to_openai_event(bencher: Bencher<'_, '_>) {
    cross(bencher, Dialect::OpenAi, Dialect::Anthropic, DELTA);
}

#[divan::bench]
fn delta_text_event_unchanged(bencher: Bencher<'_, '_>) {
    let event = chunk("");
    let mut texts = DeltaText::new(Dialect::OpenAi);
    let mut out = Vec::with_capacity(4_096);
    bencher.bench_local(|| {
        out.clear();
        texts.feed(black_box(event.as_bytes()), &mut out, keep).is_ok()
    });
}

fn keep(piece: Piece<'_>) -> Cow<'_, str> {
    match piece {
        Piece::Delta { text, .. } => Cow::Borrowed(text),
        Piece::End { .. } => Cow::Borrowed(""),
    }
}

/// An answer of 128 tokens.
fn answer() -> String {
    let text = "word ".repeat(128);
    format!(
        r#"{{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{{"index":0,"message":{{"role":"assistant","content":"{text}"}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":128,"completion_tokens":128,"total_tokens":256}}}}"#
    )
}

#[divan::bench]
fn usage_of_an_answer(bencher: Bencher<'_, '_>) {
    let body = answer();
    bencher.bench_local(|| Usage::of_body(Endpoint::Chat, black_box(body.as_bytes())).is_ok());
}

#[divan::bench]
fn texts_of_an_answer(bencher: Bencher<'_, '_>) {
    let body = answer();
    bencher.bench_local(|| {
        rewrite_answer(Endpoint::Chat, black_box(body.as_bytes()), |text| Cow::Borrowed(text))
            .is_ok()
    });
}
