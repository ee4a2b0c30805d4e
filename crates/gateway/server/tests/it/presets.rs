//! The presets, and what each of them promises.

use plimsoll_gateway_server::{Gateway, PRESETS, Preset, Spec};
use serde_json::{Value, json};

use super::support::client::{Headers, ask, get, post};
use super::support::provider::Provider;
use super::support::{CHAT, MESSAGES, gateway, metric, question, streamed};

fn start(name: &str, provider: &Provider) -> Gateway {
    let text =
        Preset::named(name).unwrap().text.replace("127.0.0.1:9000", &provider.addr.to_string());
    let settings = ["listen=127.0.0.1:0", "admin.local=true"].map(str::to_owned);
    Gateway::spawn(&Spec::with_overrides(&text, &settings).unwrap()).unwrap()
}

fn provider() -> Provider {
    Provider::start(|seen, wire| match seen.path.as_str() {
        CHAT | MESSAGES => super::support::provider::answer(seen, wire, &["Hello".to_owned()]),
        path => wire.json(200, &json!({"path": path})),
    })
}

#[test]
fn every_preset_shows_its_health_build_and_layers() {
    let provider = provider();
    for preset in PRESETS {
        let gateway = start(preset.name, &provider);
        assert_eq!(get(gateway.addr(), "/health").status, 200);
        assert_eq!(get(gateway.addr(), "/health/live").text(), "{\"alive\":true}");
        let ready = get(gateway.addr(), "/health/ready").json();
        assert_eq!((&ready["ready"], &ready["checks_failed"]), (&json!(true), &json!([])));
        let build = get(gateway.addr(), "/admin/build").json();
        assert_eq!((&build["service"], &build["faults"]), (&json!(preset.name), &json!([])));
        for layer in build["layers"].as_array().unwrap() {
            let sample = format!("gateway_layer_enabled{{layer={layer}}} ");
            assert_eq!(metric(&gateway, &sample), Some(1.0), "{} {layer}", preset.name);
        }
        let kind = get(gateway.addr(), "/metrics").header("content-type").unwrap().to_owned();
        assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
    }
}

#[test]
fn the_preset_baseline() {
    let provider = provider();
    let gateway = start("baseline", &provider);
    let health = get(gateway.addr(), "/health").json();
    assert!(health["version"].is_string() && health["service"] == "baseline");
    let reply = post(gateway.addr(), CHAT, &[("x-request-id", "r1")], &question("hi"));
    assert_eq!((reply.status, reply.header("x-request-id")), (200, Some("r1")));
    assert_eq!(reply.number("x-ratelimit-limit"), 600);
    let stream = post(gateway.addr(), CHAT, &[], &streamed("hi"));
    assert!(stream.text().ends_with("data: [DONE]\n\n"));
    assert_eq!(stream.header("x-request-id").unwrap().len(), 16);
    assert_eq!(get(gateway.addr(), "/v1/models").json(), json!({"path": "/v1/models"}));
    let path = "/mcp/message";
    let reply = post(gateway.addr(), path, &[], &json!({"message": "hi"}));
    assert_eq!((reply.status, reply.json()), (200, json!({"path": path})));
    assert_eq!(provider.seen().pop().unwrap().body, "{\"message\":\"hi\"}");
    let answer = post(gateway.addr(), "/api/chat", &[], &json!({"message": "hi", "context": []}));
    assert_eq!(answer.json()["response"], "Hello");
    let rpc = json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {}});
    let reply = post(gateway.addr(), "/a2a", &[], &rpc);
    assert_eq!((reply.status, reply.json()), (200, json!({"path": "/a2a"})));
    assert_eq!(provider.seen().pop().unwrap().json(), rpc);
    let card = get(gateway.addr(), "/.well-known/agent.json");
    let path = "/.well-known/agent-card.json";
    assert_eq!((card.status, card.json()), (200, json!({"path": path})));
    let approvals = get(gateway.addr(), "/v1/approvals").json();
    assert_eq!(approvals, json!({"approvals": [], "total": 0}));
    let run = post(gateway.addr(), "/v1/runs", &[], &json!({"input": "hi"}));
    assert_eq!(run.status, 202);
    let statuses: Vec<u16> = (0..600).map(|_| get(gateway.addr(), "/health/live").status).collect();
    assert_eq!(statuses.first(), Some(&200));
    assert_eq!(statuses.last(), Some(&429), "600 a minute, health included");
}

