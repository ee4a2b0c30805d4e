//! Servers, in both eras, that come, go and forget.

use std::collections::HashSet;
use std::fs;

use plimsoll_gateway_server::{Gateway, Spec};
use plimsoll_mock::RpcOutcome;
use serde_json::json;

use super::{behind, call, count, echo_mock, kind, messages, mock, text, up, with_tools};
use crate::support::client::{Headers, ask, get, post};
use crate::support::{crowd, metric, sleep_ms, until};

const SERVERS: &str = "/v1/mcp/servers";

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
fn only_administrators_see_servers() {
    let gateway = with_tools("", "admin: {key: sesame}");
    for (headers, status) in
        [(vec![], 401), (vec![super::RETAIL], 401), (vec![("authorization", "Bearer wrong")], 403)]
    {
        let reply = ask(gateway.addr(), &format!("GET {SERVERS}"), &headers, b"");
        assert_eq!(reply.status, status, "{headers:?}");
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
fn a_reload_takes_servers_away_and_keeps_those_that_did_not_change() {
    let (one, two) = (echo_mock("one"), echo_mock("two"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.yaml");
    let text_of = |tools: &str| {
        format!(
            "listen: 127.0.0.1:0\nadmin: {{local: true}}\ntenant: {{}}\nroutes: [{{name: r, path: /r, respond: {{}}}}]\n\
             tools: {{{tools}, allow: {{retail: [one, two, echo]}}}}"
        )
    };
    let (s, t) = (
        format!("s: {{url: 'http://{}/mcp'}}", one.addr()),
        format!("t: {{url: 'http://{}/mcp'}}", two.addr()),
    );
    let before = text_of(&format!("servers: {{{s}, {t}}}"));
    fs::write(&file, &before).unwrap();
    let gateway = Gateway::spawn_from(&Spec::open(&file).unwrap(), &file).unwrap();
    up(&gateway);
    let statuses =
        || ["one", "two", "echo"].map(|tool| call(&gateway, tool, &json!({"text": "x"})).status);
    assert_eq!(statuses(), [200, 200, 200]);
    fs::write(&file, text_of(&format!("local: [], servers: {{{t}}}"))).unwrap();
    gateway.reload().unwrap();
    assert_eq!(statuses(), [404, 200, 404]);
    fs::write(&file, before).unwrap();
    gateway.reload().unwrap();
    until("it is up again", || statuses() == [200, 200, 200]);
}
