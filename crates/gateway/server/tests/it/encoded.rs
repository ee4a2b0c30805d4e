//! Providers that compress whatever they are asked: a layer that must read the answer reads it.

use std::io::Write as _;
use std::sync::mpsc::channel;

use serde_json::{Value, json};

use super::support::client::{ask, get, post, send};
use super::support::provider::{AnswerKind, Provider, frames};
use super::support::{CHAT, MESSAGES, gateway, llm, question, streamed, until, with};

const CODINGS: [&str; 4] = ["identity", "gzip", "deflate", "zstd"];
const BUDGET: &str = "tenant: {}\nbudgets: {unit: tokens, default: 100000, max_tokens: 1000}";
const TENANT: &[(&str, &str)] = &[("x-tenant-id", "acme")];

fn encode(coding: &str, text: &str) -> Vec<u8> {
    let text = text.as_bytes();
    let level = flate2::Compression::default();
    match coding {
        "gzip" => {
            let mut coder = flate2::write::GzEncoder::new(Vec::new(), level);
            coder.write_all(text).unwrap();
            coder.finish().unwrap()
        }
        "deflate" => {
            let mut coder = flate2::write::ZlibEncoder::new(Vec::new(), level);
            coder.write_all(text).unwrap();
            coder.finish().unwrap()
        }
        "zstd" => zstd::stream::encode_all(text, 3).unwrap(),
        _ => text.to_vec(),
    }
}

/// A provider that compresses as the question says: 7 tokens for the prompt, 5 for the answer. As
/// the question begins with `unknown`, it names a coding that nobody knows.
fn compressing() -> Provider {
    Provider::start(|seen, wire| {
        let ask = seen.json();
        let words = ask["messages"][0]["content"].as_str().unwrap().to_owned();
        let coding = words.split(' ').next().unwrap();
        let text = "write to ann.lee@example.com";
        let (kind, body) = if ask["stream"] == true {
            ("text/event-stream", frames(seen, &[text.to_owned()], AnswerKind::Text).concat())
        } else {
            let message = json!({"role": "assistant", "content": text});
            let whole = json!({"id": "c", "object": "chat.completion", "created": 1, "model": "m",
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}});
            ("application/json", whole.to_string())
        };
        let encoded = encode(coding, &body);
        let pieces: Vec<&[u8]> = encoded.chunks(50).collect();
        let lines = format!("content-type: {kind}\r\ncontent-encoding: {coding}\r\n");
        wire.pieces(&lines, &pieces)
    })
}

fn spent(gateway: &plimsoll_gateway_server::Gateway) -> f64 {
    let state = ask(gateway.addr(), "GET /v1/budget/acme", TENANT, b"").json();
    state["spent"].as_f64().unwrap_or_else(|| panic!("{state}"))
}

#[test]
fn a_budget_is_charged_what_an_encoded_answer_cost() {
    let provider = compressing();
    let gateway = llm(provider.addr, BUDGET);
    let mut before = 0.0;
    for coding in CODINGS {
        for asked in [question(coding), streamed(coding)] {
            let reply = post(gateway.addr(), CHAT, TENANT, &asked);
            assert_eq!(reply.status, 200, "{coding}");
            assert!(reply.text().contains("write to ann.lee@example.com"), "{coding}: {reply:?}");
            assert!(matches!(reply.header("content-encoding"), None | Some("identity")));
            until("it is charged", || spent(&gateway) > before);
            let cost = spent(&gateway) - before;
            // A stream was asked for without its usage: one token for each event at least.
            assert!((5.0..=20.0).contains(&cost), "{coding}: {cost}");
            before += cost;
        }
    }
}

#[test]
fn what_cannot_be_read_costs_all_that_was_reserved() {
    let provider = compressing();
    let gateway = llm(provider.addr, BUDGET);
    for asked in [question("unknown"), streamed("unknown")] {
        let before = spent(&gateway);
        let reply = post(gateway.addr(), CHAT, TENANT, &asked);
        assert_eq!((reply.status, reply.header("content-encoding")), (200, Some("unknown")));
        until("it is charged", || spent(&gateway) >= before + 100.0);
    }
    // A stream in the events of another dialect says nothing of its cost.
    let provider = Provider::start(|_, wire| {
        wire.stream()?;
        wire.frame("data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n")?;
        wire.end()
    });
    let gateway = with(provider.addr, "anthropic", BUDGET);
    assert_eq!(post(gateway.addr(), MESSAGES, TENANT, &streamed("x")).status, 200);
    until("it is charged", || spent(&gateway) >= 100.0);
}

