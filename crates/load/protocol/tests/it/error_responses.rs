//! Unsuccessful responses.

use plimsoll_measure::{ErrorClass, Outcome};
use plimsoll_protocol::{Dialect, ErrorDetail};

use crate::support::{JSON, decoder, read};

fn detail(body: &str) -> Option<ErrorDetail> {
    let mut decoder = decoder(Dialect::OpenaiChat, true);
    read(&mut decoder, (429, JSON), [body.as_bytes()]).detail
}

#[test]
fn error_bodies_of_every_shape_are_parsed() {
    for (body, kind, code, message) in [
        (
            r#"{"error":{"message":"Slow down","type":"requests","param":null,"code":"rate_limit_exceeded"}}"#,
            Some("requests"),
            Some("rate_limit_exceeded"),
            "Slow down",
        ),
        (
            r#"{"type":"error","error":{"type":"rate_limit_error","message":"Slow down"},"request_id":"r"}"#,
            Some("rate_limit_error"),
            None,
            "Slow down",
        ),
        (r#"{"error":{"message":"Slow down","code":429}}"#, None, Some("429"), "Slow down"),
        (r#"{"error":"Slow down"}"#, None, None, "Slow down"),
        (r#"{"error":{"reason":"odd"}}"#, None, None, r#"{"reason":"odd"}"#),
        (r#"{"message":"No route","type":"t"}"#, Some("t"), None, "No route"),
        (r#"{"blocked":true}"#, None, None, r#"{"blocked":true}"#),
        ("  Too Many Requests\n", None, None, "Too Many Requests"),
        ("{\"error\":", None, None, "{\"error\":"),
        ("a\nb", None, None, "a\\nb"),
    ] {
        let detail = detail(body).unwrap();
        assert_eq!(detail.kind.as_deref(), kind, "{body}");
        assert_eq!(detail.code.as_deref(), code, "{body}");
        assert_eq!(detail.message, message, "{body}");
    }
    assert_eq!(detail(""), None);
}

#[test]
fn the_status_decides_the_outcome_in_every_dialect() {
    for dialect in Dialect::ALL {
        for (status, outcome, events) in [
            (401, Outcome::Rejected(401), vec![]),
            (499, Outcome::Rejected(499), vec![]),
            (500, Outcome::Failed(ErrorClass::ServerError), vec!["error: server_error: m"]),
            (599, Outcome::Failed(ErrorClass::ServerError), vec!["error: server_error: m"]),
            (302, Outcome::Failed(ErrorClass::Redirect), vec!["error: redirect: m"]),
            (101, Outcome::Failed(ErrorClass::MalformedHead), vec!["error: malformed_head: m"]),
            (600, Outcome::Failed(ErrorClass::ServerError), vec!["error: server_error: m"]),
            (999, Outcome::Failed(ErrorClass::ServerError), vec!["error: server_error: m"]),
        ] {
            // For a WebSocket this status is the success, and no body follows.
            if (dialect, status) == (Dialect::Websocket, 101) {
                continue;
            }
            let body = br#"{"error":{"message":"m"}}"#.chunks(5);
            let read = read(&mut decoder(dialect, true), (status, JSON), body);
            assert_eq!(read.outcome, outcome, "{status}");
            assert_eq!(read.events, events, "{status}");
            assert_eq!(read.detail.unwrap().message, "m");
        }
    }
}

#[test]
fn a_failure_without_a_message_is_named_by_its_class() {
    let read = read(&mut decoder(Dialect::OpenaiChat, true), (503, None), []);
    assert_eq!(read.events, ["error: server_error: server_error"]);
}

#[test]
fn a_long_message_is_cut() {
    let detail = detail(&format!("{{\"error\":{{\"message\":\"{}\"}}}}", "é".repeat(5_000)));
    assert_eq!(detail.unwrap().message, format!("{}…", "é".repeat(256)));
    let binary = [0xFF; 5_000];
    let mut decoder = decoder(Dialect::Http, false);
    let detail = read(&mut decoder, (400, None), [&binary[..]]).detail.unwrap();
    assert!(detail.message.len() <= 512 + "…".len());
}

#[test]
fn a_message_nested_too_deeply_is_plain_text() {
    let detail = detail(&"[".repeat(10_000)).unwrap();
    assert!(detail.message.starts_with("[[["));
}
