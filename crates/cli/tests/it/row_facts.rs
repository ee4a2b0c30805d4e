//! Row fields for a target's errors, and for compressed bodies.

use std::io::{BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};

use plimsoll_run_files::{ParsedRow, parse_row};

use crate::plain_server::read;
use crate::support::{FAST, Fixture};

/// A whole answer of a chat.
const CHAT: &str = r#"{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"yes yes yes yes yes yes yes yes yes yes yes yes"}}],"usage":{"prompt_tokens":9,"completion_tokens":12,"total_tokens":21}}"#;

/// Answers every request with the same bytes.
fn server(answer: Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for tcp in listener.incoming() {
            let answer = answer.clone();
            std::thread::spawn(move || serve(tcp.unwrap(), &answer));
        }
    });
    addr
}

fn serve(mut tcp: TcpStream, answer: &[u8]) {
    let mut reader = BufReader::new(tcp.try_clone().unwrap());
    while read(&mut reader).is_some() {
        if tcp.write_all(answer).is_err() {
            return;
        }
    }
}

fn response(status: u16, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// The rows of a short run against a server.
fn rows(answer: Vec<u8>) -> Vec<ParsedRow> {
    let fixture = Fixture::with(FAST);
    let target = format!("http://{}", server(answer));
    let args = ["run", "minimal", "--target", &target, "--key", "sk-very-secret", "--no-probe"];
    let load = ["--stages", "1:300ms", "--set", "stream=false", "--set", "max_requests=5", "-q"];
    fixture.plimsoll(&[&args[..], &load].concat());
    let lines = std::fs::read_to_string(fixture.only_run().join("results.jsonl")).unwrap();
    lines.lines().map(|line| parse_row(line.as_bytes()).unwrap()).collect()
}

#[test]
fn a_row_has_the_first_words_of_the_targets_error_and_no_key() {
    let long = "é".repeat(300);
    for (status, body, expected) in [
        (
            500,
            r#"{"error":{"message":"no room for sk-very-secret\n"}}"#.to_owned(),
            "no room for <redacted>\\n".to_owned(),
        ),
        (429, "slow down\u{1b}[31m".to_owned(), "slow down\\u{1b}[31m".to_owned()),
        (503, format!("x{long}"), format!("x{}", "é".repeat(99))),
        (
            200,
            r#"{"object":"error","message":"model crashed"}"#.to_owned(),
            "model crashed".to_owned(),
        ),
    ] {
        let rows = rows(response(status, "", body.as_bytes()));
        assert!(!rows.is_empty());
        for row in rows {
            assert_eq!(row.error_detail.as_deref(), Some(&*expected), "{status} {body}");
            assert_eq!(row.status, status);
        }
    }
}

#[test]
fn a_row_has_the_bytes_of_the_wire_and_those_of_a_decoded_body() {
    let whole = response(200, "", CHAT.as_bytes());
    let plain = rows(whole.clone());
    assert!(!plain.is_empty());
    for row in &plain {
        assert_eq!((row.outcome.as_str(), row.completion_tokens), ("completed", 12));
        assert_eq!((row.bytes_in, row.decoded_bytes), (whole.len() as u64, None));
        assert_eq!(row.error_detail, None);
    }
    let mut gzip = Command::new("gzip")
        .arg("-c")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    gzip.stdin.take().unwrap().write_all(CHAT.as_bytes()).unwrap();
    let packed = gzip.wait_with_output().unwrap().stdout;
    let answer = response(200, "content-encoding: gzip\r\n", &packed);
    let rows = rows(answer.clone());
    assert!(!rows.is_empty());
    for row in &rows {
        assert_eq!((row.outcome.as_str(), row.completion_tokens), ("completed", 12));
        let sizes = (answer.len() as u64, Some(CHAT.len() as u64));
        assert_eq!((row.bytes_in, row.decoded_bytes), sizes);
    }
}

/// The system's own zstd would read the file; what counts here is that every reader of ours does.
#[test]
fn compressed_rows_are_read_as_plain_ones_are() {
    let fixture = Fixture::with(FAST);
    let target = fixture.target();
    let args =
        ["run", "minimal", "--target", &target, "--no-probe", "--model", "m", "--zstd", "-q"];
    fixture.plimsoll(&[&args[..], &["--stages", "2:300ms", "--allow-invalid"]].concat());
    let run = fixture.only_run();
    assert!(!run.join("results.jsonl").exists());
    let scheduled = fixture.summary().results.total.counters.scheduled;
    // Leaves the files of a run that is killed at its end.
    std::fs::remove_file(run.join("summary.json")).unwrap();
    let report = fixture.plimsoll(&["report", run.to_str().unwrap(), "--format", "json"]).expect(3);
    let rebuilt: serde_json::Value = serde_json::from_str(&report.stdout).unwrap();
    assert_eq!(rebuilt["total"]["counters"]["scheduled"], scheduled);
    let markdown = fixture.plimsoll(&["report", run.to_str().unwrap(), "--format", "markdown"]);
    assert!(markdown.stdout.starts_with("**INVALID: "), "{}", markdown.stdout);
}
