//! Budgets of tenants.

use std::io;

use plimsoll_gateway_server::Gateway;
use serde_json::{Value, json};

use super::support::client::{get, post, send};
use super::support::provider::{AnswerKind, Provider, frames};
use super::support::{CHAT, MESSAGES, llm, question, sleep_ms, streamed, until, with};

fn budget(gateway: &Gateway, tenant: &str) -> Value {
    get(gateway.addr(), &format!("/v1/budget/{tenant}")).json()
}

fn spent(gateway: &Gateway, tenant: &str) -> f64 {
    budget(gateway, tenant)["spent"].as_f64().unwrap()
}

const A: super::support::client::Headers<'_> = &[("x-tenant-id", "a")];

#[test]
fn a_budget_pays_exactly_the_reported_usage() {
    let provider = Provider::with_text(&["Hello", " there"]);
    for upstream in ["openai", "anthropic"] {
        let gateway = with(
            provider.addr,
            upstream,
            "tenant: {}\nbudgets: {default: 10000, tenants: {b: 500}}",
        );
        let mut paid = 0.0;
        for path in [CHAT, MESSAGES] {
            for stream in [false, true] {
                let mut body = if stream { streamed("hi") } else { question("hi") };
                if stream && path == CHAT {
                    body["stream_options"] = json!({"include_usage": true});
                }
                let reply = post(gateway.addr(), path, A, &body);
                assert_eq!(reply.status, 200);
                // The remainder excludes the reservation.
                let left = reply.number("x-quota-remaining") as f64;
                assert!(left < 10_000.0 - paid - 100.0 && left > 10_000.0 - paid - 200.0, "{left}");
                paid += 12.0;
                assert_eq!(spent(&gateway, "a"), paid, "{path} to {upstream}, stream {stream}");
            }
        }
        let state = budget(&gateway, "a");
        assert_eq!(state["reserved"], 0.0);
        assert_eq!((&state["remaining"], &state["limit"]), (&json!(9952.0), &json!(10000.0)));
        assert_eq!((&state["tenant"], &state["unit"]), (&json!("a"), &json!("tokens")));
        assert_eq!(budget(&gateway, "b")["limit"], 500.0);
        assert_eq!(spent(&gateway, "b"), 0.0, "tenants are kept apart");
    }
}

#[test]
fn a_stream_without_reported_usage_is_counted() {
    let provider = Provider::with_text(&["one", "two", "three"]);
    let gateway = llm(provider.addr, "tenant: {}\nbudgets: {default: 10000}");
    assert_eq!(post(gateway.addr(), CHAT, A, &streamed("hi")).status, 200);
    // Three deltas, and the estimate of a short prompt.
    let spent = spent(&gateway, "a");
    assert!((4.0..=15.0).contains(&spent), "{spent}");
}

#[test]
fn a_spent_budget_refuses_requests() {
    let provider = Provider::with_text(&["Hello"]);
    let gateway = llm(provider.addr, "tenant: {}\nbudgets: {default: 135}");
    let statuses = [(); 4].map(|()| post(gateway.addr(), CHAT, A, &question("hi")).status);
    // Each request reserves a little more than 100 and costs 12.
    assert_eq!(statuses, [200, 200, 429, 429]);
    for path in [CHAT, MESSAGES] {
        let reply = post(gateway.addr(), path, A, &question("hi"));
        let body = reply.json();
        assert_eq!((reply.status, reply.number("x-quota-remaining")), (429, 111));
        assert_eq!(body["type"] == "error", path == MESSAGES);
        let kind = if path == CHAT { "insufficient_quota" } else { "billing_error" };
        assert_eq!(body["error"]["type"], kind);
    }
    assert_eq!((provider.count(), spent(&gateway, "a")), (2, 24.0));
    let other = post(gateway.addr(), CHAT, &[("x-tenant-id", "b")], &question("hi"));
    assert_eq!(other.status, 200);
}

#[test]
fn failures_and_cache_hits_cost_nothing() {
    let provider = Provider::start(|seen, wire| {
        if seen.body.contains("fail") {
            return wire.json(500, &json!({"error": {"message": "ill"}}));
        }
        super::support::provider::answer(seen, wire, &["Hello".to_owned()])
    });
    let gateway = llm(provider.addr, "tenant: {}\nbudgets: {default: 10000}\ncache: {}");
    for (text, paid) in [("fail", 0.0), ("hi", 12.0), ("hi", 12.0), ("hi", 12.0)] {
        post(gateway.addr(), CHAT, A, &question(text));
        assert_eq!(spent(&gateway, "a"), paid);
        assert_eq!(budget(&gateway, "a")["reserved"], 0.0);
    }
}

#[test]
fn a_cancelled_stream_pays_for_the_tokens_that_passed() {
    let provider = Provider::start(|seen, wire| {
        wire.stream()?;
        let frames = frames(seen, &["one".to_owned()], AnswerKind::Text);
        for _ in 0..20 {
            wire.frame(&frames[1])?;
        }
        for _ in 0..1_000 {
            wire.frame(": still here\n\n")?;
            sleep_ms(5);
        }
        Err(io::Error::other("the gateway did not disconnect"))
    });
    let gateway = llm(provider.addr, "tenant: {}\nbudgets: {default: 10000}");
    let body = streamed("hi").to_string();
    let mut sent = send(gateway.addr(), &format!("POST {CHAT}"), A, body.as_bytes());
    sent.head();
    let mut seen = String::new();
    while seen.matches("one").count() < 20 {
        seen.push_str(&String::from_utf8(sent.chunk().unwrap()).unwrap());
    }
    assert!(budget(&gateway, "a")["reserved"].as_f64().unwrap() > 100.0);
    drop(sent);
    until("it is settled", || budget(&gateway, "a")["reserved"] == 0.0);
    // Twenty deltas, and the estimate of a short prompt.
    let spent = spent(&gateway, "a");
    assert!((21.0..=32.0).contains(&spent), "{spent}");
}

#[test]
fn usd_budgets_count_in_dollars() {
    let provider = Provider::with_text(&["Hello"]);
    let gateway = llm(
        provider.addr,
        "tenant: {}\nbudgets: {unit: usd, default: 1, usd_per_1k_prompt: 10, usd_per_1k_completion: 20}",
    );
    let ask = |most: u64| {
        let mut body = question("hi");
        body["max_tokens"] = json!(most);
        post(gateway.addr(), CHAT, A, &body)
    };
    assert_eq!(ask(5).status, 200);
    let state = budget(&gateway, "a");
    // 7 x 0.01 + 5 x 0.02 dollars.
    assert!((state["spent"].as_f64().unwrap() - 0.17).abs() < 1e-9, "{state}");
    assert_eq!(state["unit"], "usd");
    let left: f64 = ask(5).header("x-quota-remaining").unwrap().parse().unwrap();
    assert!((0.4..0.83).contains(&left), "in dollars, too: {left}");
    assert_eq!(ask(1_000).status, 429, "20 dollars");
}

#[test]
fn a_budget_is_shown_to_its_tenant_only() {
    let provider = Provider::with_text(&["Hello"]);
    let gateway = llm(provider.addr, "tenant: {}\nbudgets: {}");
    let show =
        |headers| super::support::client::ask(gateway.addr(), "GET /v1/budget/a", headers, b"");
    assert_eq!(show(A).status, 200);
    assert_eq!(show(&[("x-tenant-id", "b")]).status, 403);
}
