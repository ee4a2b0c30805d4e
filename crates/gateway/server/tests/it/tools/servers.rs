//! Servers: configured and registered, in both eras, that come, go and forget.

use std::collections::HashSet;
use std::fs;

use plimsoll_gateway_server::{Gateway, Spec};
use plimsoll_mock::RpcOutcome;
use serde_json::{Value, json};

use super::{behind, call, call_as, count, echo_mock, kind, messages, mock, text, up, with_tools};
use crate::support::client::{ClientResponse, Headers, ask, get, post};
use crate::support::provider::Provider;
use crate::support::{crowd, metric, sleep_ms, until};

const SERVERS: &str = "/v1/mcp/servers";

fn register(gateway: &Gateway, body: &Value) -> ClientResponse {
    post(gateway.addr(), SERVERS, &[], body)
}

#[test]
fn calls_reach_the_server_in_each_protocol_and_the_log_has_each_once() {
    for (protocol, version) in
        [("auto", "2026-07-28"), ("stateless", "2026-07-28"), ("sessions", "2025-11-25")]
    {
        let mock = echo_mock("say");
        let settings = format!("protocol: {protocol}");
        let gateway = behind(mock.addr(), &settings, "workers: 2\nrequest_id: {}");
        let replies = crowd(|number| {
            let id = format!("r-{number}");
            let headers: Headers<'_> = &[super::RETAIL, ("x-request-id", &id)];
            let arguments = json!({"text": format!("text {number}")});
            post(
                gateway.addr(),
                super::CALL,
                headers,
                &json!({"name": "say", "arguments": arguments}),
            )
        });
        for (number, reply) in replies.iter().enumerate() {
            assert_eq!((reply.status, text(reply)), (200, format!("text {number}")));
            assert_eq!(reply.json()["server"], "s");
        }
        let calls = "gateway_tool_calls_total{server=\"s\",outcome=\"ok\"} ";
        assert_eq!(metric(&gateway, calls), Some(64.0));
        drop(gateway);
        let log = messages(mock);
        assert_eq!(count(&log, "tools/call"), 64, "{protocol}");
        let of_calls = || log.iter().filter(|(_, rpc)| rpc.method.as_deref() == Some("tools/call"));
        let ids: HashSet<_> = of_calls().filter_map(|(row, _)| row.request_id.clone()).collect();
        assert_eq!(ids, (0..64).map(|number| format!("r-{number}")).collect(), "{protocol}");
        assert!(of_calls().all(|(_, rpc)| rpc.version.as_deref() == Some(version)), "{protocol}");
        // One handshake for each worker that made a call, however many calls came at once.
        let (opened, accepted) =
            (count(&log, "initialize"), count(&log, "notifications/initialized"));
        let sessions = if protocol == "sessions" { 1..=2 } else { 0..=0 };
        assert!(
            sessions.contains(&opened) && accepted == opened,
            "{protocol}: {opened} {accepted}"
        );
    }
}

#[test]
fn a_session_that_the_server_forgot_is_opened_again() {
    let mock = mock("session_timeout: 100ms, tools: {say: {echo: true}}");
    let gateway = behind(mock.addr(), "protocol: sessions", "");
    for round in 0..3 {
        let reply = call(&gateway, "say", &json!({"text": "hi"}));
        assert_eq!((reply.status, text(&reply)), (200, "hi".to_owned()), "{round}");
        sleep_ms(300);
    }
    drop(gateway);
    let log = messages(mock);
    let good = log.iter().filter(|(_, rpc)| {
        rpc.method.as_deref() == Some("tools/call") && rpc.outcome == RpcOutcome::Result
    });
    assert_eq!(good.count(), 3, "each call was made once");
    let forgotten = log.iter().filter(|(row, _)| row.status == 404).count();
    assert!(forgotten >= 2 && count(&log, "initialize") == forgotten + 1, "{forgotten}");
}

#[test]
fn streamed_answers_are_read_too() {
    let mock = mock("answers: stream, tools: {say: {echo: true, progress: 3}}");
    for protocol in ["stateless", "sessions"] {
        let gateway = behind(mock.addr(), &format!("protocol: {protocol}"), "");
        for _ in 0..3 {
            assert_eq!(text(&call(&gateway, "say", &json!({"text": "hi"}))), "hi");
        }
    }
    let log = messages(mock);
    let streamed = log.iter().filter(|(_, rpc)| rpc.streamed);
    assert!(streamed.count() >= 6);
}

