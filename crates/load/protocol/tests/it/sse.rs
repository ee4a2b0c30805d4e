//! The event-stream parser, checked against a second implementation of the standard.

use plimsoll_measure::ErrorClass;
use plimsoll_protocol::sse::{Event, Parser};
use proptest::prelude::*;

use crate::sse_oracle::{Events, oracle};

fn parse<'a>(
    max: usize,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Events, Result<(), ErrorClass>) {
    let mut parser = Parser::new(max);
    let mut events = Vec::new();
    let push = |events: &mut Events, event: Event<'_>| {
        events.push((event.name.to_owned(), event.data.to_owned()));
    };
    let result = pieces
        .into_iter()
        .try_for_each(|piece| parser.feed(piece, |event| push(&mut events, event)));
    (events, result)
}

#[test]
fn streams_are_parsed_as_the_standard_says() {
    for (stream, expected, rule) in [
        ("data: a\n\n", vec![("", "a")], "one line of data"),
        ("data:a\n\ndata:  a\n\n", vec![("", "a"), ("", " a")], "at most one space is dropped"),
        ("data: a\r\n\r\ndata: b\r\r", vec![("", "a"), ("", "b")], "all line ends are known"),
        ("data: a\ndata: b\ndata\n\n", vec![("", "a\nb\n")], "data lines are joined"),
        ("data\n\n", vec![("", "")], "empty data is an event"),
        ("event: x\n\ndata: a\n\n", vec![("", "a")], "without data there is no event"),
        ("event: x\nevent: y\ndata: a\n\n", vec![("y", "a")], "the last name stands"),
        ("data: a\nevent: y\n\n", vec![("y", "a")], "also behind the data"),
        (": hi\n\n:\ndata: a\n: mid\n\n", vec![("", "a")], "comments are skipped"),
        ("id: 1\nretry: 2\nother\nDATA: b\ndata: a\n\n", vec![("", "a")], "so are other fields"),
        ("\u{feff}data: a\n\n\u{feff}data: b\n\n", vec![("", "a")], "one mark at the start"),
        ("data: a\n\ndata: b\n", vec![("", "a")], "an event without its end is dropped"),
        ("data: a\n\ndata: b", vec![("", "a")], "also with an unfinished line"),
        ("data: 1:2 é\n\n", vec![("", "1:2 é")], "only the first colon divides"),
    ] {
        let expected: Events =
            expected.into_iter().map(|(n, d)| (n.to_owned(), d.to_owned())).collect();
        assert_eq!(oracle(stream), expected, "oracle: {rule}");
        let whole = parse(100, [stream.as_bytes()]);
        assert_eq!(whole, (expected.clone(), Ok(())), "{rule}");
        let bytewise = parse(100, stream.as_bytes().chunks(1));
        assert_eq!(bytewise, (expected, Ok(())), "{rule}, byte by byte");
    }
}

#[test]
fn a_line_or_event_over_the_limit_fails_after_the_events_before_it() {
    let a = (String::new(), "a".to_owned());
    let fits = format!("data: {}\n\n", "x".repeat(94));
    assert_eq!(parse(100, [fits.as_bytes()]).1, Ok(()));
    // The line feed that joins two lines counts as data.
    let half = format!("data: {}\n", "x".repeat(50));
    let fits = format!("{half}data: {}\n\n", "x".repeat(49));
    assert_eq!(parse(100, [fits.as_bytes()]).1, Ok(()));
    for (stream, what) in [
        (format!("data: a\n\ndata: {}\n\n", "x".repeat(95)), "a line"),
        (format!("data: a\n\n{}", "x".repeat(101)), "an unfinished line"),
        (format!("data: a\n\n:{}\n", "x".repeat(100)), "a comment"),
        (format!("data: a\n\n{half}{half}\n"), "data of two lines"),
    ] {
        for pieces in [1, 7, 1_000] {
            let read = parse(100, stream.as_bytes().chunks(pieces));
            let expected = (vec![a.clone()], Err(ErrorClass::BodyTooLarge));
            assert_eq!(read, expected, "{what}, {pieces} bytes at a time");
        }
    }
}

#[test]
fn endless_comments_need_no_memory() {
    let comments = ": ping\n".repeat(1_000);
    assert_eq!(parse(10, [comments.as_bytes()]), (vec![], Ok(())));
}

#[test]
fn invalid_utf8_ends_the_stream() {
    let stream = b"data: a\n\ndata: \xff\n\n";
    for pieces in [1, 1_000] {
        let (events, result) = parse(100, stream.chunks(pieces));
        assert_eq!((events.len(), result), (1, Err(ErrorClass::MalformedBody)));
    }
}

#[test]
fn a_reset_parser_keeps_nothing_of_the_stream_before() {
    let mut parser = Parser::new(100);
    for before in ["data: old\nevent: old\nda", "data: old\r", "\u{feff}"] {
        parser.feed(before.as_bytes(), |_| {}).unwrap();
        parser.reset();
        let mut events = Vec::new();
        let feed = "\u{feff}data: new\n\n".as_bytes();
        parser.feed(feed, |event| events.push((event.name.len(), event.data.len()))).unwrap();
        assert_eq!(events, [(0, 3)], "{before:?}");
    }
}

#[test]
fn a_line_feed_after_a_reset_is_a_line_by_itself() {
    let mut parser = Parser::new(100);
    parser.feed(b"data: old\r", |_| {}).unwrap();
    parser.reset();
    // The LF is an empty first line, so the mark after it is not at the start of the stream.
    let mut events = 0;
    parser.feed("\n\u{feff}data: new\n\n".as_bytes(), |_| events += 1).unwrap();
    assert_eq!(events, 0);
}

/// Texts made of tokens that are significant in the grammar.
fn streams() -> impl Strategy<Value = String> {
    let token = prop_oneof![
        "\n|\r|\r\n|\n\n|\r\n\r\n",
        "data|event|id|:|: | |data: |event: |data:",
        "[a-z{}é漢🚢\u{feff}]{1,4}",
    ];
    proptest::collection::vec(token, 0..40).prop_map(|tokens| tokens.concat())
}

proptest! {
    #[test]
    fn any_split_gives_the_events_of_the_standard(
        stream in streams(),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let bytes = stream.as_bytes();
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
        prop_assert_eq!(parse(10_000, pieces), (oracle(&stream), Ok(())));
    }
}
