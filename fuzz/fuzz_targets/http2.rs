//! Any bytes as a connection of HTTP/2: no panic, any split gives the same events and output, and events come in order.
//!
//! Input: one byte for the split, whose lowest bit says whether requests have bodies; then what the target says.

#![no_main]

mod pieces;

use libfuzzer_sys::fuzz_target;
use plimsoll_transport::RequestHead;
use plimsoll_transport::http2::{Ask, Event, Key, Own, Session};

use pieces::pieces;

/// Requests that are under way.
const REQUESTS: usize = 4;

/// All that a session says.
#[derive(Debug, Default, PartialEq)]
struct Heard {
    streams: [Stream; REQUESTS],
    violation: bool,
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
        if let Event::Room = event {
            return;
        }
        assert!(self.end.is_none(), "nothing after the end");
        match event {
            Event::Head(head) => {
                assert!(self.head.is_none() && head.fault().is_none(), "one good head");
                head.show(|head| {
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
                self.end = Some("whole".to_owned());
            }
            Event::Cut(cut) => self.end = Some(format!("{cut:?}")),
            Event::Room => {}
        }
    }
}

fn hear<'a>(with_body: bool, pieces: impl IntoIterator<Item = &'a [u8]>) -> Heard {
    let (mut session, mut heard) = (Session::new(), Heard::default());
    let head = RequestHead::new("POST", "/", "http://a", [("x", "y")]).unwrap();
    for number in 0..REQUESTS {
        let own = Own { id: Some("id"), length: Some(number) };
        let (fields, to_head, ends) = (head.fields(), number == 3, !with_body);
        let key = session.open(Ask { fields, own, to_head, ends });
        assert_eq!(key, Some(Key(number)));
    }
    for piece in pieces {
        let fed = session.feed(piece, &mut |key: Key, event: Event<'_>| heard.streams[key.0].add(event));
        if fed.is_err() {
            heard.violation = true;
            break;
        }
    }
    // What is left is used up and given back.
    for number in 0..REQUESTS {
        let key = Key(number);
        session.send(key, &[b'x'; 100_000]);
        session.consume(key, heard.streams[number].body.len());
        session.close(key);
    }
    heard.output = session.output().to_vec();
    heard
}

fuzz_target!(|input: &[u8]| {
    let Some((&seed, wire)) = input.split_first() else { return };
    let with_body = seed % 2 == 1;
    assert_eq!(hear(with_body, pieces(wire, seed)), hear(with_body, [wire]));
});
