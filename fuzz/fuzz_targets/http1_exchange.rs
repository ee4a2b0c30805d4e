//! Any bytes as the answer of an exchange: no panic, and in any pieces, with the request sent
//! before, between or after them, the same parts and the same end as the parser alone finds.
//!
//! Several answers come one after another, as on one connection.
//!
//! Input: a byte for the split, one for the piece before which the request is sent; then the bytes
//! of one answer, a zero, and those of another.

#![no_main]

mod pieces;
mod response;

use std::ops::ControlFlow;

use libfuzzer_sys::fuzz_target;
use plimsoll_measure::{ErrorClass, Moment};
use plimsoll_transport::http1::ExchangeState;
use plimsoll_transport::{
    EncodedRequest, Request, RequestHead, ResponseHandler, ResponseHead, RxTime,
};

use pieces::pieces;
use response::{Response, read};

/// Reports of the exchange.
#[derive(Default)]
struct Log {
    response: Response,
    sent: u32,
}

impl ResponseHandler for Log {
    fn sent(&mut self, _at: Moment, _encoded: EncodedRequest) {
        self.sent += 1;
    }

    fn received(&mut self, _bytes: usize, _rx_time: RxTime) {}

    fn head(&mut self, head: &ResponseHead<'_>) {
        assert!(self.response.head.is_none(), "one final head");
        let lines = head.headers.iter();
        let lines = lines.map(|line| (line.name.to_owned(), line.value.to_owned()));
        self.response.head = Some((head.status, lines.collect()));
    }

    fn body(&mut self, bytes: &[u8], _at: Moment) -> ControlFlow<()> {
        self.response.body.extend_from_slice(bytes);
        ControlFlow::Continue(())
    }
}

fn exchange(state: &mut ExchangeState, wire: &[u8], seed: u8, sent_before: u8) -> (Response, bool) {
    let head = RequestHead::new("POST", "/", "http://a", []).unwrap();
    let mut encoded = EncodedRequest { body: b"question".to_vec(), ..EncodedRequest::default() };
    head.render(None, encoded.body.len(), &mut encoded.head);
    state.start(Request { head: &head, id: None, encoded, may_wait: false });
    let mut log = Log::default();
    for (number, piece) in pieces(wire, seed).into_iter().enumerate() {
        if number == usize::from(sent_before) {
            let left = state.outgoing().rest().iter().map(|part| part.len()).sum();
            state.outgoing().wrote(left);
            state.sent(Moment::EPOCH, &mut log);
        }
        state.received(piece, RxTime::exact(Moment::EPOCH), &mut log);
    }
    let sent = state.is_sent();
    assert_eq!(log.sent, u32::from(sent));
    let reusable = matches!(state.end(), Some(Ok(true)));
    assert!(sent || !reusable, "a request that was not sent is still owed");
    (log.response, reusable)
}

fuzz_target!(|input: &[u8]| {
    let [seed, sent_before, wire @ ..] = input else { return };
    let mut state = ExchangeState::default();
    // The shapes of heads learned from the first exchange must not change the others.
    let (first, second) = wire.split_at(wire.iter().position(|byte| *byte == 0).unwrap_or(0));
    for wire in [first, second.strip_prefix(&[0]).unwrap_or(second), first] {
        let parsed = read(false, [wire]);
        let (response, reusable) = exchange(&mut state, wire, *seed, *sent_before);
        assert_eq!(response.head, parsed.head);
        assert_eq!(response.body, parsed.body);
        assert!(!reusable || parsed.end == Some(Ok::<(), ErrorClass>(())));
    }
});
