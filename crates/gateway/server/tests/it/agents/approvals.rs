//! Approvals by people.

use serde_json::{Value, json};

use super::{ACME, BETA, BOSS, expect_error, show, tenants, time};
use crate::support::client::{ask, post};
use crate::support::{crowd, metric, until};

#[test]
fn an_approval_is_asked_for_listed_and_decided_once() {
    let gateway = tenants("{}");
    let addr = gateway.addr();
    let session = post(addr, "/v1/sessions", ACME, &json!({})).json()["session_id"].clone();
    let body = json!({"action": "pay \u{20ac} 5", "details": {"to": "x"}, "session_id": session,
        "ttl_s": 30});
    let made = post(addr, "/v1/hitl", ACME, &body);
    assert_eq!(made.status, 201, "{made:?}");
    let made = made.json();
    assert_eq!(made["state"], "pending");
    assert_eq!((&made["action"], &made["details"]), (&body["action"], &body["details"]));
    assert_eq!(made["session_id"], session);
    assert_eq!(time(&made["expires_at"]) - time(&made["created_at"]), 30_000);
    let path = format!("/v1/hitl/{}", made["id"].as_str().unwrap());
    assert_eq!(show(addr, &path, ACME).json(), made);
    for list in ["/v1/hitl/pending", "/v1/approvals"] {
        let listed = show(addr, list, ACME).json();
        assert_eq!(listed, json!({"approvals": [made], "total": 1}));
        assert_eq!(show(addr, list, BETA).json(), json!({"approvals": [], "total": 0}));
    }
    // Another tenant can neither see it nor decide about it.
    expect_error(&show(addr, &path, BETA), 404, "approval_not_found");
    for word in ["approve", "reject", "expire"] {
        let reply = post(addr, &format!("{path}/{word}"), BETA, &json!({}));
        expect_error(&reply, 404, "approval_not_found");
    }
    let decided = post(addr, &format!("{path}/reject"), ACME, &json!({"reason": "too much"}));
    assert_eq!(decided.status, 200);
    let decided = decided.json();
    assert_eq!((&decided["state"], &decided["reason"]), (&json!("rejected"), &json!("too much")));
    assert!(time(&decided["decided_at"]) >= time(&made["created_at"]));
    assert_eq!(show(addr, &path, ACME).json(), decided);
    assert_eq!(show(addr, "/v1/hitl/pending", ACME).json()["total"], 0);
    for word in ["approve", "reject", "expire"] {
        let late = ask(addr, &format!("POST {path}/{word}"), BOSS, b"");
        expect_error(&late, 409, "already_decided");
        assert_eq!(late.json()["state"], "rejected");
        assert_eq!(late.json()["error"]["state"], "rejected");
    }
}

#[test]
fn who_asks_cannot_give_the_approval() {
    let gateway = tenants("{}");
    let addr = gateway.addr();
    let made = post(addr, "/v1/hitl", ACME, &json!({"action": "wire 1M"})).json();
    assert!(made["asked_by"].is_string(), "{made}");
    let path = format!("/v1/hitl/{}", made["id"].as_str().unwrap());
    expect_error(&post(addr, &format!("{path}/approve"), ACME, &json!({})), 403, "forbidden");
    assert_eq!(show(addr, &path, ACME).json()["state"], "pending");
    assert_eq!(post(addr, &format!("{path}/approve"), BOSS, &json!({})).status, 200);
    // The requester may still withdraw it.
    let made = post(addr, "/v1/hitl", ACME, &json!({"action": "x"})).json();
    let path = format!("/v1/hitl/{}", made["id"].as_str().unwrap());
    assert_eq!(post(addr, &format!("{path}/expire"), ACME, &json!({})).status, 200);
}

#[test]
fn each_word_has_its_state() {
    let gateway = tenants("{}");
    let words = [("approve", "approved"), ("reject", "rejected"), ("expire", "expired")];
    for (word, state) in words {
        let made = post(gateway.addr(), "/v1/hitl", ACME, &json!({"action": "x"})).json();
        let path = format!("/v1/hitl/{}/{word}", made["id"].as_str().unwrap());
        let decided = ask(gateway.addr(), &format!("POST {path}"), BOSS, b"");
        assert_eq!((decided.status, &decided.json()["state"]), (200, &json!(state)));
    }
}

