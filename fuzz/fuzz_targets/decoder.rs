//! Any bytes as a response in any dialect: no panic, any split gives the same result, and a
//! response has an error exactly if it has failed.
//!
//! Input: a byte each for dialect and stream, status, content type, and the split; then the body.

#![no_main]

mod pieces;
#[path = "../../crates/load/protocol/tests/it/support.rs"]
mod support;

use libfuzzer_sys::fuzz_target;
use plimsoll_measure::Outcome;
use plimsoll_protocol::Dialect;

use pieces::pieces;
use support::{EVENTS, JSON, Read, decoder, read};

const STATUSES: [u16; 8] = [200, 200, 200, 204, 302, 429, 500, 999];

fn check(read: &Read, body: &[u8]) {
    let errors = read.events.iter().filter(|event| event.starts_with("error: ")).count();
    let failed = matches!(read.outcome, Outcome::Failed(_));
    assert_eq!(errors, usize::from(failed));
    let last = read.events.last().is_some_and(|event| event.starts_with("error: "));
    assert_eq!(last, failed);
    assert!(read.text.len() <= body.len());
    assert_eq!(read.received, body.len() as u64);
    for empty in ["text: ", "reasoning: ", "tool: ", "finish: "] {
        assert!(read.events.iter().all(|event| event != empty));
    }
}

fuzz_target!(|input: &[u8]| {
    let [kind, status, content_type, seed, body @ ..] = input else { return };
    let dialect = Dialect::ALL[usize::from(kind >> 1) % Dialect::ALL.len()];
    let stream = kind % 2 == 1;
    let types = [if stream { EVENTS } else { JSON }, JSON, EVENTS, None, Some("text/html")];
    let head = (
        STATUSES[usize::from(*status) % STATUSES.len()],
        types[usize::from(*content_type) % types.len()],
    );
    let mut decoder = decoder(dialect, stream);
    let whole = read(&mut decoder, head, [body]);
    check(&whole, body);
    assert_eq!(read(&mut decoder, head, pieces(body, *seed)), whole);
});
