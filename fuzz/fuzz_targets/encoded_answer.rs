//! Any bytes as the compressed answer of a chat: no panic, and any split gives the same result. Any
//! text that was compressed reads as the text itself.
//!
//! Input: a byte each for coding and stream, and the split; then the body.

#![no_main]

mod pieces;
#[path = "../../crates/load/protocol/tests/it/support.rs"]
mod support;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use libfuzzer_sys::fuzz_target;
use plimsoll_measure::Outcome;
use plimsoll_protocol::Dialect;

use pieces::pieces;
use support::{EVENTS, JSON, Read, decoder, read, read_body};

const CODINGS: [&str; 5] = ["gzip", "deflate", "zstd", "br", "deflate"];

fn read_coded<'a>(stream: bool, coding: &str, pieces: impl IntoIterator<Item = &'a [u8]>) -> Read {
    let mut decoder = decoder(Dialect::OpenaiChat, stream);
    let head = if stream { EVENTS } else { JSON };
    decoder.head(200, head.map(str::as_bytes));
    decoder.content_encoding(Some(coding));
    read_body(&mut decoder, pieces)
}

/// The body in a coding; `None` if only its decoder is here.
fn packed(coding: usize, body: &[u8]) -> Option<Vec<u8>> {
    let fast = Compression::fast();
    match coding {
        0 => finished(GzEncoder::new(Vec::new(), fast), body, GzEncoder::finish),
        1 => finished(ZlibEncoder::new(Vec::new(), fast), body, ZlibEncoder::finish),
        2 => zstd::encode_all(body, 1).ok(),
        4 => finished(DeflateEncoder::new(Vec::new(), fast), body, DeflateEncoder::finish),
        _ => None,
    }
}

fn finished<E: std::io::Write>(
    mut encoder: E,
    body: &[u8],
    finish: fn(E) -> std::io::Result<Vec<u8>>,
) -> Option<Vec<u8>> {
    encoder.write_all(body).ok()?;
    finish(encoder).ok()
}

fn has_fault_of_coding(read: &Read) -> bool {
    read.detail.as_ref().is_some_and(|detail| detail.message.contains("as its content-encoding"))
}

/// Without what an error says of the coding.
fn without_note(mut read: Read, coding: &str) -> Read {
    let note = format!(" (it came as `{coding}`)");
    let texts =
        read.events.iter_mut().chain(read.detail.iter_mut().map(|detail| &mut detail.message));
    for text in texts {
        *text = text.replace(&note, "");
    }
    read
}

fuzz_target!(|input: &[u8]| {
    let [kind, seed, body @ ..] = input else { return };
    let stream = kind % 2 == 1;
    let coding = usize::from(kind >> 1) % CODINGS.len();
    let name = CODINGS[coding];
    let whole = read_coded(stream, name, [body]);
    let mut split = read_coded(stream, name, pieces(body, *seed));
    // Data in the same read as a fault of the coding is lost.
    if !has_fault_of_coding(&whole) && !has_fault_of_coding(&split) {
        // So is what came in the same read as the byte that is too many: of an answer that has
        // failed, the size behind its failure may differ.
        if whole.outcome != Outcome::Completed {
            split.received = whole.received;
        }
        assert_eq!(split, whole);
    }
    if let Some(packed) = packed(coding, body) {
        let head = (200, if stream { EVENTS } else { JSON });
        let plain = read(&mut decoder(Dialect::OpenaiChat, stream), head, [body]);
        let coded = read_coded(stream, name, pieces(&packed, *seed));
        // A body beyond the limit ends at it, without the bytes behind.
        if plain.received <= 20_000 {
            assert_eq!(without_note(coded, name), without_note(plain, name));
        }
    }
});
