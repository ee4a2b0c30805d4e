//! CSV, gzip, and damaged files.

use std::fmt::Write as _;
use std::fs;

use crate::support::{Files, audit_row, id, run_row, total, upstream};

#[test]
fn csv_with_odd_quoting_is_read() {
    let files = Files::run(40);
    let mut text = "\u{feff}\"when\",id,\"note, long\",took\r\n".to_owned();
    for n in 0..40_i64 {
        let note = ["plain", "\"a, b\"", "\"say \"\"hi\"\"\"", "\"two\nlines\"", ""]
            [usize::try_from(n % 5).unwrap()];
        write!(text, "-,\"{}\",{note},{}\r\n", id(n), total(n) / 1_000).unwrap();
    }
    fs::write(files.path("log.csv"), &text).unwrap();
    let join = files.join("log.csv", &["id=id", "total=took:us"]).unwrap();
    assert_eq!((join.books.matched, join.books.lost, join.books.unreadable), (40, 0, 0));
    assert!(join.times[0].outside.p50_ms.unwrap() > 0.1);
    // One malformed row of 41 exceeds the limit of one in 100, but a single one is tolerated.
    fs::write(files.path("log.csv"), format!("{text}x,y,z,1,2\r\n")).unwrap();
    let join = files.join("log.csv", &["id=id"]).unwrap();
    assert_eq!(join.books.unreadable, 1);
    assert!(join.notes.iter().any(|note| note.contains("record 41")), "{:?}", join.notes);
}

#[test]
fn a_json_document_and_the_text_of_envoy_are_read() {
    let files = Files::run(20);
    let rows: Vec<_> = (0..20).map(|n| audit_row(n, 0, 64)).collect();
    files.lines("log.json", [format!("[\n{}\n]", rows.join(",\n"))]);
    let join = files.join("log.json", &[]).unwrap();
    assert_eq!((join.books.matched, join.books.foreign), (20, 0));
    files.lines("envoy.log", (0..20).map(|n: i64| {
        let (id, ms) = (id(n), total(n) / 1_000_000);
        format!(
            r#"[2026-11-18T11:06:40.000Z] "POST /v1/chat HTTP/1.1" 200 - 700 8000 {ms} 7 "-" "plimsoll" "{id}" "gateway""#
        )
    }));
    let join = files.join("envoy.log", &["at="]).unwrap();
    assert_eq!((join.books.matched, join.books.disagreeing), (20, 0));
    assert_eq!(join.times[0].upstream, None);
}

/// A log may cut a prompt within a character.
#[test]
fn rows_that_are_not_utf_8_are_read() {
    let files = Files::run(20);
    let row =
        |n: i64| [format!("{{\"id\":\"{}\",\"text\":\"", id(n)).as_bytes(), b"\xc3\"}\n"].concat();
    fs::write(files.path("log"), (0..20).flat_map(row).collect::<Vec<_>>()).unwrap();
    assert_eq!(files.join("log", &["id=id"]).unwrap().books.matched, 20);
    let row = |n: i64| [format!("{},", id(n)).as_bytes(), b"\xc3\n"].concat();
    let rows = b"id,text\n".iter().copied().chain((0..20).flat_map(row));
    fs::write(files.path("log"), rows.collect::<Vec<_>>()).unwrap();
    assert_eq!(files.join("log", &["id=id"]).unwrap().books.matched, 20);
}

#[test]
fn a_quote_that_is_never_closed_takes_no_memory() {
    let files = Files::run(20);
    let lines = (0..300_000)
        .map(|n| format!("\"{n},a row that seems to belong to one text, and on it goes"));
    files.lines("log.csv", std::iter::once("id,text".to_owned()).chain(lines));
    let message = files.usage("log.csv", &["id=id"]);
    assert!(
        message.contains("a quote is not closed") || message.contains("are malformed"),
        "{message}"
    );
}

#[test]
fn compressed_files_are_read_and_cut_ones_named() {
    let files = Files::run(500);
    files.lines("log", (0..500).map(|n| audit_row(n, 0, 64)));
    let packed = files.gzip("log");
    files.gzip("results.jsonl");
    fs::remove_file(files.path("results.jsonl")).unwrap();
    assert_eq!(files.join("log.gz", &[]).unwrap().books.matched, 500);
    fs::write(files.path("cut.gz"), &packed[..packed.len() / 2]).unwrap();
    let message = files.usage("cut.gz", &[]);
    assert!(message.contains("ends in the middle of its compressed data"), "{message}");
    let mut damaged = packed;
    let middle = damaged.len() / 2;
    damaged[middle..middle + 40].fill(0xa5);
    fs::write(files.path("damaged.gz"), &damaged).unwrap();
    let message = files.usage("damaged.gz", &[]);
    assert!(message.contains("damaged data") || message.contains("compressed data"), "{message}");
}

#[test]
fn the_last_line_of_a_killed_run_may_be_cut() {
    let files = Files::run(30);
    let half = run_row(30);
    let text = fs::read_to_string(files.path("results.jsonl")).unwrap() + &half[..half.len() / 2];
    fs::write(files.path("results.jsonl"), text).unwrap();
    files.lines("log", (0..30).map(|n| audit_row(n, 0, 64)));
    let join = files.join("log", &[]).unwrap();
    assert_eq!((join.books.in_run, join.books.matched), (30, 30));
    assert!(join.notes[0].contains("is truncated"), "{:?}", join.notes);
}

#[test]
fn hostile_texts_reach_no_terminal() {
    let files = Files::run(50);
    let evil = r"\u001b[2J\u001b]0;title\u0007\u202e\n";
    let mut log: Vec<_> = (0..50).map(|n| audit_row(n, 0, 64)).collect();
    log[4] = log[4].replace(r#""status":200"#, &format!(r#""status":"{evil}""#));
    log.push(audit_row(60, 0, 64).replace(&id(60), evil));
    log.push("\x1b[31mnot a row\u{202e}".to_owned());
    files.lines("log", log);
    // One bad status of 51 is more than one in 100, so the error quotes it.
    let error = files.usage("log", &[]);
    assert!(error.contains("\\u{1b}[2J"), "{error}");
    let join = files.join("log", &["status="]).unwrap();
    assert_eq!((join.books.foreign, join.books.unreadable), (1, 1));
    for text in [plimsoll_join::text(&join), error, join.examples.foreign[0].clone()] {
        let bad = text.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
        assert_eq!(bad, None, "{text:?}");
    }
}

/// nginx logs milliseconds, so smaller values must not be shown.
#[test]
fn no_difference_is_shown_finer_than_the_steps_of_the_log() {
    let files = Files::run(100);
    let seconds =
        |nanos: i64| format!("{}.{:03}", nanos / 1_000_000_000, nanos / 1_000_000 % 1_000);
    files.lines("log", (0..100).map(|n: i64| {
        let (took, behind) = (seconds(total(n)), seconds(upstream(n)));
        format!(
            r#"{{"request_id":"{}","request_time":"{took}","upstream_response_time":"{behind}","status":"200"}}"#,
            id(n)
        )
    }));
    let join = files.join("log", &[]).unwrap();
    assert_eq!((join.steps_ms, join.books.matched), (Some(2.0), 100));
    let text = plimsoll_join::text(&join);
    // 300 us in the gateway, and some 600 us outside.
    let line = text.lines().find(|line| line.contains("chat completed")).unwrap();
    assert_eq!(line.matches("<2.00ms").count(), 2, "{text}");
    assert!(text.contains("limits differences to 2.00ms"), "{text}");
    assert!(text.contains("too few requests for that percentile"), "{text}");
}
