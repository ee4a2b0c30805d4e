//! Any bytes as a gateway's log: JSON lines, CSV, gzip of both, known and unknown columns.
//! No panic; a refusal has one message; else every request and every row is counted once, and no
//! text of the log reaches a terminal as it is.
//!
//! Input: a byte for the map, then the log.

#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use plimsoll_join::{Join, MapChoice, Mapping, Options, join, text};

const MAPS: [&[&str]; 4] = [
    &[],
    &["id=id", "total=took:ms", "upstream=up:ms", "at=at:iso", "status=status", "attempt=try"],
    &["id=a.b", "at=at:ns", "ended=ended:ns", "prompt=in", "completion=out", "stream=stream"],
    &["text=text", "messages=messages", "total=took:us", "at=at:s", "decision=decision"],
];

/// A folder of this process with a run of three requests, `id-0` to `id-2`.
fn folder() -> &'static PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = std::env::temp_dir().join(format!("plimsoll-fuzz-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder can be made");
        let row = |n: u64| {
            let at = 1_795_000_000_000_000_000 + n * 10_000_000;
            format!(
                r#"{{"conversation":"c","request_id":"id-{n}","scenario":"chat","target":"t","stage":"1:1s","turn":0,"stream":true,"warmup":false,"reused":true,"intended_unix_ns":{at},"dispatch_lag_ms":0.1,"response_time_ms":20,"service_time_ms":19.9,"events":3,"status":200,"outcome":"completed","prompt_tokens":128,"prompt_tokens_source":"reported","completion_tokens":64,"completion_tokens_source":"reported","bytes_out":9,"bytes_in":9}}"#
            ) + "\n"
        };
        let rows: String = (0..3).map(row).collect();
        fs::write(folder.join("results.jsonl"), rows).expect("it can be written");
        folder
    })
}

fn check(joined: &Join) {
    let books = &joined.books;
    let absent =
        books.lost + books.kept + books.unanswered + books.in_flight + books.unnamed;
    assert_eq!(books.in_run, books.matched + absent);
    assert_eq!(books.in_log, books.matched + books.rows_twice + books.foreign);
    let shown = text(joined);
    assert!(shown.chars().all(|c| c == '\n' || !c.is_control()), "{shown:?}");
}

fuzz_target!(|input: &[u8]| {
    let [map, log @ ..] = input else { return };
    let entries = MAPS[usize::from(*map) % MAPS.len()];
    let entries = entries.iter().map(|entry| Mapping::parse(entry).expect("it is a map"));
    let map = MapChoice { entries: entries.collect(), ..MapChoice::default() };
    let path = folder().join("log");
    fs::write(&path, log).expect("it can be written");
    let options = Options { map, ..Options::default() };
    match join(folder(), &path, &options, &mut |_| (), &mut |_, _| ()) {
        Ok(joined) => check(&joined),
        Err(error) => {
            let message = error.to_string();
            assert!(!message.is_empty() && !message.chars().any(char::is_control), "{message:?}");
        }
    }
});
