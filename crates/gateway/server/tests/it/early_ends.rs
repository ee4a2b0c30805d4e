//! Answers that end before their end: the client, the row and the metrics are told why.

use std::io;
use std::path::Path;

use plimsoll_gateway_server::Gateway;
use serde_json::Value;

use super::support::client::{post, send};
use super::support::provider::{AnswerKind, Provider, ReceivedRequest, ResponseWriter, frames};
use super::support::{CHAT, MESSAGES, gateway, sleep_ms, streamed, until};

/// Behaviour of a provider after the first half of its events.
#[derive(Clone, Copy, Debug)]
enum Then {
    BreaksOff,
    BreaksOffInAnEvent,
    Ends,
    SendsNonsense,
    SaysError,
    Waits,
}

fn provider(then: Then) -> Provider {
    Provider::start(move |seen, wire| answer(seen, wire, then))
}

fn answer(seen: &ReceivedRequest, wire: &mut ResponseWriter, then: Then) -> io::Result<()> {
    let events = frames(seen, &["Hello".to_owned(), " there".to_owned()], AnswerKind::Text);
    wire.stream()?;
    for event in &events[..events.len() / 2] {
        wire.frame(event)?;
    }
    match then {
        Then::BreaksOff => Err(io::ErrorKind::Other.into()),
        Then::BreaksOffInAnEvent => {
            wire.frame("data: {\"id\":\"c")?;
            Err(io::ErrorKind::Other.into())
        }
        Then::Ends => wire.end(),
        Then::SendsNonsense => {
            wire.frame("data: {nonsense}\n\n")?;
            wire.end()
        }
        Then::SaysError => {
            let error = "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"too busy\"}}";
            wire.frame(&format!("event: error\ndata: {error}\n\n"))?;
            wire.end()
        }
        Then::Waits => {
            sleep_ms(20_000);
            wire.end()
        }
    }
}

fn logged(provider: &Provider, dialect: &str, log: &Path) -> Gateway {
    gateway(&format!(
        "audit: {{path: '{}', flush: 10ms}}
upstreams: {{p: {{addresses: ['{}'], dialect: {dialect}, timeout: 10s, idle_timeout: 300ms}}}}
routes:
  - {{name: chat, path: {CHAT}, upstream: p, llm: true}}
  - {{name: messages, path: {MESSAGES}, upstream: p, llm: true}}",
        log.display(),
        provider.addr
    ))
}

fn reason(log: &Path) -> Value {
    let rows = || std::fs::read_to_string(log).unwrap_or_default();
    until("the row is written", || rows().ends_with('\n'));
    let row: Value = serde_json::from_str(rows().lines().last().unwrap()).unwrap();
    row["ended_early"].clone()
}

/// The error that ends a stream, by the caller's dialect; `None` for a stream without one.
fn told(path: &str, text: &str) -> Option<String> {
    let last = text.trim_end().rsplit("\n\n").next().unwrap();
    let is_error_event = last.starts_with("event: error\n");
    let data = last.lines().find_map(|line| line.strip_prefix("data: "))?;
    let error = serde_json::from_str::<Value>(data).ok()?["error"].take();
    let message = error["message"].as_str()?.to_owned();
    assert_eq!(is_error_event, path == MESSAGES, "{text}");
    Some(message)
}

#[test]
fn the_client_and_the_row_are_told_why_an_answer_ends_early() {
    for (then, row, words) in [
        (Then::BreaksOff, "upstream_broke_off", "broke off"),
        (Then::Waits, "upstream_idle", "sent nothing for too long"),
        (Then::SaysError, "upstream_failed", "too busy"),
    ] {
        for dialect in ["openai", "anthropic"] {
            for path in [CHAT, MESSAGES] {
                // OpenAI's own servers send no such event.
                if matches!(then, Then::SaysError) && dialect == "openai" {
                    continue;
                }
                let folder = tempfile::tempdir().unwrap();
                let log = folder.path().join("audit.jsonl");
                let provider = provider(then);
                let gateway = logged(&provider, dialect, &log);
                let reply = post(gateway.addr(), path, &[], &streamed("x"));
                let text = reply.text();
                let what = format!("{then:?} {dialect} {path}: {text}");
                assert!(text.contains("Hello"), "{what}");
                let message = told(path, &text).unwrap_or_else(|| panic!("{what}"));
                assert!(message.contains(words), "{what}");
                assert_eq!(reason(&log), row, "{what}");
                assert_eq!(reply.broken, !matches!(then, Then::SaysError), "{what}");
            }
        }
    }
}

#[test]
fn what_only_a_translation_needs_is_told_by_it() {
    for (then, row, words) in [
        (Then::Ends, "upstream_truncated", "ended before its last event"),
        (Then::SendsNonsense, "not_translated", "could not be read"),
        (Then::BreaksOffInAnEvent, "upstream_broke_off", "broke off"),
    ] {
        for (dialect, path, same) in [("openai", MESSAGES, CHAT), ("anthropic", CHAT, MESSAGES)] {
            let folder = tempfile::tempdir().unwrap();
            let log = folder.path().join("audit.jsonl");
            let provider = provider(then);
            let gateway = logged(&provider, dialect, &log);
            let reply = post(gateway.addr(), path, &[], &streamed("x"));
            let what = format!("{then:?} {dialect}: {}", reply.text());
            let message = told(path, &reply.text()).unwrap_or_else(|| panic!("{what}"));
            assert!(message.contains(words) && reply.broken, "{what}");
            assert_eq!(reason(&log), row, "{what}");
            // Untranslated streams pass byte for byte, and end as the upstream ended them.
            let reply = post(gateway.addr(), same, &[], &streamed("x"));
            let text = reply.text();
            assert!(told(same, &text).is_none(), "{text}");
            assert_eq!(reply.broken, matches!(then, Then::BreaksOffInAnEvent), "{text}");
        }
    }
}

#[test]
fn a_client_that_goes_is_the_reason_in_the_row() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("audit.jsonl");
    let provider = provider(Then::Waits);
    let gateway = logged(&provider, "openai", &log);
    let body = streamed("x").to_string();
    let mut pending = send(gateway.addr(), &format!("POST {CHAT}"), &[], body.as_bytes());
    assert_eq!(pending.head().status, 200);
    drop(pending);
    assert_eq!(reason(&log), "client_gone");
}
