use Step::{Close, Receive, Send};
use plimsoll_measure::{ErrorClass, Nanos};
use proptest::prelude::*;

use crate::buffers::EncodedRequest;
use crate::http1::exchange::*;
use crate::message::{RequestHead, ResponseHead};

/// Calls of a handler, in virtual milliseconds.
#[derive(Debug, Default, PartialEq, Eq, Clone)]
struct Log {
    sent: Option<u64>,
    reads: Vec<(usize, u64)>,
    status: u16,
    body: Vec<u8>,
    /// Time of the last byte of the body.
    last: Option<u64>,
    /// Number of bytes of the body after which the handler stops.
    enough: Option<usize>,
}

const fn ms(at: Moment) -> u64 {
    at.as_nanos() / 1_000_000
}

fn at(ms: u64) -> Moment {
    Moment::EPOCH + Nanos::from_millis(ms)
}

impl ResponseHandler for Log {
    fn sent(&mut self, at: Moment, encoded: EncodedRequest) {
        assert!(!encoded.head.is_empty(), "the buffers come back");
        assert_eq!(self.sent.replace(ms(at)), None);
    }

    fn received(&mut self, bytes: usize, rx_time: RxTime) {
        self.reads.push((bytes, ms(rx_time.at)));
    }

    fn head(&mut self, head: &ResponseHead<'_>) {
        self.status = head.status;
    }

    fn body(&mut self, bytes: &[u8], at: Moment) -> ControlFlow<()> {
        self.body.extend_from_slice(bytes);
        self.last = Some(ms(at));
        if self.enough.is_some_and(|enough| self.body.len() >= enough) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

/// A step of the exchange, one virtual millisecond after the previous one.
#[derive(Clone, Copy)]
enum Step<'w> {
    /// The socket accepts this many bytes of the request.
    Send(usize),
    Receive(&'w [u8]),
    Close,
}

const ALL: Step<'static> = Send(usize::MAX);

type End = Result<bool, ErrorClass>;

/// Runs an exchange until it ends.
fn run(log: &mut Log, steps: &[Step<'_>]) -> Option<End> {
    let head = RequestHead::new("POST", "/", "http://a", []).unwrap();
    let mut encoded = EncodedRequest { body: b"question".to_vec(), ..EncodedRequest::default() };
    head.render(None, encoded.body.len(), &mut encoded.head);
    let mut state = ExchangeState::default();
    state.start(Request { head: &head, id: None, encoded, may_wait: false });
    for (now, step) in (1..).zip(steps) {
        match step {
            Send(bytes) => {
                let left: usize = state.outgoing().rest().iter().map(|part| part.len()).sum();
                state.outgoing().wrote(left.min(*bytes));
                if left > 0 && state.is_sent() {
                    state.sent(at(now), log);
                }
            }
            Receive(bytes) => state.received(bytes, RxTime::exact(at(now)), log),
            Close => state.closed(),
        }
    }
    state.end().map(|end| end.map_err(|failure| failure.class))
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nanswer";

#[test]
fn an_exchange_is_sent_received_and_over_in_virtual_time() {
    let mut log = Log::default();
    let steps = [Send(5), ALL, Receive(&OK[..20]), Receive(&OK[20..40]), Receive(&OK[40..])];
    assert_eq!(run(&mut log, &steps), Some(Ok(true)));
    assert_eq!((log.sent, log.status, log.last), (Some(2), 200, Some(5)));
    assert_eq!(log.reads, [(20, 3), (20, 4), (OK.len() - 40, 5)]);
    assert_eq!(log.body, b"answer");
}

#[test]
fn an_exchange_ends_as_the_connection_allows() {
    let until_close = b"HTTP/1.1 200 OK\r\n\r\nabc".as_slice();
    let (half, broken) = (&OK[..42], b"SSH-2.0\r\n".as_slice());
    for (sentence, steps, end) in [
        ("no end yet", vec![ALL, Receive(half)], None),
        (
            "the answer came before the question was sent",
            vec![Send(5), Receive(OK)],
            Some(Ok(false)),
        ),
        ("bytes after the end", vec![ALL, Receive(OK), Receive(b"x")], Some(Ok(false))),
        ("closed after the end", vec![ALL, Receive(OK), Close], Some(Ok(false))),
        ("closed is the end", vec![ALL, Receive(until_close), Close], Some(Ok(false))),
        ("cut", vec![ALL, Receive(half), Close], Some(Err(ErrorClass::BodyTruncated))),
        ("no answer", vec![ALL, Close], Some(Err(ErrorClass::ClosedEarly))),
        ("not HTTP", vec![ALL, Receive(broken)], Some(Err(ErrorClass::MalformedHead))),
        (
            "what follows an error does not hide it",
            vec![ALL, Receive(broken), Receive(OK), Close],
            Some(Err(ErrorClass::MalformedHead)),
        ),
    ] {
        assert_eq!(run(&mut Log::default(), &steps), end, "{sentence}");
    }
}

#[test]
fn a_handler_that_has_enough_ends_the_exchange() {
    let mut log = Log { enough: Some(2), ..Log::default() };
    let steps = [ALL, Receive(&OK[..OK.len() - 4]), Receive(&OK[OK.len() - 4..])];
    assert_eq!(run(&mut log, &steps), Some(Ok(false)));
    assert_eq!(log.body, b"an");
}

proptest! {
    /// Any bytes, in any pieces, with the request sent at any point, give the same parts and the
    /// same end as in one piece, and every read has its own time.
    #[test]
    fn no_split_of_the_bytes_changes_the_exchange(
        wire in prop_oneof![
            Just(OK.to_vec()),
            Just(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n".to_vec()),
            prop::collection::vec(prop::sample::select(b"HTP/1. 20\r\n:contel-lgh3ax;".to_vec()), 0..80),
        ],
        cuts in prop::collection::vec(0usize..90, 0..6),
    ) {
        let mut whole = Log::default();
        let expected = run(&mut whole, &[ALL, Receive(&wire), Close]);
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(wire.len())).collect();
        cuts.extend([0, wire.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> =
            cuts.windows(2).map(|ends| &wire[ends[0]..ends[1]]).filter(|p| !p.is_empty()).collect();
        let steps: Vec<_> = [ALL].into_iter().chain(pieces.iter().map(|p| Receive(p))).chain([Close]).collect();
        let mut split = Log::default();
        let end = run(&mut split, &steps);
        prop_assert_eq!(end, expected);
        prop_assert_eq!((split.status, &split.body), (whole.status, &whole.body));
        let reads: Vec<_> = pieces.iter().map(|p| p.len()).zip(2..).collect();
        prop_assert_eq!(split.reads, reads);
    }
}
