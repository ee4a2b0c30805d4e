//! Errors in the format of the caller's dialect; refused requests do not reach the upstream.

use std::net::TcpListener;

use super::support::client::{ClientResponse, Headers, ask, post, raw};
use super::support::provider::Provider;
use super::support::{CHAT, MESSAGES, gateway, llm, question};

/// Checks that it is an error of the path's dialect.
fn check(path: &str, reply: &ClientResponse, status: u16, what: &str) {
    assert_eq!(reply.status, status, "{path} {what}: {reply:?}");
    let body = reply.json();
    assert!(body["error"]["type"].is_string(), "{path} {what}: {body}");
    let message = body["error"]["message"].as_str().unwrap();
    assert!(!message.is_empty(), "{path} {what}: {body}");
    assert_eq!(body["type"] == "error", path == MESSAGES, "{path} {what}: {body}");
    assert_eq!(body["error"].get("param").is_some(), path == CHAT, "{path} {what}: {body}");
}

#[test]
fn malformed_requests_get_their_status_and_are_not_forwarded() {
    let provider = Provider::with_text(&["x"]);
    let gateway = llm(provider.addr, "server: {body_bytes: 64KiB}\npolicy: {}\ncache: {}");
    let deep =
        format!("{{\"model\":\"m\",\"messages\":{}{}}}", "[".repeat(9_000), "]".repeat(9_000));
    let large = format!("{{\"model\":\"{}\"}}", "m".repeat(70_000));
    let text: Headers<'_> = &[("content-type", "text/plain")];
    let cases: [(&str, Headers<'_>, &[u8], u16); 9] = [
        ("no JSON", &[], b"{\"model\":", 400),
        ("nothing", &[], b"", 400),
        ("an array", &[], b"[1]", 400),
        ("deep JSON", &[], deep.as_bytes(), 400),
        ("not UTF-8", &[], b"{\"model\":\"\xff\",\"messages\":[]}", 400),
        ("wrong type", &[], b"{\"model\":\"m\",\"messages\":\"hi\"}", 400),
        ("model of a wrong type", &[], b"{\"model\":7,\"messages\":[]}", 400),
        ("too large", &[], large.as_bytes(), 413),
        ("another type", text, b"{}", 415),
    ];
    for path in [CHAT, MESSAGES] {
        for (what, headers, body, status) in cases {
            let reply = ask(gateway.addr(), &format!("POST {path}"), headers, body);
            check(path, &reply, status, what);
        }
        check(path, &ask(gateway.addr(), &format!("GET {path}"), &[], b""), 405, "wrong method");
        // Without a length the size shows only while it arrives.
        let mut chunked = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n\
             transfer-encoding: chunked\r\n\r\n"
        );
        chunked.push_str(&format!("4000\r\n{}\r\n", "x".repeat(0x4000)).repeat(5));
        check(path, &raw(gateway.addr(), chunked.as_bytes()).reply(), 413, "too large, chunked");
    }
    assert_eq!(provider.count(), 0);
    assert_eq!(post(gateway.addr(), CHAT, &[], &question("hi")).status, 200, "and all is well");
}

#[test]
fn unknown_and_stripped_endpoints() {
    let provider = Provider::with_text(&["x"]);
    let gateway = gateway(&format!(
        "upstreams: {{p: {{addresses: ['{}']}}}}
routes: [{{name: all, path: /llm/*, strip: /llm, upstream: p, llm: true}}]",
        provider.addr
    ));
    check(CHAT, &post(gateway.addr(), "/llm/v1/other", &[], &question("hi")), 404, "unknown");
    let line = |path: &str| format!("POST /llm{path}");
    for path in [CHAT, MESSAGES] {
        check(path, &ask(gateway.addr(), &line(path), &[], b"{"), 400, "stripped");
        let reply = post(gateway.addr(), &format!("/llm{path}"), &[], &question("hi"));
        assert_eq!(reply.status, 200, "{reply:?}");
    }
    assert_eq!(provider.count(), 2);
    assert_eq!(post(gateway.addr(), "/elsewhere", &[], &question("hi")).status, 404);
}

#[test]
fn untranslatable_requests_are_refused() {
    let provider = Provider::with_text(&["x"]);
    let gateway = gateway(&format!(
        "upstreams: {{p: {{addresses: ['{}'], dialect: anthropic}}}}
routes: [{{name: all, path: /v1/*, upstream: p, llm: true}}]",
        provider.addr
    ));
    for path in ["/v1/responses", "/v1/embeddings"] {
        let body = serde_json::json!({"model": "m", "input": "hi"});
        check(CHAT, &post(gateway.addr(), path, &[], &body), 404, path);
    }
    let mut several = question("hi");
    several["n"] = serde_json::json!(2);
    check(CHAT, &post(gateway.addr(), CHAT, &[], &several), 400, "two answers");
    assert_eq!(provider.count(), 0);
}

#[test]
fn upstream_failures_arrive_in_the_callers_format() {
    let nobody = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let gone = nobody.local_addr().unwrap();
    drop(nobody);
    let silent = Provider::start(|_, _| {
        super::support::sleep_ms(1_000);
        Err(std::io::Error::other("enough"))
    });
    let wild = Provider::start(|_, wire| wire.whole(200, "application/json", "no JSON"));
    let gateway = gateway(&format!(
        "upstreams:
  gone: {{addresses: ['{gone}']}}
  broken: {{addresses: ['{gone}'], breaker: {{failures: 1, open: 60s}}}}
  silent: {{addresses: ['{}'], timeout: 150ms}}
  wild: {{addresses: ['{}']}}
scrub: {{}}
routes:
  - {{name: a, path: /gone/*, strip: /gone, upstream: gone, llm: true}}
  - {{name: b, path: /broken/*, strip: /broken, upstream: broken, llm: true}}
  - {{name: c, path: /silent/*, strip: /silent, upstream: silent, llm: true}}
  - {{name: d, path: /wild/*, strip: /wild, upstream: wild, llm: true}}",
        silent.addr, wild.addr
    ));
    let ask = |name: &str, path: &str| {
        post(gateway.addr(), &format!("/{name}{path}"), &[], &question("hi"))
    };
    ask("broken", CHAT);
    for path in [CHAT, MESSAGES] {
        for (name, status) in [("gone", 502), ("broken", 503), ("silent", 504), ("wild", 502)] {
            check(path, &ask(name, path), status, name);
        }
    }
}

#[test]
fn key_and_limit_errors_arrive_in_the_callers_format() {
    let provider = Provider::with_text(&["x"]);
    let gateway = llm(
        provider.addr,
        "auth: {header: apikey, keys: [{name: a, key: k}]}\nrate_limits: [{per: key, requests: 1}]",
    );
    for path in [CHAT, MESSAGES] {
        check(path, &post(gateway.addr(), path, &[], &question("hi")), 401, "no key");
        let wrong = post(gateway.addr(), path, &[("apikey", "x")], &question("hi"));
        check(path, &wrong, 403, "wrong key");
    }
    assert_eq!(provider.count(), 0);
    assert_eq!(post(gateway.addr(), CHAT, &[("apikey", "k")], &question("hi")).status, 200);
    for path in [CHAT, MESSAGES] {
        let reply = post(gateway.addr(), path, &[("apikey", "k")], &question("hi"));
        check(path, &reply, 429, "too many");
        // A sliding window of one request is free again when the next window has gone by, too.
        assert!((1..=120).contains(&reply.number("retry-after")));
    }
    assert_eq!(provider.count(), 1);
}
