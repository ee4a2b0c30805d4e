//! Only complete, successful responses are cached, for exactly the same request.

use std::io;

use serde_json::json;

use super::support::client::{Headers, post};
use super::support::provider::{Provider, ReceivedRequest, ResponseWriter, answer};
use super::support::{CHAT, llm, question, streamed, with};

const DONE: &str = "data: [DONE]\n\n";
const DELTA: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n";
const ERROR: &str = "data: {\"error\":{\"message\":\"overloaded\"}}\n\n";

/// Writes these frames as a stream.
fn frames(wire: &mut ResponseWriter, frames: &[&str]) -> io::Result<()> {
    wire.stream()?;
    frames.iter().try_for_each(|frame| wire.frame(frame))?;
    wire.end()
}

/// Bad answers, by the text of the question.
fn bad(seen: &ReceivedRequest, wire: &mut ResponseWriter) -> io::Result<()> {
    let ask = seen.json();
    let json = "application/json";
    let good = json!({"choices": [{"finish_reason": "stop", "message": {"content": "hi"}}]});
    match ask["messages"][0]["content"].as_str().unwrap() {
        "error, then end" => frames(wire, &[DELTA, ERROR, DONE]),
        "error in the middle" => frames(wire, &[DELTA, ERROR, DELTA, DONE]),
        "error as text" => frames(wire, &[DELTA, "data: {\"error\":\"ill\"}\n\n", DONE]),
        "named error" => frames(wire, &[DELTA, "event: error\ndata: {\"code\":1}\n\n", DONE]),
        "no content" => frames(wire, &[DONE]),
        "nothing" => frames(wire, &[]),
        "no end" => frames(wire, &[DELTA]),
        "more after the end" => frames(wire, &[DELTA, DONE, DELTA]),
        "another dialect" => {
            frames(wire, &["event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"])
        }
        "json for a stream" => wire.json(200, &good),
        "empty" => wire.whole(200, json, ""),
        "html" => wire.whole(200, "text/html", "<html>"),
        "html as json" => wire.whole(200, json, "<html>"),
        "answer as text" => wire.whole(200, "text/plain", &good.to_string()),
        "half" => wire.whole(200, json, "{\"choices\":[{\"finish_reason\":\"stop\",\"mess"),
        "no answer" => wire.json(200, &json!({"id": "x"})),
        "no choice" => wire.json(200, &json!({"choices": []})),
        "error as 200" => wire.json(
            200,
            &json!({"error": {"message": "ill"}, "choices": [{
            "finish_reason": "stop", "message": {"content": "hi"}}]}),
        ),
        "no reason" => wire.json(200, &json!({"choices": [{"message": {"content": "hi"}}]})),
        "no text" => wire.json(
            200,
            &json!({"choices": [{"finish_reason": "stop",
            "message": {"content": ""}}]}),
        ),
        "created" => wire.json(201, &good),
        other => panic!("{other}"),
    }
}

const STREAMS: [&str; 10] = [
    "error, then end",
    "error in the middle",
    "error as text",
    "named error",
    "no content",
    "nothing",
    "no end",
    "more after the end",
    "another dialect",
    "json for a stream",
];
const BODIES: [&str; 11] = [
    "empty",
    "html",
    "html as json",
    "answer as text",
    "half",
    "no answer",
    "no choice",
    "error as 200",
    "no reason",
    "no text",
    "created",
];

#[test]
fn what_is_no_whole_good_answer_is_not_cached() {
    let provider = Provider::start(bad);
    for sections in
        ["cache: {}", "cache: {}\nscrub: {}", "cache: {}\ntenant: {anonymous: true}\nbudgets: {}"]
    {
        let gateway = llm(provider.addr, sections);
        let streams = STREAMS.iter().map(|text| streamed(text));
        for body in streams.chain(BODIES.iter().map(|text| question(text))) {
            let before = provider.count();
            for _ in 0..2 {
                let reply = post(gateway.addr(), CHAT, &[], &body);
                assert_ne!(reply.header("x-cache"), Some("hit"), "{sections}: {body}");
            }
            assert_eq!(provider.count(), before + 2, "{sections}: {body}");
        }
    }
}

#[test]
fn a_response_that_must_not_be_kept_is_not() {
    let provider = Provider::start(|seen, wire| {
        let directive = seen.json()["messages"][0]["content"].as_str().unwrap().to_owned();
        let kind = format!("application/json\r\ncache-control: {directive}");
        let good = json!({"choices": [{"finish_reason": "stop", "message": {"content": "hi"}}]});
        wire.whole(200, &kind, &good.to_string())
    });
    let gateway = llm(provider.addr, "cache: {}");
    for (directive, last) in [
        ("no-store", "miss"),
        ("private, max-age=60", "miss"),
        ("max-age=0, No-Cache", "miss"),
        ("max-age=60", "hit"),
    ] {
        let [_, again] = [(); 2].map(|()| post(gateway.addr(), CHAT, &[], &question(directive)));
        assert_eq!(again.header("x-cache"), Some(last), "{directive}");
    }
}

