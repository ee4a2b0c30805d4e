//! Any bytes as an answer in any dialect: no panic, any split gives the same events, and an answer
//! has failed exactly if there was one error event, the last.
//!
//! Input: a byte each for dialect and stream, status, content type, and the split; then the body.

#![no_main]

mod pieces;
#[path = "../../crates/load/protocol/tests/protocol/reading.rs"]
mod reading;

use libfuzzer_sys::fuzz_target;
use plimsoll_measure::Outcome;
use plimsoll_protocol::Dialect;

use pieces::pieces;
use reading::{EVENTS, JSON, Read, decoder, read};

const STATUSES: [u16; 8] = [200, 200, 200, 204, 302, 429, 500, 999];

fn check(answer: &Read, body: &[u8]) {
    let errors = answer.events.iter().filter(|event| event.starts_with("error: ")).count();
    let failed = matches!(answer.outcome, Outcome::Failed(_));
    assert_eq!(errors, usize::from(failed));
    let last = answer.events.last().is_some_and(|event| event.starts_with("error: "));
    assert_eq!(last, failed);
    assert!(answer.text.len() <= body.len());
    assert_eq!(answer.received, body.len() as u64);
    for empty in ["text: ", "reasoning: ", "tool: ", "finish: "] {
        assert!(answer.events.iter().all(|event| event != empty));
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
