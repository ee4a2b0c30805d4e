//! Benchmarks of encoding a request and decoding a response.
//!
//! `cargo bench -p plimsoll-protocol`. Each figure is for one request or one response.
#![expect(clippy::expect_used, reason = "a benchmark may fail loudly")]

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use plimsoll_protocol::{
    Decoder, DecoderOptions, Dialect, Encoder, EncoderOptions, Message, RequestContent, Role, Text,
    Turn,
};

fn main() {
    divan::main();
}

/// A prompt of `words` words of four bytes, each about one token.
fn prompt(words: usize) -> Vec<Message> {
    let mut text = Text::new();
    text.end().push_str("conversation-17 ");
    text.end().push_str(&"and ".repeat(words));
    vec![Message::new(Role::User, text)]
}

#[divan::bench(args = [128, 2_048, 32_768])]
fn encode_chat(bencher: Bencher<'_, '_>, words: usize) {
    let options = EncoderOptions { model: "model".to_owned(), ..EncoderOptions::default() };
    let encoder = Encoder::new(Dialect::OpenaiChat, &options).expect("the model is all it needs");
    let messages = prompt(words);
    let mut out = Vec::with_capacity(1 << 20);
    bencher.bench_local(|| {
        out.clear();
        let content = RequestContent::Chat { system: None, messages: black_box(&messages) };
        encoder.encode_body(&Turn { content, stream: true, max_tokens: Some(128) }, &mut out)
    });
}

fn decoder(stream: bool) -> Decoder {
    Decoder::new(Dialect::OpenaiChat, stream, DecoderOptions::default())
}

fn event(text: &str) -> String {
    format!(
        concat!(
            r#"data: {{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","#,
            r#""choices":[{{"index":0,"delta":{{"content":"{}"}},"finish_reason":null}}]}}"#,
            "\n\n"
        ),
        text
    )
}

const END: &str = concat!(
    r#"data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
    "\n\n",
    r#"data: {"id":"chatcmpl-1","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":128}}"#,
    "\n\ndata: [DONE]\n\n"
);

/// A response of 128 events, with `events_per_read` events per read. Items are events.
#[divan::bench(args = [1, 16, 128])]
fn feed_stream(bencher: Bencher<'_, '_>, events_per_read: usize) {
    let reads: Vec<String> =
        (0..128 / events_per_read).map(|_| event("and ").repeat(events_per_read)).collect();
    let mut decoder = decoder(true);
    bencher.counter(ItemsCount::new(128_usize)).bench_local(|| {
        decoder.reset();
        decoder.head(200, Some(b"text/event-stream"));
        for read in &reads {
            decoder.feed(black_box(read.as_bytes()), &mut |delta| {
                black_box(delta);
            });
        }
        decoder.feed(END.as_bytes(), &mut |delta| {
            black_box(delta);
        });
        decoder.finish()
    });
}

/// A response that is one JSON object.
#[divan::bench(args = [128, 2_048])]
fn feed_whole(bencher: Bencher<'_, '_>, words: usize) {
    let text = "and ".repeat(words);
    let body = format!(
        concat!(
            r#"{{"id":"x","object":"chat.completion","choices":[{{"index":0,"message":{{"role":"assistant","#,
            r#""content":"{}"}},"finish_reason":"stop"}}],"#,
            r#""usage":{{"prompt_tokens":128,"completion_tokens":{}}}}}"#
        ),
        text, words
    );
    let mut decoder = decoder(false);
    bencher.bench_local(|| {
        decoder.reset();
        decoder.head(200, Some(b"application/json"));
        decoder.feed(black_box(body.as_bytes()), &mut |delta| {
            black_box(delta);
        });
        decoder.finish()
    });
}