#[test]
fn sixty_four_clients_get_one_outcome() {
    let gateway = tenants("{}");
    for round in 0..5 {
        let made = post(gateway.addr(), "/v1/hitl", ACME, &json!({"action": "race"})).json();
        let path = format!("/v1/hitl/{}", made["id"].as_str().unwrap());
        let words = ["approve", "reject", "expire"];
        let replies = crowd(|number| {
            post(gateway.addr(), &format!("{path}/{}", words[number % 3]), BOSS, &json!({}))
        });
        let winners: Vec<_> = replies.iter().filter(|reply| reply.status == 200).collect();
        assert_eq!(winners.len(), 1, "round {round}");
        let state = winners[0].json()["state"].clone();
        let late = replies.iter().filter(|reply| reply.status == 409);
        assert_eq!(late.clone().filter(|reply| reply.json()["state"] == state).count(), 63);
        assert_eq!(show(gateway.addr(), &path, ACME).json()["state"], state);
    }
    let sum: f64 = ["approve", "reject", "expire"]
        .iter()
        .filter_map(|word| {
            let labels = format!("operation=\"approval_{word}\",outcome=\"ok\"");
            metric(&gateway, &format!("gateway_agent_operations_total{{{labels}}} "))
        })
        .sum();
    assert_eq!(sum, 5.0);
}

#[test]
fn time_is_an_outcome() {
    let gateway = tenants("{}");
    let addr = gateway.addr();
    let made = post(addr, "/v1/hitl", ACME, &json!({"action": "x", "ttl_s": 1})).json();
    let path = format!("/v1/hitl/{}", made["id"].as_str().unwrap());
    until("its time is over", || show(addr, &path, ACME).json()["state"] == "expired");
    assert_eq!(show(addr, "/v1/hitl/pending", ACME).json(), json!({"approvals": [], "total": 0}));
    let late = post(addr, &format!("{path}/approve"), BOSS, &json!({}));
    assert_eq!((late.status, &late.json()["state"]), (409, &json!("expired")));
    assert_eq!(show(addr, &path, ACME).json()["decided_at"], made["expires_at"]);
}

#[test]
fn bad_input_gets_the_right_error() {
    let gateway = tenants("{approvals: {max: 3, bytes: 64, max_ttl: 2h}}");
    let addr = gateway.addr();
    let foreign = post(addr, "/v1/sessions", BETA, &json!({})).json()["session_id"].clone();
    let large = json!({"action": "x".repeat(65)});
    let large_details = json!({"action": "x", "details": "y".repeat(62)});
    for (body, status, kind) in [
        (json!([]), 400, "invalid_request"),
        (json!({}), 400, "invalid_request"),
        (json!({"action": ""}), 400, "invalid_request"),
        (json!({"action": 7}), 400, "invalid_request"),
        (json!({"action": "x", "ttl_s": 0}), 400, "invalid_request"),
        (json!({"action": "x", "ttl_s": 7_201}), 400, "invalid_request"),
        (json!({"action": "x", "session_id": "nonsense"}), 404, "session_not_found"),
        (json!({"action": "x", "session_id": "0".repeat(32)}), 404, "session_not_found"),
        (json!({"action": "x", "session_id": foreign}), 404, "session_not_found"),
        (large, 413, "request_too_large"),
        (large_details, 413, "request_too_large"),
    ] {
        expect_error(&post(addr, "/v1/hitl", ACME, &body), status, kind);
    }
    let make = || post(addr, "/v1/hitl", ACME, &json!({"action": "x"}));
    let first = make().json();
    assert_eq!((make().status, make().status), (201, 201));
    expect_error(&make(), 503, "store_full");
    let path = format!("/v1/hitl/{}", first["id"].as_str().unwrap());
    let reason = json!({"reason": "z".repeat(65)});
    expect_error(&post(addr, &format!("{path}/approve"), ACME, &reason), 413, "request_too_large");
    expect_error(&show(addr, &format!("{path}/approve"), ACME), 405, "method_not_allowed");
    assert_eq!(post(addr, &format!("{path}/approve"), BOSS, &json!({})).status, 200);
    assert_eq!(make().status, 201, "a decided one gave way");
    expect_error(&show(addr, &path, ACME), 404, "approval_not_found");
    expect_error(&show(addr, "/v1/hitl/nonsense", ACME), 404, "approval_not_found");
    let listed: Value = show(addr, "/v1/hitl/pending", ACME).json();
    assert_eq!(listed["total"], 3);
}
