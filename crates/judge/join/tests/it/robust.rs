//! Arbitrary logs never panic: they give one error message, or counts that add up.

use std::fs;

use plimsoll_join::{Join, text};
use proptest::prelude::*;

use crate::support::{Files, id, options};

const MAPS: [&[&str]; 4] = [
    &[],
    &["id=id", "total=took:ms", "upstream=up:ms", "at=at:iso", "status=status", "attempt=try"],
    &["id=a.b", "at=at:ns", "ended=ended:ns", "prompt=in", "completion=out", "stream=stream"],
    &["text=text", "messages=messages", "total=took:us", "at=at:s", "decision=decision"],
];

/// Fragments of logs, in any order.
fn pieces() -> impl Strategy<Value = String> {
    const PIECES: [&str; 34] = [
        "{",
        "}",
        "\"id\":",
        "\"took\":",
        "\"up\":",
        "\"at\":",
        "\"ended\":",
        "\"a\":{\"b\":",
        "\"status\":",
        "\"text\":\"[",
        "]",
        ",",
        ",",
        "\n",
        "\n",
        "\"",
        "\"",
        ":",
        "19",
        "1795000000",
        "9e999",
        "-9223372036854775808",
        "2026-11-18T11:06:40Z",
        "null",
        "true",
        "id,took,at,status,try\n",
        "\u{1b}[1;32mx",
        "\u{202e}",
        "\\u0000",
        "[",
        "-",
        "18446744073709551615",
        "allow",
        "\r\n",
    ];
    let ids = (0..3_i64).map(|n| format!("\"{}\"", id(n)));
    let all: Vec<String> = PIECES.into_iter().map(str::to_owned).chain(ids).collect();
    prop::collection::vec(prop::sample::select(all), 0..60).prop_map(|pieces| pieces.concat())
}

/// Rows of the run's requests with unusual values.
fn rows() -> impl Strategy<Value = String> {
    let value = prop::sample::select(vec![
        "0",
        "19",
        "-1",
        "1.5",
        "1e300",
        "\"x\"",
        "null",
        "[1]",
        "9223372036854775807",
        "\"2026-11-18T11:06:40Z\"",
        "1795000000000000000",
        "\"1795000000.0001\"",
        "\"0.01, 0.02\"",
        "true",
    ]);
    let row = (0..4_i64, prop::collection::vec(value, 6)).prop_map(|(n, values)| {
        let keys = ["took", "up", "at", "status", "try", "ended"];
        let members = keys.iter().zip(values).map(|(key, value)| format!(",\"{key}\":{value}"));
        format!("{{\"id\":\"{}\"{}}}\n", id(n), members.collect::<String>())
    });
    prop::collection::vec(row, 1..40).prop_map(|rows| rows.concat())
}

fn adds_up(join: &Join) {
    let books = &join.books;
    let absent = books.lost + books.kept + books.unanswered + books.in_flight + books.unnamed;
    assert_eq!(books.in_run, books.matched + absent, "{books:?}");
    assert_eq!(books.in_log, books.matched + books.rows_twice + books.foreign, "{books:?}");
    let shown = text(join);
    assert!(shown.chars().all(|c| c == '\n' || !c.is_control()), "{shown:?}");
}

fn survives(files: &Files, map: &[&str], log: &[u8]) {
    fs::write(files.path("log"), log).unwrap();
    match files.join_with(&files.path("log"), &options(map)) {
        Ok(join) => adds_up(&join),
        Err(error) => {
            let message = error.to_string();
            assert!(!message.is_empty() && !message.chars().any(char::is_control), "{message:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn any_log_is_survived(
        map in prop::sample::select(MAPS.to_vec()),
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        pieces in pieces(),
        rows in rows(),
    ) {
        let files = Files::run(3);
        survives(&files, map, &bytes);
        survives(&files, map, pieces.as_bytes());
        survives(&files, map, rows.as_bytes());
        survives(&files, map, (rows + &pieces).as_bytes());
    }
}
