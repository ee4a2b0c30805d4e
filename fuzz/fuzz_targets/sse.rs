//! Any bytes as an event stream: no panic, any split gives the same events, and a stream without an
//! error gives those of a second implementation of the standard.
//!
//! Input: one byte for the split, then the stream.

#![no_main]

mod pieces;
#[path = "../../crates/load/protocol/tests/it/sse_oracle.rs"]
mod sse_oracle;

use libfuzzer_sys::fuzz_target;
use plimsoll_measure::ErrorClass;
use plimsoll_protocol::sse::Parser;

use pieces::pieces;
use sse_oracle::{Events, oracle};

/// Small enough for the fuzzer to reach.
const MAX: usize = 64;

fn parse(pieces: &[&[u8]]) -> (Events, Result<(), ErrorClass>) {
    let mut parser = Parser::new(MAX);
    let mut events = Events::new();
    let result = pieces.iter().try_for_each(|piece| {
        parser.feed(piece, |event| {
            assert!(event.data.len() <= MAX);
            events.push((event.name.to_owned(), event.data.to_owned()));
        })
    });
    (events, result)
}

fuzz_target!(|input: &[u8]| {
    let Some((&seed, stream)) = input.split_first() else { return };
    let whole = parse(&[stream]);
    assert_eq!(parse(&pieces(stream, seed)), whole);
    if let (Ok(text), Ok(())) = (str::from_utf8(stream), whole.1) {
        assert_eq!(whole.0, oracle(text));
    }
});
