//! Any bytes as an HTTP/2 connection: no panic, any split gives the same events and output, and
//! events are in order.
//!
//! Input: one byte for the split, whose lowest bit says whether requests have bodies; then the
//! bytes of the target.

#![no_main]

mod pieces;

use libfuzzer_sys::fuzz_target;
use plimsoll_transport::RequestHead;
use plimsoll_transport::http2::{Event, NewRequest, Session, StreamKey};

use pieces::pieces;

/// Number of open requests.
const REQUESTS: usize = 4;
const BODY: &[u8] = &[b'x'; 100_000];

/// The complete result of a session.
#[derive(Debug, Default, PartialEq)]
struct SessionResult {
    streams: [Stream; REQUESTS],
    failed: bool,
    output: Vec<u8>,
}

#[derive(Debug, Default, PartialEq)]
struct Stream {
    head: Option<(u16, Vec<(String, Vec<u8>)>)>,
    body: Vec<u8>,
    end: Option<String>,
}

impl Stream {
    fn add(&mut self, event: Event<'_>) {
        if let Event::WindowOpen = event {
            return;
        }
        assert!(self.end.is_none(), "nothing after the end");
        match event {
            Event::Head(head) => {
                assert!(self.head.is_none() && head.error().is_none(), "one valid head");
                head.with_response_head(|head| {
                    let lines = head.headers.iter();
                    let lines = lines.map(|line| (line.name.to_owned(), line.value.to_owned()));
                    self.head = Some((head.status, lines.collect()));
                });
            }
            Event::Data { bytes, .. } => {
                assert!(self.head.is_some(), "no body before its head");
                self.body.extend_from_slice(bytes);
            }
            Event::End => {
                assert!(self.head.is_some(), "no end without a head");
                self.end = Some("complete".to_owned());
            }
            Event::Error(error) => self.end = Some(format!("{error:?}")),
            Event::WindowOpen => {}
        }
    }
}

fn run<'a>(with_body: bool, pieces: impl IntoIterator<Item = &'a [u8]>) -> SessionResult {
    let (mut session, mut result) = (Session::new(), SessionResult::default());
    for number in 0..REQUESTS {
        let method = if number == 3 { "HEAD" } else { "POST" };
        let head = RequestHead::new(method, "/", "http://a", [("x", "y")]).unwrap();
        let body_len = if with_body { BODY.len() } else { 0 };
        let key = session.open(NewRequest { head: &head, id: Some(b"id"), body_len });
        assert_eq!(key, Some(StreamKey(number)));
    }
    for piece in pieces {
        let fed = session
            .feed(piece, &mut |key: StreamKey, event: Event<'_>| result.streams[key.0].add(event));
        if fed.is_err() {
            result.failed = true;
            break;
        }
    }
    // Consume what is left and release the streams.
    for number in 0..REQUESTS {
        let key = StreamKey(number);
        session.send_body(key, BODY);
        session.consume(key, result.streams[number].body.len());
        session.close(key);
    }
    result.output = session.output().to_vec();
    result
}

fuzz_target!(|input: &[u8]| {
    let Some((&seed, wire)) = input.split_first() else { return };
    let with_body = seed % 2 == 1;
    assert_eq!(run(with_body, pieces(wire, seed)), run(with_body, [wire]));
});
