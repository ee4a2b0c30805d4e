//! `/v1/sessions`.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{ACME, BETA, TENANTS, expect_error, show, tenants, time};
use crate::support::client::{ask, post};
use crate::support::{gateway, metric, until};

#[test]
fn a_session_lives_and_ends_and_is_its_tenants_alone() {
    let gateway = tenants("{}");
    let addr = gateway.addr();
    let body = json!({"ttl_s": 90, "metadata": {"plan": "b", "list": [1, {"x": null}]}});
    let made = post(addr, "/v1/sessions", ACME, &body);
    assert_eq!(made.status, 201);
    let made = made.json();
    let id = made["session_id"].as_str().unwrap().to_owned();
    assert_eq!(time(&made["expires_at"]) - time(&made["created_at"]), 90_000);
    assert_eq!((&made["tool_calls"], &made["calls_left"]), (&json!(0), &json!(20)));
    let path = format!("/v1/sessions/{id}");
    let shown = show(addr, &path, ACME);
    let mut expected = made;
    expected["metadata"] = body["metadata"].clone();
    assert_eq!((shown.status, shown.json()), (200, expected));
    // Another tenant gets the same answer as for what never was.
    let other = show(addr, &path, BETA);
    let never = show(addr, &format!("/v1/sessions/{}", "0".repeat(32)), ACME);
    expect_error(&other, 404, "session_not_found");
    assert_eq!(other.text(), never.text());
    expect_error(&ask(addr, &format!("DELETE {path}"), BETA, b""), 404, "session_not_found");
    let ended = ask(addr, &format!("DELETE {path}"), ACME, b"");
    assert_eq!((ended.status, ended.text()), (204, String::new()));
    for line in [format!("GET {path}"), format!("DELETE {path}")] {
        expect_error(&ask(addr, &line, ACME, b""), 404, "session_not_found");
    }
    let sample = "gateway_agent_operations_total{operation=\"session_end\",outcome=\"ok\"} ";
    assert_eq!(metric(&gateway, sample), Some(1.0));
    let route =
        "gateway_requests_total{method=\"GET\",route=\"/v1/sessions/{id}\",status=\"200\"} ";
    assert_eq!(metric(&gateway, route), Some(1.0), "the id is in no label");
}

#[test]
fn ids_cannot_be_guessed() {
    let gateway = tenants("{}");
    let made: Vec<u128> = (0..64)
        .map(|_| {
            let reply = post(gateway.addr(), "/v1/sessions", ACME, &json!({})).json();
            let id = reply["session_id"].as_str().unwrap().to_owned();
            assert_eq!(id.len(), 32);
            u128::from_str_radix(&id, 16).unwrap()
        })
        .collect();
    assert_eq!(made.iter().collect::<HashSet<_>>().len(), 64);
    // Every bit takes both values, and neighbours have no distance in common.
    let (ones, zeros) = made.iter().fold((0, 0), |(ones, zeros), id| (ones | id, zeros | !id));
    assert_eq!((ones, zeros), (u128::MAX, u128::MAX));
    let distances: HashSet<u128> =
        made.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
    assert_eq!(distances.len(), 63);
}

