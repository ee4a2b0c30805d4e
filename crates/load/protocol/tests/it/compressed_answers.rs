//! Compressed responses. The files were made with Python's zlib, brotli and zstandard packages,
//! with a flush after every event.

use plimsoll_measure::{ErrorClass, Outcome};
use plimsoll_protocol::{Decoder, DecoderOptions, Dialect};

use crate::answers::file;
use crate::support::decoder;

const HEAD: Option<&[u8]> = Some(b"text/event-stream");

fn begin(encoding: &str) -> Decoder {
    let mut chat = decoder(Dialect::OpenaiChat, true);
    chat.head(200, HEAD);
    chat.content_encoding(Some(encoding));
    chat
}

#[test]
fn every_encoding_reads_as_the_body_itself_and_each_event_when_it_comes() {
    for (name, encoding) in [
        ("gzip", "gzip"),
        ("gzip", "X-Gzip"),
        ("zlib", "deflate"),
        ("deflate", "deflate"),
        ("br", "br"),
        ("zstd", "zstd"),
    ] {
        let body = file(&format!("ok.sse.{name}"));
        for piece in [1, 7, 10_000] {
            let (mut chat, mut deltas) = (begin(encoding), 0);
            let mut first = None;
            for (number, bytes) in body.chunks(piece).enumerate() {
                chat.feed(bytes, &mut |_| deltas += 1);
                first = first.or_else(|| (deltas > 0).then_some(number));
            }
            assert_eq!(chat.finish(), Outcome::Completed, "{name} {:?}", chat.error_detail());
            assert_eq!((chat.text(), deltas), ("Hello big world again.", 5), "{name}");
            // The limits apply to decoded bytes: the file has 1 kB or more, the wire less.
            assert_eq!(chat.received(), file("ok.sse").len() as u64, "{name}");
            // The first text is in the second of nine events.
            let late = first.unwrap() * piece > body.len() / 2;
            assert!(piece > 7 || !late, "{name}: {first:?}");
        }
    }
}

#[test]
fn what_is_not_encoded_as_it_says_is_named() {
    for (encoding, says) in [
        ("gzip", "is not `gzip`"),
        ("br", "is not `br`"),
        ("zstd", "is not `zstd`"),
        ("deflate", "is not `deflate`"),
        ("compress", "`content-encoding: compress` is unsupported: use gzip, br or zstd"),
        ("gzip, br", "`content-encoding: gzip, br` is unsupported"),
    ] {
        let mut chat = begin(encoding);
        let mut body = file("ok.sse");
        body[0] = 0xff;
        chat.feed(&body, &mut |_| {});
        assert_eq!(chat.finish(), Outcome::Failed(ErrorClass::MalformedBody), "{encoding}");
        let message = &chat.error_detail().unwrap().message;
        assert!(message.contains(says), "{encoding}: {message}");
    }
}

/// 100 kB of spaces compress to some hundred bytes, and the limit is 20 kB.
#[test]
fn a_small_body_that_gets_larger_than_the_limit_is_refused() {
    use std::io::Write as _;
    let mut coder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    coder.write_all(&vec![b'\n'; 100_000]).unwrap();
    let mut chat = begin("gzip");
    chat.feed(&coder.finish().unwrap(), &mut |_| {});
    assert_eq!(chat.finish(), Outcome::Failed(ErrorClass::BodyTooLarge));
}

#[test]
fn a_body_that_is_not_encoded_stays_as_it_is() {
    for encoding in [None, Some("identity"), Some("")] {
        let mut chat = decoder(Dialect::OpenaiChat, true);
        chat.head(200, HEAD);
        chat.content_encoding(encoding);
        chat.feed(&file("ok.sse"), &mut |_| {});
        assert_eq!(chat.finish(), Outcome::Completed, "{encoding:?}");
    }
}

/// One event of 12,000 letters in a few bytes, and the rest of its stream.
#[test]
fn an_event_comes_whole_when_its_last_byte_does() {
    const EVENT: &[u8] =
        b"\x8b\x8b\x17\x00\x04\xaa\x76\xfe\x42\xcd\x72\x10\x2f\x69\x13\x24\x7c\x73\xb0\x01\
        \x07\x0e\x11\x4f\xd9\x48\x0b\xdb\xe0\x90\xd3\x83\x5e\x0a\x5b\x0c\x59\xe2\x0a\xcd\
        \x13\x6f\x90\x88\x67\x13\xf1\xc1\x70\xfc\xf6\x4c\x13\x00\xf9\x34\xed\xeb\x8c\x01";
    const REST: &[u8] =
        b"\x01\x05\x00\x40\xa0\x26\xe7\x2f\x78\x1c\x50\x5c\x5a\xf3\xd6\x22\x0a\x1c\x72\x02\
        \x74\x90\x2f\xa2\xe6\xad\xc6\xcc\x53\x35\x70\xe3\xf3\x46\x61\xc1\x1d\xfd\x88\xd3\
        \x0b\x3c\x98\x9a\xe8\xca\x95\x00";
    let mut chat = Decoder::new(Dialect::OpenaiChat, true, DecoderOptions::default());
    let mut letters = 0;
    chat.head(200, HEAD);
    chat.content_encoding(Some("br"));
    chat.feed(EVENT, &mut |delta| letters += delta.text.len());
    assert_eq!(letters, 12_000);
    chat.feed(REST, &mut |_| {});
    assert_eq!(chat.finish(), Outcome::Completed, "{:?}", chat.error_detail());
}