#[test]
fn the_preset_layers() {
    let provider = provider();
    let gateway = start("layers", &provider);
    let key: Headers<'_> = &[("apikey", "load-test-key"), ("x-tenant-id", "retail")];
    let show = |path: &str| ask(gateway.addr(), &format!("GET {path}"), key, b"");
    assert_eq!(get(gateway.addr(), "/smoke/get").status, 401);
    assert_eq!(show("/smoke/get").json(), json!({"path": "/get"}));
    assert_eq!(show("/").status, 200);
    assert_eq!(show("/v1/models").status, 200);
    let other: Headers<'_> = &[("apikey", "other-test-key")];
    assert_eq!(ask(gateway.addr(), "GET /smoke/get", other, b"").status, 403, "not its route");
    let foreign: Headers<'_> = &[("apikey", "load-test-key"), ("x-tenant-id", "wholesale")];
    assert_eq!(ask(gateway.addr(), "GET /smoke/get", foreign, b"").status, 403, "not its tenant");
    for (path, state) in [(CHAT, "miss"), (CHAT, "hit"), (MESSAGES, "miss"), (MESSAGES, "hit")] {
        let reply = post(gateway.addr(), path, key, &question("hi"));
        assert_eq!((reply.status, reply.header("x-cache")), (200, Some(state)));
        assert!(
            reply.header("x-request-id").is_some() && reply.header("x-ratelimit-limit").is_some()
        );
        assert!(reply.header("x-quota-remaining").is_some());
    }
    assert_eq!(show("/v1/budget/retail").json()["spent"], 24.0);
}

#[test]
fn the_preset_policy() {
    let provider = provider();
    let gateway = start("policy", &provider);
    let ask = |query: &str| {
        let body = json!({"query": query, "client_id": "c", "request_type": "sql",
            "user_token": "t", "skip_llm": false});
        post(gateway.addr(), "/api/request", &[], &body)
    };
    let good: Value = ask("SELECT name FROM products WHERE id = 5").json();
    assert_eq!((&good["success"], &good["data"]["answer"]), (&json!(true), &json!("Hello")));
    assert_eq!(ask("DROP TABLE customers").status, 403);
    assert_eq!(post(gateway.addr(), CHAT, &[], &question("hi")).status, 200);
}

#[test]
fn the_preset_proxy() {
    let provider = provider();
    let gateway = start("proxy", &provider);
    assert_eq!(get(gateway.addr(), "/health").text(), "OK");
    assert_eq!(get(gateway.addr(), "/api/things/5?x=1").json(), json!({"path": "/things/5?x=1"}));
    assert_eq!(get(gateway.addr(), "/v1/things").json(), json!({"path": "/v1/things"}));
    let stray = get(gateway.addr(), "/nowhere");
    assert_eq!(stray.status, 404);
    assert!(stray.header("content-type").unwrap().starts_with("text/plain"), "errors are text");
}

#[test]
fn the_preset_llm() {
    let provider = provider();
    let gateway = start("llm", &provider);
    for path in [CHAT, MESSAGES] {
        let states = [(); 2].map(|()| {
            let reply = post(gateway.addr(), path, &[], &question("hi"));
            assert!(reply.header("x-quota-remaining").is_some());
            reply.header("x-cache").map(str::to_owned)
        });
        assert_eq!(states, [Some("miss".to_owned()), Some("hit".to_owned())], "{path}");
    }
    for (number, path) in ["/v1/responses", "/v1/embeddings"].into_iter().enumerate() {
        let tenant = format!("t{number}");
        let headers: Headers<'_> = &[("x-tenant-id", &tenant)];
        let asked = post(gateway.addr(), path, headers, &json!({"model": "m", "input": "hi"}));
        assert_eq!(asked.status, 200, "{path}");
        let budget = ask(gateway.addr(), &format!("GET /v1/budget/{tenant}"), headers, b"").json();
        assert!(budget["spent"].as_f64().unwrap_or_default() > 0.0, "{path} is charged: {budget}");
    }
    assert_eq!(get(gateway.addr(), "/v1/models").status, 200);
}

#[test]
fn a_disabled_layer_is_not_shown() {
    let gateway = gateway("request_id: {}");
    let build = get(gateway.addr(), "/admin/build").json();
    assert_eq!(build["layers"], json!(["request_id", "metrics"]));
    assert_eq!(metric(&gateway, "gateway_layer_enabled{layer=\"request_id\"} "), Some(1.0));
    assert_eq!(metric(&gateway, "gateway_layer_enabled{layer=\"cache\"} "), None);
}