#[test]
fn encoded_answers_are_scrubbed_and_translated() {
    let provider = compressing();
    let gateway = llm(provider.addr, "scrub: {}");
    for coding in CODINGS {
        for path in [CHAT, MESSAGES] {
            for asked in [question(coding), streamed(coding)] {
                let reply = post(gateway.addr(), path, &[], &asked);
                let text = reply.text();
                assert_eq!(reply.status, 200, "{coding} {path}: {text}");
                assert!(
                    text.contains("write to ") && !text.contains("ann.lee@"),
                    "{coding} {text}"
                );
            }
        }
    }
    let refused = post(gateway.addr(), CHAT, &[], &question("unknown"));
    assert_eq!(refused.status, 502);
    let gateway = llm(provider.addr, "");
    let refused = post(gateway.addr(), MESSAGES, &[], &question("unknown"));
    assert_eq!(refused.status, 502);
    assert!(refused.text().contains("content-encoding: unknown"), "{refused:?}");
}

#[test]
fn other_routes_are_scrubbed_too() {
    let provider = Provider::start(|_, wire| {
        let body = encode("gzip", "write to ann.lee@example.com, please");
        wire.pieces("content-type: text/plain\r\ncontent-encoding: gzip\r\n", &[&body])
    });
    let gateway = gateway(&format!(
        "scrub: {{}}\nupstreams: {{p: {{addresses: ['{}']}}}}\nroutes: [{{name: r, path: /*, upstream: p}}]",
        provider.addr
    ));
    let reply = get(gateway.addr(), "/files/x");
    assert!(
        reply.text().starts_with("write to [") && reply.text().ends_with(", please"),
        "{reply:?}"
    );
}

#[test]
fn an_encoded_answer_is_cached_as_plain() {
    let provider = compressing();
    let gateway = llm(provider.addr, "cache: {}");
    for asked in [question("gzip"), streamed("gzip")] {
        let first = post(gateway.addr(), CHAT, &[], &asked);
        let second = post(gateway.addr(), CHAT, &[], &asked);
        assert_eq!((first.text(), second.header("x-cache")), (second.text(), Some("hit")));
    }
    assert_eq!(provider.count(), 2);
}

#[test]
fn an_encoded_event_reaches_the_client_when_it_comes() {
    let (go_on, wait) = channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let provider = Provider::start(move |_, wire| {
        let chunk = |text: &str| {
            let chunk: Value = json!({"id": "c", "created": 1, "model": "m",
                "choices": [{"index": 0, "delta": {"content": text}}]});
            format!("data: {chunk}\n\n")
        };
        let mut coder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        coder.write_all(chunk("first").as_bytes())?;
        coder.flush()?;
        let begun = coder.get_ref().clone();
        coder.write_all(format!("{}data: [DONE]\n\n", chunk("second")).as_bytes())?;
        let all = coder.finish()?;
        let head = "content-type: text/event-stream\r\ncontent-encoding: gzip\r\n";
        wire.begin(head, &begun)?;
        wait.lock().unwrap().recv().unwrap();
        wire.go_on(&all[begun.len()..])?;
        wire.end()
    });
    let gateway = llm(provider.addr, BUDGET);
    let mut pending =
        send(gateway.addr(), &format!("POST {CHAT}"), TENANT, streamed("x").to_string().as_bytes());
    assert_eq!(pending.head().status, 200);
    let first = String::from_utf8(pending.chunk().unwrap()).unwrap();
    assert!(first.contains("first"), "{first}");
    go_on.send(()).unwrap();
    let mut rest = String::new();
    while let Some(chunk) = pending.chunk() {
        rest.push_str(&String::from_utf8(chunk).unwrap());
    }
    assert!(rest.contains("second") && rest.contains("[DONE]"), "{rest}");
}