#[test]
fn bad_input_gets_the_right_error() {
    let gateway = tenants("{sessions: {max_ttl: 1h, metadata_bytes: 64}}");
    let addr = gateway.addr();
    let large = json!({"metadata": {"x": "y".repeat(57)}}).to_string();
    let fits = json!({"metadata": {"x": "y".repeat(56)}}).to_string();
    for (body, status, kind) in [
        ("[]", 400, "invalid_request"),
        ("[60,{}]", 400, "invalid_request"),
        ("7", 400, "invalid_request"),
        ("{", 400, "invalid_request"),
        ("{\"ttl_s\":0}", 400, "invalid_request"),
        ("{\"ttl_s\":-1}", 400, "invalid_request"),
        ("{\"ttl_s\":1.5}", 400, "invalid_request"),
        ("{\"ttl_s\":\"60\"}", 400, "invalid_request"),
        ("{\"ttl_s\":3601}", 400, "invalid_request"),
        ("{\"ttl_s\":99999999999999999999}", 400, "invalid_request"),
        ("{\"ttl_s\":1,\"ttl_s\":2}", 400, "invalid_request"),
        ("{\"metadata\":[]}", 400, "invalid_request"),
        ("{\"metadata\":\"x\"}", 400, "invalid_request"),
        (&large, 413, "request_too_large"),
    ] {
        let reply = ask(addr, "POST /v1/sessions", ACME, body.as_bytes());
        assert_eq!(
            (reply.status, &reply.json()["error"]["type"]),
            (status, &json!(kind)),
            "{body}"
        );
    }
    for body in ["", "{}", "{\"ttl_s\":3600}", "{\"metadata\":{}}", "{\"more\":1}", &fits] {
        assert_eq!(ask(addr, "POST /v1/sessions", ACME, body.as_bytes()).status, 201, "{body}");
    }
    for id in ["x", "", &"0".repeat(31), &"0".repeat(33), &"F".repeat(32), &"0".repeat(4_000)] {
        let reply = show(addr, &format!("/v1/sessions/{id}"), ACME);
        assert_eq!(reply.status, 404, "{id}: {reply:?}");
    }
    let typed = [ACME[0], ("content-type", "text/plain")];
    let reply = ask(addr, "POST /v1/sessions", &typed, b"{}");
    expect_error(&reply, 415, "unsupported_media_type");
    expect_error(&show(addr, "/v1/sessions", ACME), 405, "method_not_allowed");
    let reply = ask(addr, &format!("PUT /v1/sessions/{}", "0".repeat(32)), ACME, b"");
    expect_error(&reply, 405, "method_not_allowed");
    assert_eq!(reply.header("allow"), Some("GET, HEAD, DELETE"));
    expect_error(&show(addr, "/v1/sessions/x", &[]), 401, "auth_required");
}

#[test]
fn all_room_is_for_live_ones() {
    let gateway = tenants("{sessions: {max: 2}}");
    let addr = gateway.addr();
    let make = |body: Value| post(addr, "/v1/sessions", ACME, &body);
    let first = make(json!({})).json()["session_id"].as_str().unwrap().to_owned();
    assert_eq!(make(json!({"ttl_s": 1})).status, 201);
    expect_error(&make(json!({})), 503, "store_full");
    until("one second passes", || make(json!({})).status == 201);
    expect_error(&make(json!({})), 503, "store_full");
    assert_eq!(show(addr, &format!("/v1/sessions/{first}"), ACME).status, 200, "never driven out");
}

#[test]
fn without_tenants_the_key_is_the_owner() {
    let gateway = gateway(
        "auth: {header: apikey, keys: [{name: a, key: key-a}, {name: b, key: key-b}]}\nagents: {}",
    );
    let made = post(gateway.addr(), "/v1/sessions", ACME, &json!({})).json();
    let path = format!("/v1/sessions/{}", made["session_id"].as_str().unwrap());
    assert_eq!(show(gateway.addr(), &path, ACME).status, 200);
    assert_eq!(show(gateway.addr(), &path, BETA).status, 404);
}

#[test]
fn a_route_that_belongs_to_somebody_is_never_open() {
    for path in ["/v1/sessions", "/v1/*", "/a2a/*", "/*"] {
        let text = format!("{TENANTS}agents: {{}}\nopen: ['{path}']");
        let spec = plimsoll_gateway_server::Spec::from_yaml(&text).unwrap();
        let error = spec.check().unwrap_err().to_string();
        assert!(error.contains("needs an authenticated caller"), "{path}: {error}");
    }
    let text = format!("{TENANTS}agents: {{}}\nopen: ['/.well-known/*', /health]");
    plimsoll_gateway_server::Spec::from_yaml(&text).unwrap().check().unwrap();
}