/// Headers that are passed on, and by which an upstream may know who asks.
const MAY_NAME_SOMEBODY: [&str; 9] = [
    "user-agent",
    "via",
    "baggage",
    "sec-api-key",
    "sec-websocket-protocol",
    "x-auth-request-access-token",
    "x-b3-token",
    "x-stainless-helper-method",
    "date",
];

#[test]
fn no_caller_gets_the_answer_to_another_ones_members() {
    // The answer repeats what the upstream can see.
    let provider = Provider::start(|seen, wire| answer(seen, wire, &[seen.json().to_string()]));
    for dialect in ["openai", "anthropic"] {
        let gateway = with(provider.addr, dialect, "cache: {}");
        for name in ["user", "metadata", "safety_identifier", "prompt_cache_key", "x_unknown"] {
            for who in ["alice", "bob"] {
                let mut body = question(name);
                body[name] = if name == "metadata" { json!({"user_id": who}) } else { json!(who) };
                let [first, again] = [(); 2].map(|()| post(gateway.addr(), CHAT, &[], &body));
                let states = [&first, &again].map(|reply| reply.header("x-cache").unwrap());
                assert_eq!(states, ["miss", "hit"], "{dialect} {name} {who}");
                let others = if who == "bob" { "alice" } else { "bob" };
                assert!(!again.text().contains(others), "{}", again.text());
            }
        }
    }
}

#[test]
fn headers_that_are_passed_on_are_part_of_the_question() {
    // The answer repeats what the upstream can see.
    let provider = Provider::start(|seen, wire| {
        let mut seen_headers = seen.headers.clone();
        seen_headers.sort();
        answer(seen, wire, &[format!("{} {seen_headers:?}", seen.path)])
    });
    let gateway = llm(provider.addr, "cache: {}");
    let ask = |query: &str, headers: Headers<'_>| {
        let reply = post(gateway.addr(), &format!("{CHAT}{query}"), headers, &question("hi"));
        reply.header("x-cache").unwrap().to_owned()
    };
    assert_eq!([ask("", &[]), ask("", &[])], ["miss", "hit"]);
    let shaping: [(&str, Headers<'_>); 9] = [
        ("", &[("authorization", "Bearer one")]),
        ("", &[("authorization", "Bearer two")]),
        ("", &[("x-api-key", "one")]),
        ("", &[("cookie", "user=1")]),
        ("", &[("openai-beta", "assistants=v2")]),
        ("", &[("accept-language", "de")]),
        ("", &[("x-made-up", "1"), ("x-made-up", "2")]),
        ("", &[("x-made-up", "2"), ("x-made-up", "1")]),
        ("?api-version=2", &[]),
    ];
    for (query, headers) in shaping {
        assert_eq!([ask(query, headers), ask(query, headers)], ["miss", "hit"], "{headers:?}");
    }
    for name in MAY_NAME_SOMEBODY {
        let headers: Headers<'_> = &[(name, "1")];
        assert_eq!([ask("", headers), ask("", headers)], ["miss", "hit"], "{headers:?}");
    }
    let harmless: [Headers<'_>; 7] = [
        &[("x-forwarded-access-token", "removed")],
        &[("forwarded", "for=removed")],
        &[("x-real-ip", "removed")],
        &[("x-request-id", "7")],
        &[("traceparent", "00-1-2-3")],
        &[("x-stainless-retry-count", "1")],
        &[("x-forwarded-for", "10.0.0.1")],
    ];
    for headers in harmless {
        assert_eq!(ask("", headers), "hit", "{headers:?}");
    }
    let preventing: [Headers<'_>; 4] = [
        &[("range", "bytes=0-1")],
        &[("if-none-match", "\"x\"")],
        &[("cache-control", "no-store")],
        &[("cache-control", "max-age=0, no-cache")],
    ];
    for headers in preventing {
        assert_eq!([ask("", headers), ask("", headers)], ["bypass", "bypass"], "{headers:?}");
    }
    assert_eq!(ask("", &[]), "hit");
    let seen = provider.seen();
    assert!(
        seen.iter().all(|seen| seen.headers.iter().all(|(_, value)| !value.contains("removed")))
    );
}
