use proptest::prelude::*;

use super::*;

/// Output of a reader as lines, ending with the error if there is one.
fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    let mut reader = FrameReader::new(70_000);
    let mut lines = Vec::new();
    for piece in pieces {
        let fed = reader.feed(piece, &mut |incoming| {
            lines.push(match incoming {
                Incoming::Message(Message::Text(text)) => format!("text {text}"),
                Incoming::Message(Message::Binary(bytes)) => format!("binary {bytes:?}"),
                Incoming::Ping(payload) => format!("ping {payload:?}"),
                Incoming::Pong(payload) => format!("pong {payload:?}"),
                Incoming::Close(None) => "close".to_owned(),
                Incoming::Close(Some(CloseFrame { code, reason })) => {
                    format!("close {code} {reason}")
                }
            });
        });
        if let Err(error) = fed {
            lines.push(format!("{error:?}"));
            break;
        }
    }
    lines
}

/// A server's frame, built by hand: first byte, then the length and the payload.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![first];
    match payload.len() {
        short @ 0..=125 => out.push(u8::try_from(short).unwrap()),
        medium @ 126..=65_535 => {
            out.push(126);
            out.extend(u16::try_from(medium).unwrap().to_be_bytes());
        }
        long => {
            out.push(127);
            out.extend((long as u64).to_be_bytes());
        }
    }
    out.extend(payload);
    out
}

#[test]
fn the_frames_of_the_rfc_are_read_as_there() {
    // Section 5.7.
    let hello = "ping [72, 101, 108, 108, 111]";
    for (sentence, bytes, expected) in [
        ("a text", &[0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f][..], "text Hello"),
        (
            "a text in fragments",
            &[0x01, 0x03, 0x48, 0x65, 0x6c, 0x80, 0x02, 0x6c, 0x6f],
            "text Hello",
        ),
        ("a ping", &[0x89, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f], hello),
    ] {
        assert_eq!(read([bytes]), [expected], "{sentence}");
    }
    let long = |header: &[u8], length: usize| [header.to_vec(), vec![7; length]].concat();
    let binary = |length: usize| [format!("binary {:?}", vec![7; length])];
    assert_eq!(read([&long(&[0x82, 0x7e, 0x01, 0x00], 256)[..]]), binary(256));
    let header = [0x82, 0x7f, 0, 0, 0, 0, 0, 1, 0, 0];
    assert_eq!(read([&long(&header, 65_536)[..]]), binary(65_536));
}

#[test]
fn control_frames_come_between_fragments_and_nothing_counts_after_a_close() {
    let bytes = [
        frame(0x01, "Ah\u{e4}".as_bytes().split_last().unwrap().1),
        frame(0x89, b"1"),
        frame(0x00, b""),
        frame(0x8a, b""),
        frame(0x80, &"\u{e4}".as_bytes()[1..]),
        frame(0x81, b""),
        frame(0x88, b"\x03\xe9bye"),
        frame(0xff, b"garbage"),
    ]
    .concat();
    let expected = ["ping [49]", "pong []", "text Ah\u{e4}", "text ", "close 1001 bye"];
    assert_eq!(read([&bytes[..]]), expected);
    assert_eq!(read(bytes.chunks(1)), expected);
    assert_eq!(read([&frame(0x88, b"")[..]]), ["close"]);
}

