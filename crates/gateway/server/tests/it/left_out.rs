//! A translation names every member that it omits, or rejects the request.

use plimsoll_gateway_server::Gateway;
use serde_json::{Value, json};

use super::support::client::post;
use super::support::provider::Provider;
use super::support::{CHAT, MESSAGES, gateway, question, streamed, until, with};

const NAMED: &str = "x-gateway-left-out";

fn rows(path: &std::path::Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn what_the_provider_does_not_get_is_named_in_a_header_and_in_the_row() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let audit = format!("cache: {{}}\naudit: {{path: '{}', flush: 10ms}}", path.display());
    let provider = Provider::with_text(&["fine"]);
    let gateway = with(provider.addr, "anthropic", &audit);
    // Whole, streamed, and from the cache.
    for body in [question("a"), streamed("a"), question("a"), streamed("a")] {
        let mut ask = body;
        ask["seed"] = json!(7);
        ask["presence_penalty"] = json!(0.5);
        let reply = post(gateway.addr(), CHAT, &[], &ask);
        assert_eq!((reply.status, reply.header(NAMED)), (200, Some("presence_penalty, seed")));
    }
    assert_eq!(provider.count(), 2);
    let mut ask = question("b");
    ask["top_k"] = json!(5);
    let same_dialect = post(gateway.addr(), MESSAGES, &[], &ask);
    assert_eq!((same_dialect.status, same_dialect.header(NAMED)), (200, None));
    assert_eq!(provider.seen().pop().unwrap().json()["top_k"], 5);
    until("the rows are written", || rows(&path).len() == 5);
    let named: Vec<_> = rows(&path).iter().map(|row| row["left_out"].clone()).collect();
    assert_eq!(&named[..4], &vec![json!("presence_penalty, seed"); 4]);
    assert!(named[4].is_null());
}

#[test]
fn what_would_make_another_answer_is_refused_before_it_costs_anything() {
    let provider = Provider::with_text(&["fine"]);
    let gateway = with(provider.addr, "anthropic", "");
    let mut ask = question("a");
    ask["response_format"] = json!({"type": "json_object"});
    let reply = post(gateway.addr(), CHAT, &[], &ask);
    assert_eq!(reply.status, 400);
    let message = reply.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("response_format: "), "{message}");
    assert_eq!(provider.count(), 0);
}

fn limited(provider: &Provider, key: &str) -> Gateway {
    gateway(&format!(
        "upstreams: {{p: {{addresses: ['{}'], {key}}}}}
routes: [{{name: messages, path: {MESSAGES}, upstream: p, llm: true}}]",
        provider.addr
    ))
}

#[test]
fn the_limit_is_called_as_the_provider_knows_it() {
    let provider = Provider::with_text(&["fine"]);
    for (key, known) in [
        ("dialect: openai", "max_completion_tokens"),
        ("token_limit: max_completion_tokens", "max_completion_tokens"),
        ("token_limit: max_tokens", "max_tokens"),
    ] {
        let gateway = limited(&provider, key);
        assert_eq!(post(gateway.addr(), MESSAGES, &[], &question("x")).status, 200);
        let seen = provider.seen().pop().unwrap().json();
        let limits: Vec<_> = seen
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .filter(|name| name.starts_with("max_"))
            .collect();
        assert_eq!((limits, &seen[known]), (vec![known], &json!(100)), "{key}");
    }
}