#[test]
fn servers_are_registered_and_names_do_not_collide() {
    let (one, two, echo) = (echo_mock("say"), echo_mock("say"), echo_mock("echo"));
    let gateway = with_tools("allow: {retail: ['late/*']}", "");
    let url = |mock: &plimsoll_mock::Mock| format!("http://{}/mcp", mock.addr());
    let reply = register(&gateway, &json!({"name": "late", "url": url(&one)}));
    let shown = json!({"name": "late", "url": url(&one), "tools": 1, "state": "up"});
    assert_eq!((reply.status, reply.json()), (201, shown.clone()));
    for (name, mock, taken) in
        [("late", &two, "late"), ("other", &two, "say"), ("third", &echo, "echo")]
    {
        let reply = register(&gateway, &json!({"name": name, "url": url(mock)}));
        assert_eq!((reply.status, kind(&reply).as_str()), (409, "name_collision"), "{name}");
        let message = reply.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains(&format!("`{taken}`")), "{message}");
    }
    assert_eq!(get(gateway.addr(), SERVERS).json(), json!({"servers": [shown]}));
    assert_eq!(get(gateway.addr(), "/health").json()["mcp_servers"], 1);
    assert_eq!(metric(&gateway, "gateway_tool_servers{state=\"up\"} "), Some(1.0));
    assert_eq!(text(&call(&gateway, "say", &json!({"text": "hi"}))), "hi");
    assert_eq!(call_as(&gateway, "wholesale", &json!({"name": "say"})).status, 403);
    drop(gateway);
    assert_eq!(count(&messages(one), "tools/call"), 1);
    assert_eq!(count(&messages(two), "tools/call"), 0);
}

#[test]
fn two_that_register_at_once_do_not_both_get_the_name() {
    let mock = echo_mock("say");
    let gateway = with_tools("allow: {retail: [say]}", "workers: 2");
    let url = format!("http://{}/mcp", mock.addr());
    let replies = crowd(|number| {
        register(&gateway, &json!({"name": format!("s{}", number % 8), "url": url}))
    });
    let statuses: Vec<u16> = replies.iter().map(|reply| reply.status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 409).count(), 63, "{statuses:?}");
    assert_eq!(text(&call(&gateway, "say", &json!({"text": "hi"}))), "hi");
}

#[test]
fn nonsense_is_not_registered() {
    let other = Provider::start(|_, wire| wire.whole(200, "text/html", "<html>"));
    let gateway = with_tools("timeout: 2s", "");
    let url = |addr: std::net::SocketAddr| format!("http://{addr}/mcp");
    let html = url(other.addr);
    for (body, status) in [
        (json!([]), 400),
        (json!({}), 400),
        (json!({"name": "a"}), 400),
        (json!({"name": "a", "url": 7}), 400),
        (json!({"name": "a", "url": html, "more": 1}), 400),
        (json!({"name": "a", "url": html, "protocol": "soap"}), 400),
        (json!({"name": "", "url": html}), 400),
        (json!({"name": "a b", "url": html}), 400),
        (json!({"name": "a/*", "url": html}), 400),
        (json!({"name": "local", "url": html}), 400),
        (json!({"name": "a", "url": "https://127.0.0.1/mcp"}), 400),
        (json!({"name": "a", "url": "http://joe:secret@127.0.0.1/mcp"}), 400),
        (json!({"name": "a", "url": "file:///etc/passwd"}), 400),
        (json!({"name": "a", "url": "127.0.0.1"}), 400),
        (json!({"name": "a", "url": "http://127.0.0.1:1/mcp"}), 502),
        (json!({"name": "a", "url": html}), 502),
    ] {
        let reply = register(&gateway, &body);
        assert_eq!(reply.status, status, "{body}: {reply:?}");
        assert!(!reply.text().contains("secret"));
    }
    assert_eq!(get(gateway.addr(), SERVERS).json(), json!({"servers": []}));
}