#[test]
fn each_violation_is_found_and_named() {
    let long = [0x81, 0x7f, 0, 0, 0, 0, 0, 1, 0x20, 0x00];
    for (sentence, bytes, expected) in [
        ("reserved bit 1", frame(0xc1, b"x"), "ReservedBit"),
        ("reserved bit 3", frame(0x91, b"x"), "ReservedBit"),
        ("opcode 3", frame(0x83, b"x"), "ReservedOpcode(3)"),
        ("opcode 11", frame(0x8b, b""), "ReservedOpcode(11)"),
        ("masked, as a client's", vec![0x81, 0x81, 1, 2, 3, 4, 5], "Masked"),
        ("a ping in fragments", frame(0x09, b""), "FragmentedControl"),
        ("a ping of 126 bytes", frame(0x89, &[0; 126]), "LongControl"),
        ("a close of 64 KiB", frame(0x88, &vec![0; 65_536]), "LongControl"),
        ("a short length in two bytes", vec![0x81, 126, 0, 125], "LengthForm"),
        ("a medium length in eight", vec![0x81, 127, 0, 0, 0, 0, 0, 0, 255, 255], "LengthForm"),
        ("a negative length", vec![0x81, 127, 0x80, 0, 0, 0, 0, 1, 0, 0], "LengthForm"),
        ("a continuation first", frame(0x80, b"x"), "NothingToContinue"),
        (
            "a continuation after the end",
            [frame(0x81, b""), frame(0x80, b"")].concat(),
            "NothingToContinue",
        ),
        (
            "two messages at once",
            [frame(0x01, b"a"), frame(0x81, b"b")].concat(),
            "UnfinishedMessage",
        ),
        ("not UTF-8", frame(0x81, b"\xff"), "NotUtf8"),
        ("half a character", frame(0x81, b"\xc3"), "NotUtf8"),
        (
            "not UTF-8 in the first fragment",
            [frame(0x01, b"\xff"), frame(0x80, b"")].concat(),
            "NotUtf8",
        ),
        ("a reason that is not UTF-8", frame(0x88, b"\x03\xe8\xff"), "NotUtf8"),
        ("half a code", frame(0x88, b"\x03"), "CloseLength"),
        ("the code of no code", frame(0x88, b"\x03\xed"), "CloseCode(1005)"),
        ("a code below all", frame(0x88, b"\x03\xe7"), "CloseCode(999)"),
        ("more than the limit", long.to_vec(), "TooLarge(70000)"),
        (
            "more than the limit in fragments",
            [frame(0x02, &vec![0; 60_000]), frame(0x00, &[0; 10_001])].concat(),
            "TooLarge(70000)",
        ),
    ] {
        let lines = read([&bytes[..]]);
        assert_eq!(lines.last().unwrap(), expected, "{sentence}");
        assert_eq!(read(bytes.chunks(1)), lines, "{sentence}, byte by byte");
    }
}

#[test]
fn a_huge_announced_length_takes_no_memory() {
    let mut reader = FrameReader::new(70_000);
    reader.feed(&[0x82, 126, 0xff, 0xff], &mut |_| {}).unwrap();
    assert_eq!(reader.payload.capacity(), 0);
    assert!(reader.is_within_message());
}

/// Messages in fragments with pings between them, and the expected output.
fn conversation() -> impl Strategy<Value = (Vec<u8>, Vec<String>)> {
    let message = ("[a-z\u{e4}\u{20ac}\u{1f6a2}]{0,60}", 1..40usize, any::<bool>());
    prop::collection::vec(message, 0..6).prop_map(|messages| {
        let (mut wire, mut expected) = (Vec::new(), Vec::new());
        for (text, size, pings) in messages {
            let parts = fragments(&text, size);
            let last = parts.len() - 1;
            for (index, part) in parts.into_iter().enumerate() {
                let number = u8::try_from(index).unwrap();
                let ping = pings.then(|| frame(0x89, &[number]));
                expected.extend(ping.is_some().then(|| format!("ping {:?}", [number])));
                wire.extend(ping.into_iter().flatten());
                wire.extend(frame(u8::from(index == 0) | u8::from(index == last) << 7, part));
            }
            expected.push(format!("text {text}"));
        }
        (wire, expected)
    })
}

/// Splits a text into parts, at least one.
fn fragments(text: &str, size: usize) -> Vec<&[u8]> {
    if text.is_empty() { vec![b""] } else { text.as_bytes().chunks(size).collect() }
}

proptest! {
    #[test]
    fn any_split_gives_the_messages_that_were_sent(
        conversation in conversation(),
        sizes in prop::collection::vec(1..30usize, 1..8),
    ) {
        let (wire, expected) = conversation;
        prop_assert_eq!(read([&wire[..]]), &expected[..]);
        let (mut rest, mut pieces) = (&wire[..], Vec::new());
        for size in sizes.into_iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at(size.min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        prop_assert_eq!(read(pieces), &expected[..]);
    }

    #[test]
    fn any_bytes_give_the_same_in_any_split(
        bytes in prop::collection::vec(
            prop_oneof![
                any::<u8>(),
                prop::sample::select(vec![0x81, 0x01, 0x80, 0x00, 0x82, 0x88, 0x89, 0x8a, 2, 3]),
            ],
            0..60,
        ),
        size in 1..9usize,
    ) {
        prop_assert_eq!(read(bytes.chunks(size)), read([&bytes[..]]));
    }
}
