//! Any messages of a chat over a WebSocket: no panic, and the text of a whole answer is what
//! another parser reads.
//!
//! Input: messages, each ended by a zero byte.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_measure::Outcome;
use plimsoll_protocol::{Decoder, DecoderOptions, Dialect};
use serde_json::Value;

/// The text of the messages up to the last one, by another parser.
fn text_of(messages: &[&[u8]]) -> String {
    let parsed = messages.iter().map(|message| serde_json::from_slice(message));
    let texts = parsed
        .map_while(|message: Result<Value, _>| message.ok())
        .take_while(|message| message["type"] != "done")
        .filter(|message| message["type"] == "delta")
        .map(|message| message["text"].as_str().unwrap_or_default().to_owned());
    texts.collect()
}

fuzz_target!(|input: &[u8]| {
    let messages: Vec<&[u8]> = input.split(|byte| *byte == 0).collect();
    let options = DecoderOptions { keep_text: true, ..DecoderOptions::default() };
    let mut decoder = Decoder::new(Dialect::Websocket, true, options);
    decoder.head(101, None);
    let mut deltas = String::new();
    for message in &messages {
        decoder.message(str::from_utf8(message).ok(), &mut |delta| {
            if delta.kind == plimsoll_protocol::DeltaKind::Text {
                deltas.push_str(delta.text);
            }
        });
    }
    assert_eq!(deltas, decoder.text());
    let outcome = decoder.finish();
    assert_eq!(decoder.error_detail().is_some(), outcome != Outcome::Completed);
    // Half of a character in an escape, and a number too large, are errors of the other parser.
    let odd = input.windows(2).any(|pair| pair == b"\\u" || pair[0].eq_ignore_ascii_case(&b'e'));
    if outcome == Outcome::Completed && !odd {
        assert_eq!(decoder.text(), text_of(&messages));
    }
});