#[test]
fn only_administrators_see_and_register_servers() {
    let gateway = with_tools("", "admin: {key: sesame}");
    for line in [format!("GET {SERVERS}"), format!("POST {SERVERS}")] {
        for (headers, status) in [
            (vec![], 401),
            (vec![super::RETAIL], 401),
            (vec![("authorization", "Bearer wrong")], 403),
        ] {
            assert_eq!(ask(gateway.addr(), &line, &headers, b"{}").status, status, "{line}");
        }
    }
    let headers = [("authorization", "Bearer sesame")];
    assert_eq!(ask(gateway.addr(), &format!("GET {SERVERS}"), &headers, b"").status, 200);
    // With an address of its own, only there.
    let apart = with_tools("", "admin: {listen: '127.0.0.1:0'}");
    assert_eq!(get(apart.addr(), SERVERS).status, 404);
    assert_eq!(get(apart.admin_addr().unwrap(), SERVERS).status, 200);
    assert_eq!(get(apart.admin_addr().unwrap(), "/v1/mcp/tools").status, 404);
}

#[test]
fn a_server_that_comes_later_is_found_and_one_that_goes_is_down() {
    let mock = echo_mock("say");
    let addr = mock.addr();
    let gateway = with_tools(
        &format!(
            "refresh: 200ms, timeout: 2s, servers: {{s: {{url: 'http://{addr}/mcp'}}, \
             t: {{url: 'http://127.0.0.1:1/mcp'}}}}, allow: {{retail: ['s/*']}}"
        ),
        "",
    );
    let shown = || get(gateway.addr(), SERVERS).json()["servers"].clone();
    until("the first is up", || shown()[0]["state"] == "up");
    let state = shown();
    assert_eq!((&state[0]["tools"], &state[1]["state"]), (&json!(1), &json!("down")));
    assert_eq!(state[1]["reason"], "it cannot be reached");
    assert_eq!(get(gateway.addr(), "/health").json()["mcp_servers"], 2);
    drop(mock);
    until("it is down", || shown()[0]["state"] == "down");
    let reply = call(&gateway, "say", &json!({"text": "hi"}));
    assert_eq!((reply.status, kind(&reply).as_str()), (502, "upstream_error"), "its tools stay");
    let yaml = "{log: memory, mcp: {tools: {say: {echo: true}}}}";
    let config = plimsoll_mock::MockConfig::from_yaml(yaml).unwrap();
    let again = plimsoll_mock::Mock::spawn(&config, addr).unwrap();
    until("it is up again", || shown()[0]["state"] == "up");
    assert_eq!(text(&call(&gateway, "say", &json!({"text": "hi"}))), "hi");
    drop(gateway);
    assert_eq!(count(&messages(again), "tools/call"), 1);
}

#[test]
fn a_reload_takes_servers_away_and_keeps_those_that_were_registered() {
    let (one, two) = (echo_mock("one"), echo_mock("two"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.yaml");
    let text_of = |tools: &str| {
        format!(
            "listen: 127.0.0.1:0\nadmin: {{local: true}}\ntenant: {{}}\nroutes: [{{name: r, path: /r, respond: {{}}}}]\n\
             tools: {{{tools}, allow: {{retail: [one, two, echo]}}}}"
        )
    };
    let before = text_of(&format!("servers: {{s: {{url: 'http://{}/mcp'}}}}", one.addr()));
    fs::write(&file, &before).unwrap();
    let gateway = Gateway::spawn_from(&Spec::open(&file).unwrap(), &file).unwrap();
    up(&gateway);
    let url = format!("http://{}/mcp", two.addr());
    assert_eq!(register(&gateway, &json!({"name": "t", "url": url})).status, 201);
    let statuses =
        || ["one", "two", "echo"].map(|tool| call(&gateway, tool, &json!({"text": "x"})).status);
    assert_eq!(statuses(), [200, 200, 200]);
    fs::write(&file, text_of("local: []")).unwrap();
    gateway.reload().unwrap();
    assert_eq!(statuses(), [404, 200, 404]);
    fs::write(&file, before).unwrap();
    gateway.reload().unwrap();
    until("it is up again", || statuses() == [200, 200, 200]);
}
