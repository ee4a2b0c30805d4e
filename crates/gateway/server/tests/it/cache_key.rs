//! Two requests share a cached answer only if the upstream would have received the same request.
//!
//! Requests are drawn in pairs that differ in one header or one member. A request that bypasses the
//! cache shows what the upstream receives.

use std::cell::RefCell;
use std::io;

use plimsoll_gateway_server::Gateway;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseResult, TestRunner};
use serde_json::{Value, json};

use super::support::client::{ClientResponse, post};
use super::support::gateway;
use super::support::provider::{Provider, ReceivedRequest, ResponseWriter, answer};

/// The headers of all lists of the gateway, of providers and of common clients.
const KNOWN_HEADERS: &str = include_str!("cache_key/headers.txt");
/// The members of requests, by endpoint.
const KNOWN_MEMBERS: &str = include_str!("cache_key/members.txt");

/// Forwarded headers that two requests with one answer may differ in: tracing and request ids,
/// which differ in every request, and the connection to the upstream.
const NOT_IN_THE_KEY: [&str; 16] = [
    "b3",
    "connection",
    "content-length",
    "host",
    "traceparent",
    "tracestate",
    "x-amzn-trace-id",
    "x-b3-flags",
    "x-b3-parentspanid",
    "x-b3-sampled",
    "x-b3-spanid",
    "x-b3-traceid",
    "x-cloud-trace-context",
    "x-correlation-id",
    "x-request-id",
    "x-stainless-retry-count",
];
/// Headers that the test's client writes itself, or that change how it must read the response.
const OF_THE_CLIENT: [&str; 4] = ["content-length", "expect", "host", "transfer-encoding"];
/// Bypasses the cache, see the setting `cache.bypass_header`.
const BYPASS: (&str, &str) = ("x-cache-bypass", "1");

type Lines = Vec<(String, String)>;

/// The first words of the lines of a file, and the other words of each.
fn lists(file: &'static str) -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    let lines = file.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(": ")).map(|(name, words)| {
        let words = words.split(' ').collect();
        (name, words)
    })
}

fn header_name() -> impl Strategy<Value = String> {
    let known: Vec<_> = lists(KNOWN_HEADERS).flat_map(|(_, words)| words).collect();
    prop_oneof![
        3 => prop::sample::select(known).prop_map(str::to_owned),
        2 => "[a-z]{1,8}(-[a-z]{1,8}){0,3}",
        1 => "x-[a-zA-Z0-9!#$%&'*+.^_`|~-]{1,12}",
    ]
    .prop_filter("written by the client", |name| !OF_THE_CLIENT.contains(&name.as_str()))
}

fn header_value() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[!-~]{1,8}( [!-~]{1,4}){0,2}",
        1 => "(Bearer |Basic )?[a-z0-9]{1,8}",
        1 => prop::sample::select(vec!["", "1", "0", "close", "gzip", "identity", "x-user", "de"])
            .prop_map(str::to_owned),
    ]
}

