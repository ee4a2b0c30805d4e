//! Bodies after a valid head, in each framing: a framed body comes out unchanged, any bytes are
//! read without a panic, and any split gives the same body.
//!
//! Input: a byte for the framing, one for the split, two for a length; then the body.

#![no_main]

mod pieces;
mod response;

use libfuzzer_sys::fuzz_target;
use plimsoll_measure::ErrorClass;

use pieces::pieces;
use response::{Response, read};

/// A response in one of the framings, and the expected result where it is known.
fn frame(kind: u8, seed: u8, length: usize, body: &[u8]) -> (Vec<u8>, Option<Response>) {
    let good = |body: &[u8]| (body.to_vec(), Ok(()));
    let (header, wire, expected) = match kind % 4 {
        0 => (String::new(), body.to_vec(), Some(good(body))),
        1 => {
            let header = format!("content-length: {length}\r\n");
            let expected = body
                .get(..length)
                .map_or_else(|| (body.to_vec(), Err(ErrorClass::BodyTruncated)), good);
            (header, body.to_vec(), Some(expected))
        }
        2 => (CHUNKED.to_owned(), chunked(body, seed), Some(good(body))),
        _ => (CHUNKED.to_owned(), body.to_vec(), None),
    };
    let head = format!("HTTP/1.1 200 OK\r\n{header}\r\n");
    let expected = expected.map(|(body, end)| Response {
        head: read(false, [head.as_bytes()]).head,
        body,
        end: Some(end),
    });
    ([head.as_bytes(), &wire].concat(), expected)
}

const CHUNKED: &str = "transfer-encoding: chunked\r\n";

fn chunked(body: &[u8], seed: u8) -> Vec<u8> {
    let mut wire = Vec::new();
    for piece in pieces(body, seed).into_iter().filter(|piece| !piece.is_empty()) {
        wire.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        wire.extend_from_slice(piece);
        wire.extend_from_slice(b"\r\n");
    }
    wire.extend_from_slice(b"0\r\n\r\n");
    wire
}

fuzz_target!(|input: &[u8]| {
    let [kind, seed, high, low, body @ ..] = input else { return };
    let length = usize::from(u16::from_be_bytes([*high, *low]));
    let (wire, expected) = frame(*kind, *seed, length, body);
    let whole = read(false, [&wire[..]]);
    if let Some(expected) = expected {
        assert_eq!(whole, expected);
    }
    assert_eq!(read(false, pieces(&wire, *seed)), whole);
});
