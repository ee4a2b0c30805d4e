//! Any bytes as what a server sends over a WebSocket, with or without the handshake before: no
//! panic, and any split gives the same messages, control frames and end. Frames that are written
//! from the input, in fragments with pings between, come out as the messages that they were.
//!
//! Input: a byte for the split, one for the kind; then the bytes.

#![no_main]

mod pieces;

use std::ops::ControlFlow;

use libfuzzer_sys::fuzz_target;
use plimsoll_measure::{Moment, Seed};
use plimsoll_transport::websocket::{FrameReader, Incoming, Message, Upgrade, accept_of};
use plimsoll_transport::{EncodedRequest, ResponseHandler, ResponseHead, RxTime};

use pieces::pieces;

const MAX_MESSAGE: usize = 4_096;

/// The frames that were read, as lines; an error is the last one.
fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    let (mut reader, mut lines) = (FrameReader::new(MAX_MESSAGE), Vec::new());
    for piece in pieces {
        let fed = reader.feed(piece, &mut |incoming| {
            match incoming {
                Incoming::Message(Message::Text(text)) => assert!(text.len() <= MAX_MESSAGE),
                Incoming::Message(Message::Binary(bytes)) => assert!(bytes.len() <= MAX_MESSAGE),
                Incoming::Ping(payload) | Incoming::Pong(payload) => assert!(payload.len() <= 125),
                Incoming::Close(_) => {}
            }
            lines.push(format!("{incoming:?}"));
        });
        if let Err(error) = fed {
            lines.push(error.to_string());
            break;
        }
    }
    lines
}

/// Calls of a handshake's handler.
#[derive(Default)]
struct Log {
    heads: u32,
    body: Vec<u8>,
    received: usize,
}

impl ResponseHandler for Log {
    fn sent(&mut self, _at: Moment, _encoded: EncodedRequest) {}

    fn received(&mut self, bytes: usize, _rx_time: RxTime) {
        self.received += bytes;
    }

    fn head(&mut self, _head: &ResponseHead<'_>) {
        self.heads += 1;
    }

    fn body(&mut self, bytes: &[u8], _at: Moment) -> ControlFlow<()> {
        self.body.extend_from_slice(bytes);
        ControlFlow::Continue(())
    }
}

/// How a handshake ended, the body of an ordinary answer, and the bytes behind a 101.
fn shake<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (String, Vec<u8>, Vec<u8>) {
    let mut upgrade = Upgrade::new(&mut Seed(7).rng("fuzz", 0), None);
    let (mut log, mut left) = (Log::default(), Vec::new());
    for piece in pieces {
        let used = upgrade.received(piece, RxTime::exact(Moment::EPOCH), &mut log);
        left.extend_from_slice(&piece[used..]);
    }
    upgrade.closed();
    assert!(log.heads <= 1);
    let end = format!("{:?}", upgrade.take_end());
    if !end.contains("Switched") {
        // Bytes after the end of an ordinary response belong to no exchange.
        left.clear();
    }
    (end, log.body, left)
}

/// Writes each line of a text as a message in fragments, with a ping before each of them.
fn written(text: &str, seed: u8) -> (Vec<u8>, Vec<String>) {
    let (mut wire, mut expected) = (Vec::new(), Vec::new());
    for line in text.split('\n').filter(|line| line.len() <= MAX_MESSAGE) {
        let mut parts = pieces(line.as_bytes(), seed);
        if parts.is_empty() {
            parts.push(b"");
        }
        let last = parts.len() - 1;
        for (index, part) in parts.into_iter().enumerate() {
            wire.extend([0x89, 1, seed]);
            expected.push(format!("{:?}", Incoming::Ping(&[seed])));
            wire.push(u8::from(index == 0) | if index == last { 0x80 } else { 0 });
            match u8::try_from(part.len()) {
                Ok(short) if short < 126 => wire.push(short),
                _ => {
                    wire.push(126);
                    wire.extend(u16::try_from(part.len()).unwrap().to_be_bytes());
                }
            }
            wire.extend_from_slice(part);
        }
        expected.push(format!("{:?}", Incoming::Message(Message::Text(line))));
    }
    (wire, expected)
}

fuzz_target!(|input: &[u8]| {
    let [seed, kind, bytes @ ..] = input else { return };
    match kind % 3 {
        0 => assert_eq!(read(pieces(bytes, *seed)), read([bytes])),
        1 => {
            // The mutations cannot find the accept that belongs to the key.
            let key = Upgrade::new(&mut Seed(7).rng("fuzz", 0), None).key().to_owned();
            let text = String::from_utf8_lossy(bytes).replace("ACCEPT", &accept_of(&key));
            let bytes = text.as_bytes();
            assert_eq!(shake(pieces(bytes, *seed)), shake([bytes]));
        }
        _ => {
            let text = String::from_utf8_lossy(bytes);
            let (wire, expected) = written(&text, *seed);
            assert_eq!(read([&wire[..]]), expected);
            assert_eq!(read(pieces(&wire, seed.wrapping_add(1))), expected);
        }
    }
});
