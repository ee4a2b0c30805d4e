//! Encodes a chat request and decodes a streamed response: `cargo run -p plimsoll-protocol
//! --example decode`.
#![expect(clippy::print_stdout, reason = "an example")]

use std::error::Error;

use plimsoll_protocol::{
    Decoder, DecoderOptions, Dialect, Encoder, EncoderOptions, Message, RequestContent, Role, Text,
    Turn,
};

const ANSWER: &[u8] = br#"data: {"choices":[{"index":0,"delta":{"content":"A line "}}]}

data: {"choices":[{"index":0,"delta":{"content":"on a hull."},"finish_reason":"stop"}]}

data: [DONE]

"#;

fn main() -> Result<(), Box<dyn Error>> {
    let options = EncoderOptions { model: "m".to_owned(), ..EncoderOptions::default() };
    let encoder = Encoder::new(Dialect::OpenaiChat, &options)?;
    let messages = [Message::new(Role::User, Text::from("What is a load line?"))];
    let content = RequestContent::Chat { system: None, messages: &messages };
    let turn = Turn { content, stream: true, max_tokens: Some(8) };
    let mut body = Vec::new();
    encoder.encode_body(&turn, &mut body)?;
    println!("POST {} {}", encoder.path("/v1", &turn), String::from_utf8(body)?);

    let mut decoder = Decoder::new(Dialect::OpenaiChat, true, DecoderOptions::default());
    decoder.head(200, Some(b"text/event-stream"));
    // The bytes may be split in any way: here, one at a time.
    for byte in ANSWER {
        decoder.feed(&[*byte], &mut |delta| println!("{:?}: {}", delta.kind, delta.text));
    }
    println!("{:?}", decoder.finish());
    Ok(())
}
