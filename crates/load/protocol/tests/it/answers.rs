//! Response formats of real services. `tests/answers` has them as bytes. Public reports suggested
//! each of them, and the expected values in the table were worked out from the bytes by hand.
//! `docs/guides/mock.md` explains how the mock plays them.

use std::collections::BTreeSet;

use plimsoll_measure::Outcome;
use plimsoll_protocol::{Decoder, DecoderOptions, Dialect};

use crate::support::{Read, read_body};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/answers");

pub(crate) fn file(name: &str) -> Vec<u8> {
    std::fs::read(format!("{FOLDER}/{name}")).unwrap()
}

/// A row of the table.
struct Row<'t> {
    /// Whether a stream was requested.
    stream: bool,
    file: &'t str,
    /// `completed`, `rejected`, or the class of a failure.
    outcome: &'t str,
    finish: &'t str,
    /// Input, output, cached and reasoning tokens; `~` marks an estimate, `?` an unknown count.
    usage: &'t str,
    text: &'t str,
    reasoning: &'t str,
    /// Name and arguments of each call.
    tools: &'t str,
    /// A part of the error's message.
    message: &'t str,
}

fn rows(table: &str) -> impl Iterator<Item = Row<'_>> {
    table.lines().skip(1).map(|line| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [asked, file, outcome, finish, usage, text, reasoning, tools, message] =
            fields.try_into().unwrap();
        let stream = asked == "stream";
        Row { stream, file, outcome, finish, usage, text, reasoning, tools, message }
    })
}

fn dialect(file: &str) -> Dialect {
    match file {
        _ if file.starts_with("a_") => Dialect::AnthropicMessages,
        _ if file.starts_with("t_") => Dialect::OpenaiCompletions,
        _ if file.starts_with("resp") => Dialect::OpenaiResponses,
        _ => Dialect::OpenaiChat,
    }
}

/// Content types by file extension.
const KINDS: [(&str, &str); 5] = [
    ("sse", EVENTS),
    ("json", "application/json"),
    ("ndjson", "application/x-ndjson"),
    ("html", "text/html"),
    ("txt", "text/plain"),
];
const EVENTS: &str = "text/event-stream; charset=utf-8";

/// Status, content type and coding, parsed from the file name: `page.502.html`, `ok.sse.gzip`.
fn head(file: &str) -> (u16, &str, Option<&str>) {
    let mut parts = file.split('.').skip(1).peekable();
    let status = parts.next_if(|part| part.parse::<u16>().is_ok());
    let ending = parts.next().unwrap();
    let (_, kind) = KINDS.into_iter().find(|(known, _)| *known == ending).unwrap();
    let coding = parts.next().map(|coding| if coding == "zlib" { "deflate" } else { coding });
    (status.map_or(200, |status| status.parse().unwrap()), kind, coding)
}

fn decoder(row: &Row<'_>) -> Decoder {
    let options = DecoderOptions { keep_text: true, ..DecoderOptions::default() };
    Decoder::new(dialect(row.file), row.stream, options)
}

fn read_answer(decoder: &mut Decoder, row: &Row<'_>, body: &[u8], piece: usize) -> Read {
    let (status, kind, coding) = head(row.file);
    decoder.reset();
    decoder.head(status, Some(kind.as_bytes()));
    decoder.content_encoding(coding);
    read_body(decoder, body.chunks(piece.max(1)))
}

fn joined(read: &Read, kind: &str) -> String {
    read.events.iter().filter_map(|event| event.strip_prefix(kind)).collect()
}

/// Differences from the row.
fn differences(row: &Row<'_>, decoder: &Decoder, read: &Read) -> Vec<String> {
    let outcome = match read.outcome {
        Outcome::Completed => "completed",
        Outcome::Rejected(_) => "rejected",
        Outcome::Failed(class) => class.name(),
        _ => "another outcome",
    };
    let calls = decoder.tool_calls().iter().map(|call| format!("{}{}", call.name, call.arguments));
    let usage = read.usage.replace(',', "");
    let usage: Vec<&str> = usage.split(' ').step_by(2).collect();
    let mut found = Vec::new();
    for (what, expected, got) in [
        ("outcome", row.outcome, outcome),
        ("finish", row.finish, &joined(read, "finish: ")),
        ("usage", row.usage, &usage.join(" ")),
        ("text", row.text, &read.text),
        ("reasoning", row.reasoning, &joined(read, "reasoning: ")),
        ("tools", row.tools, &calls.collect::<Vec<_>>().join(" ")),
    ] {
        if expected != got {
            found.push(format!("{what} {got:?} for {expected:?}"));
        }
    }
    let message = read.detail.as_ref().map(|detail| detail.message.as_str()).unwrap_or_default();
    if !message.contains(row.message) || row.message.is_empty() != message.is_empty() {
        found.push(format!("message {message:?} for {:?}", row.message));
    }
    found
}

#[test]
fn every_answer_is_read_as_its_service_means_it_or_refused_with_what_was_received() {
    let table = String::from_utf8(file("expected.tsv")).unwrap();
    let mut wrong = Vec::new();
    for row in rows(&table) {
        let body = file(row.file);
        let mut decoder = decoder(&row);
        let whole = read_answer(&mut decoder, &row, &body, body.len());
        let found = differences(&row, &decoder, &whole);
        if !found.is_empty() {
            wrong.push(format!("{}: {}", row.file, found.join("; ")));
        }
        for piece in [1, 7] {
            let split = read_answer(&mut decoder, &row, &body, piece);
            assert_eq!(split, whole, "{} in pieces of {piece}", row.file);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Streams have the same meaning with any line ending.
#[test]
fn good_streams_may_end_their_lines_in_three_ways() {
    let table = String::from_utf8(file("expected.tsv")).unwrap();
    let good = |row: &Row<'_>| {
        let (_, kind, coding) = head(row.file);
        row.outcome == "completed" && kind == EVENTS && coding.is_none() && row.file != "bom.sse"
    };
    for row in rows(&table).filter(good) {
        let body = String::from_utf8(file(row.file)).unwrap();
        for end in ["\r", "\r\n"] {
            let other = body.replace('\n', end);
            let mut decoder = decoder(&row);
            let read = read_answer(&mut decoder, &row, other.as_bytes(), 7);
            assert_eq!(differences(&row, &decoder, &read), [""; 0], "{} {end:?}", row.file);
        }
    }
}

#[test]
fn every_answer_is_in_the_table() {
    let table = String::from_utf8(file("expected.tsv")).unwrap();
    let named: BTreeSet<String> = rows(&table).map(|row| row.file.to_owned()).collect();
    let files = std::fs::read_dir(FOLDER).unwrap();
    let files = files.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let files: BTreeSet<String> = files.filter(|file| file != "expected.tsv").collect();
    assert_eq!(named, files);
}
