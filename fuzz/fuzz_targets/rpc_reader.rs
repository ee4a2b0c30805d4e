//! Any bytes as the answer of a tool server or an agent: any split gives the same answer, and one
//! that is taken for good is what another parser says it is.
//!
//! Input: a byte each for the operation, the framing and the split; then the body.

#![no_main]

mod pieces;

use libfuzzer_sys::fuzz_target;
use plimsoll_measure::{Operation, Outcome};
use plimsoll_protocol::rpc::{Answer, Expectation};
use plimsoll_protocol::{Decoder, DecoderOptions, Dialect};
use serde_json::Value;

use pieces::pieces;

const ID: u64 = 7;

fn read<'a>(
    decoder: &mut Decoder,
    operation: Operation,
    is_stream: bool,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Outcome, Option<Answer>, Vec<String>) {
    decoder.expect(Expectation { operation, id: ID });
    let kind: &[u8] = if is_stream { b"text/event-stream" } else { b"application/json" };
    decoder.head(200, Some(kind));
    let mut texts = Vec::new();
    for piece in pieces {
        decoder.feed(piece, &mut |delta| texts.push(delta.text.to_owned()));
    }
    (decoder.finish(), decoder.rpc_answer().cloned(), texts)
}

/// A document that was taken for a good answer.
fn check(operation: Operation, body: &[u8]) {
    serde_json::from_slice::<serde::de::IgnoredAny>(body).expect("it is JSON");
    // A number may be too large for the other parser, or an escape half of a character.
    let Ok(value) = serde_json::from_slice::<Value>(body) else { return };
    if operation == Operation::AgentCard {
        assert!(value["name"].is_string());
        return;
    }
    assert_eq!(value["jsonrpc"], "2.0");
    assert_eq!(value["id"].as_u64(), Some(ID));
    assert!(value["result"].is_object());
}

fuzz_target!(|input: &[u8]| {
    let [operation, framing, seed, body @ ..] = input else { return };
    let operation = Operation::ALL[usize::from(*operation) % Operation::ALL.len()];
    let is_stream = framing % 2 == 1;
    let mut decoder = Decoder::new(Dialect::Mcp, false, DecoderOptions::default());
    let whole = read(&mut decoder, operation, is_stream, [body]);
    assert_eq!(read(&mut decoder, operation, is_stream, pieces(body, *seed)), whole);
    let (outcome, _, texts) = whole;
    assert!(texts.iter().all(|text| !text.is_empty()));
    let silent =
        matches!(operation, Operation::Initialized | Operation::Cancelled | Operation::EndSession);
    if outcome == Outcome::Completed && !is_stream && !silent {
        check(operation, body);
    }
});