/// Two lists of headers that differ in one line.
fn header_pairs() -> impl Strategy<Value = (Lines, Lines)> {
    let line = || (header_name(), header_value());
    let lines = prop::collection::vec(line(), 0..3);
    (lines, line(), prop::option::of(header_value()), any::<bool>()).prop_map(
        |(common, (name, value), other, repeated)| {
            let mut first = common.clone();
            let mut second = common;
            first.push((name.clone(), value.clone()));
            if repeated {
                second.push((name.clone(), value));
            }
            second.extend(other.map(|other| (name, other)));
            (first, second)
        },
    )
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0_u32..4).prop_map(Value::from),
        (0_u32..8).prop_map(|eighths| json!(f64::from(eighths) / 4.0)),
        "[a-z ]{0,6}".prop_map(Value::from),
        prop::sample::select(vec!["auto", "none", "user", "text"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec(("[a-z]{1,5}|type|text|user_id|format", inner), 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// A path, and two bodies for it that differ in one member: of the request, of its message, of a
/// part of the message's content, or of a tool.
fn body_pairs() -> impl Strategy<Value = (&'static str, Value, Value)> {
    let endpoints: Vec<_> = lists(KNOWN_MEMBERS).collect();
    prop::sample::select(endpoints)
        .prop_flat_map(|(path, members)| {
            let known = prop::sample::select(members).prop_map(str::to_owned);
            let name = prop_oneof![4 => known, 1 => "[a-z_]{1,12}"];
            let place =
                prop::sample::select(vec!["", "", "", "/messages/0", "/input/0", "/tools/0"]);
            let value = || prop::option::of(json_value());
            (Just(path), name, place, value(), value())
        })
        .prop_map(|(path, name, place, first, second)| {
            let body = |value: Option<Value>| {
                let mut body = plain_body(path);
                let object = body.pointer_mut(place).and_then(Value::as_object_mut);
                if let (Some(object), Some(value)) = (object, value) {
                    object.insert(name.clone(), value);
                }
                body
            };
            (path, body(first), body(second))
        })
}

fn plain_body(path: &str) -> Value {
    let message = json!({"role": "user", "content": "hi"});
    match path {
        "/v1/chat/completions" => json!({"model": "m", "messages": [message], "tools": [
            {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]}),
        "/v1/messages" => json!({"model": "m", "max_tokens": 9, "messages": [message], "tools": [
            {"name": "f", "input_schema": {"type": "object"}}]}),
        "/v1/responses" => json!({"model": "m", "input": [message]}),
        _ => json!({"model": "m", "input": ["hi"]}),
    }
}

/// A good answer of every endpoint, so that all of them are cached.
fn good_answer(seen: &ReceivedRequest, wire: &mut ResponseWriter) -> io::Result<()> {
    let output = json!([{"type": "message", "content": [{"type": "output_text", "text": "yes"}]}]);
    match seen.path.as_str() {
        "/v1/responses" => wire.json(200, &json!({"status": "completed", "output": output})),
        "/v1/embeddings" => wire.json(200, &json!({"data": [{"embedding": [0.5]}]})),
        _ => answer(seen, wire, &["yes".to_owned()]),
    }
}

/// A provider of a dialect behind a gateway with a cache.
struct Setup {
    provider: Provider,
    gateway: Gateway,
    /// The key of the client, where the gateway needs one.
    key: Option<&'static str>,
    questions: usize,
    hits: usize,
}

impl Setup {
    fn new(dialect: &str, sections: &str) -> Self {
        let provider = Provider::start(good_answer);
        let routes = lists(KNOWN_MEMBERS).map(|(path, _)| {
            format!("  - {{name: r{path}, path: {path}, upstream: p, llm: true}}")
        });
        let routes = routes.collect::<Vec<_>>().join("\n");
        let gateway = gateway(&format!(
            "upstreams: {{p: {{addresses: ['{}'], dialect: {dialect}}}}}\nroutes:\n{routes}\n{sections}",
            provider.addr
        ));
        let key = sections.contains("auth:").then_some("secret");
        Self { provider, gateway, key, questions: 0, hits: 0 }
    }

    fn ask(&self, path: &str, headers: &Lines, body: &Value, bypass: bool) -> ClientResponse {
        let mut lines: Vec<_> = headers.iter().map(|(name, value)| (&**name, &**value)).collect();
        lines.extend(bypass.then_some(BYPASS));
        lines.extend(self.key.map(|key| ("apikey", key)));
        post(self.gateway.addr(), path, &lines, body)
    }

    /// The request that the upstream receives for this one; `None` if it receives none.
    fn forwarded(&self, path: &str, headers: &Lines, body: &Value) -> Option<(Lines, Value)> {
        let before = self.provider.count();
        self.ask(path, headers, body, true);
        let seen = self.provider.seen().split_off(before).pop()?;
        let mut lines = seen.headers.clone();
        lines.retain(|(name, _)| !NOT_IN_THE_KEY.contains(&name.as_str()));
        // The order of values matters for one name only (RFC 9110, 5.3).
        lines.sort_by(|a, b| a.0.cmp(&b.0));
        Some((lines, seen.json()))
    }

    /// Checks a pair of requests. With `exactly`, equal requests to the upstream share an answer.
    fn check(
        &mut self,
        path: &str,
        headers: [&Lines; 2],
        bodies: [&Value; 2],
        exactly: bool,
    ) -> TestCaseResult {
        let [first, second] = [0, 1].map(|at| self.forwarded(path, headers[at], bodies[at]));
        let (Some(first), Some(second)) = (first, second) else { return Ok(()) };
        // A new question for each case: the text is a part of the key.
        self.questions += 1;
        let case = format!("case {}", self.questions);
        let mut own = bodies.map(Clone::clone);
        for body in &mut own {
            for place in ["/messages/0/content", "/input/0/content", "/input/0"] {
                if let Some(text) = body.pointer_mut(place).filter(|text| text.is_string()) {
                    *text = json!(case);
                }
            }
        }
        let state = |at: usize| {
            let reply = self.ask(path, headers[at], &own[at], false);
            (reply.status, reply.header("x-cache").map(str::to_owned))
        };
        let [before, after, again] = [state(0), state(1), state(0)];
        let is_hit = |state: &(u16, Option<String>)| state.1.as_deref() == Some("hit");
        if is_hit(&before) || !is_hit(&again) {
            // The text of the question was replaced, or the answer is not kept.
            return Ok(());
        }
        self.hits += 1;
        prop_assert!(!is_hit(&after) || first == second, "shared: {first:?}\n{second:?}");
        prop_assert!(!exactly || is_hit(&after) || first != second, "not shared: {first:?}");
        Ok(())
    }
}

fn runner(cases: u32) -> TestRunner {
    TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() })
}

#[test]
fn a_header_changes_the_key_or_is_not_forwarded() {
    let keys = "auth: {header: apikey, keys: [{name: a, key: secret}]}";
    for (dialect, sections) in [
        ("openai", "cache: {}".to_owned()),
        ("anthropic", "cache: {}".to_owned()),
        ("openai", format!("cache: {{}}\nrequest_id: {{}}\ntenant: {{}}\n{keys}")),
    ] {
        let setup = RefCell::new(Setup::new(dialect, &sections));
        let exactly = sections == "cache: {}" && dialect == "openai";
        let body = plain_body("/v1/chat/completions");
        let checked = runner(150).run(&header_pairs(), |(first, second)| {
            let (headers, bodies) = ([&first, &second], [&body; 2]);
            setup.borrow_mut().check("/v1/chat/completions", headers, bodies, exactly)
        });
        let hits = setup.into_inner().hits;
        checked.unwrap_or_else(|error| panic!("{dialect}, {sections}: {error}"));
        assert!(hits > 50, "{dialect}, {sections}: {hits} of 150 compared");
    }
}

fn check_known_headers(sections: &str) {
    let mut setup = Setup::new("openai", sections);
    let body = plain_body("/v1/chat/completions");
    let mut names: Vec<_> = lists(KNOWN_HEADERS).flat_map(|(_, words)| words).collect();
    names.retain(|name| !OF_THE_CLIENT.contains(name));
    for name in names {
        let lines = ["one", "two"].map(|value| vec![(name.to_owned(), value.to_owned())]);
        for other in [&lines[1], &Lines::new()] {
            let checked = setup.check("/v1/chat/completions", [&lines[0], other], [&body; 2], true);
            checked.unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}

#[test]
fn every_known_header_changes_the_key_or_is_not_forwarded() {
    check_known_headers("cache: {}");
}

/// Such as `x-forwarded-for`, which the gateway replaces otherwise.
#[test]
fn every_header_of_a_trusted_proxy_changes_the_key_or_is_not_forwarded() {
    check_known_headers("cache: {}\ntrusted_proxies: [127.0.0.1]");
}

#[test]
fn a_member_changes_the_key_or_is_not_forwarded() {
    for dialect in ["openai", "anthropic"] {
        let setup = RefCell::new(Setup::new(dialect, "cache: {}"));
        let none = Lines::new();
        let checked = runner(200).run(&body_pairs(), |(path, first, second)| {
            setup.borrow_mut().check(path, [&none; 2], [&first, &second], false)
        });
        checked.unwrap_or_else(|error| panic!("{dialect}: {error}"));
        let hits = setup.into_inner().hits;
        assert!(hits > 30, "{dialect}: {hits} of 200 compared");
    }
}
