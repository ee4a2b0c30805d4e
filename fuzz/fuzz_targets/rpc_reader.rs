//! Any bytes as the answer of a tool server or an agent: any split gives the same answer, and one
//! that is taken for good is what another parser says it is.
//!
//! Input: a byte each for the operation, the framing and the split; then the body.

#![no_main]

mod pieces;

use libfuzzer_sys::fuzz_target;
use plimsoll_measure::Operation;
use plimsoll_protocol::rpc::{Answer, Expectation, Fault, Reader};
use serde_json::Value;

use pieces::pieces;

const ID: u64 = 7;

fn read<'a>(
    reader: &mut Reader,
    operation: Operation,
    is_stream: bool,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Result<(), Fault>, Answer, Vec<String>) {
    reader.begin(Expectation { operation, id: ID }, is_stream);
    let mut texts = Vec::new();
    let mut fed = Ok(());
    for piece in pieces {
        if fed.is_ok() {
            fed = reader.feed(piece, &mut |text| texts.push(text.to_owned()));
        }
    }
    let end = fed.and_then(|()| reader.finish());
    (end, reader.answer().clone(), texts)
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
    let mut reader = Reader::default();
    let whole = read(&mut reader, operation, is_stream, [body]);
    assert_eq!(read(&mut reader, operation, is_stream, pieces(body, *seed)), whole);
    let (end, answer, texts) = whole;
    let kept = [&answer.version, &answer.cursor, &answer.task, &answer.context];
    assert!(kept.into_iter().flatten().all(|text| text.len() <= 4096));
    assert!(texts.iter().all(|text| !text.is_empty() && text.len() <= 4096));
    let silent =
        matches!(operation, Operation::Initialized | Operation::Cancelled | Operation::EndSession);
    if end.is_ok() && !is_stream && !silent {
        check(operation, body);
    }
});
