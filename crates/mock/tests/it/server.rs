//! Endpoints, keys, limits, connections and reproducible responses.

use std::collections::BTreeSet;

use plimsoll_mock::MockConfig;
use serde_json::json;

use crate::support::{Client, chat, finish, spawn};

#[test]
fn the_example_configuration_is_valid() {
    let config = MockConfig::from_yaml(include_str!("../../examples/mock.yaml")).unwrap();
    assert_eq!(config.models.keys().collect::<Vec<_>>(), ["agent", "embedder", "large", "small"]);
    // `large` shares the settings of `small` that it does not override.
    assert_eq!(config.models["large"].faults, config.models["small"].faults);
    assert_eq!(config.models["large"].tokens_per_event, 2);
}

#[test]
fn pages_are_constant() {
    let mock = spawn("{models: {b: {}, 'a\"': {}}}");
    let mut client = Client::connect(&mock);
    assert_eq!(client.get("/").text(), "ok\n");
    assert_eq!(client.post("/echo", &[], "whatever").text(), "ok\n");
    assert_eq!(client.get("/health").json(), json!({"status": "ok"}));
    let models = client.get("/v1/models").json();
    assert_eq!((&models["data"][0]["id"], &models["data"][1]["id"]), (&json!("a\""), &json!("b")));
    let missing = client.get("/v2/none");
    assert_eq!((missing.status, &missing.json()["error"]["code"]), (404, &json!("not_found")));
    assert_eq!(client.get("/v1/chat/completions").status, 405);
    assert_eq!(mock.stats().connections, 1);
}

#[test]
fn a_key_is_required_below_v1_only() {
    let mock = spawn("api_key: secret");
    let mut client = Client::connect(&mock);
    let body = chat("x", r#","max_tokens":1"#);
    for (header, status) in [
        (("authorization", "Bearer secret"), 200),
        (("x-api-key", "secret"), 200),
        (("authorization", "Bearer wrong"), 401),
        (("authorization", "secret"), 401),
        (("accept", "*/*"), 401),
    ] {
        let response = client.post("/v1/messages", &[header], &body);
        assert_eq!(response.status, status, "{header:?}");
        if status == 401 {
            assert_eq!(response.json()["error"]["type"], "authentication_error");
        }
    }
    assert_eq!((client.get("/v1/models").status, client.get("/health").status), (401, 200));
}

#[test]
fn a_body_above_the_limit_is_refused_before_it_is_read() {
    let mock = spawn("{}");
    let mut client = Client::connect(&mock);
    client.send("POST /v1/messages HTTP/1.1\r\nhost: m\r\ncontent-length: 67108865\r\n\r\n{");
    let response = client.response();
    assert_eq!(response.status, 413);
    assert_eq!(response.json()["error"]["type"], "request_too_large");
}

#[test]
fn requests_in_pieces_and_pipelined_requests_are_served_in_order() {
    let mock = spawn("log: memory");
    let mut client = Client::connect(&mock);
    let body = chat("12345678", r#","max_tokens":2"#);
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: m\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let (first, rest) = request.split_at(100);
    client.send(first);
    std::thread::sleep(std::time::Duration::from_millis(100));
    client.send(&format!("{rest}GET / HTTP/1.1\r\nhost: m\r\n\r\n{request}"));
    assert_eq!(client.response().json()["usage"]["prompt_tokens"], 2);
    assert_eq!(client.response().text(), "ok\n");
    assert_eq!(client.response().json()["usage"]["completion_tokens"], 2);
    let log = finish(mock);
    let paths: Vec<&str> = log.iter().map(|record| record.path.as_str()).collect();
    assert_eq!(paths, ["/v1/chat/completions", "/", "/v1/chat/completions"]);
    assert!(log[0].body_complete - log[0].received > 10_000_000, "{:?}", log[0]);
    for record in &log {
        assert!(0 < record.arrived && record.arrived <= record.received, "{record:?}");
        assert!(record.received <= record.head_complete, "{record:?}");
        assert!(record.head_complete <= record.body_complete, "{record:?}");
        assert!(record.body_complete <= record.chunks[0].handed, "{record:?}");
        assert!(record.chunks[0].handed <= record.chunks[0].written, "{record:?}");
        assert_eq!(record.chunks[0].written, record.finished);
    }
}

#[test]
fn bytes_that_are_not_http_end_their_connection_only() {
    let mock = spawn("{}");
    let mut broken = Client::connect(&mock);
    broken.send("\x16\x03\x01 not http at all\r\n\r\n");
    assert!(matches!(broken.response().status, 0 | 400));
    let mut large = Client::connect(&mock);
    large.send(&format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(1 << 20)));
    assert!(matches!(large.response().status, 0 | 431));
    assert_eq!(Client::connect(&mock).get("/").status, 200);
}

const RANDOM: &str = "
workers: 2
seed: 9
other_models:
  output: {uniform: {min: 1, max: 50}}
  tool_call_share: 0.5
  faults: [{fault: '500', share: 0.3}]
";

/// Status and body for each request id, requested in the given order over some connections.
fn responses(yaml: &str, ids: &[usize]) -> Vec<(u16, Vec<u8>)> {
    let mock = spawn(yaml);
    let mut clients: Vec<Client> = (0..3).map(|_| Client::connect(&mock)).collect();
    let mut found = vec![(0, Vec::new()); ids.len()];
    for (turn, id) in ids.iter().enumerate() {
        let name = format!("id-{id}");
        let response = clients[turn % 3].post(
            "/v1/chat/completions",
            &[("x-request-id", &name)],
            &chat("hello", ""),
        );
        found[*id] = (response.status, response.body);
    }
    found
}

#[test]
fn responses_depend_on_the_seed_and_not_on_the_order() {
    let forth: Vec<usize> = (0..60).collect();
    let back: Vec<usize> = (0..60).rev().collect();
    let first = responses(RANDOM, &forth);
    assert_eq!(first, responses(RANDOM, &back));
    assert_ne!(first, responses(&RANDOM.replace("seed: 9", "seed: 10"), &forth));
    let statuses: BTreeSet<u16> = first.iter().map(|(status, _)| *status).collect();
    assert_eq!(statuses, BTreeSet::from([200, 500]));
    let different: BTreeSet<&Vec<u8>> = first.iter().map(|(_, body)| body).collect();
    assert!(different.len() > 30, "{}", different.len());
}

#[test]
fn metrics_agree_with_the_stats() {
    let mock = spawn("{models: {m: {}}}");
    let mut client = Client::connect(&mock);
    let body = chat("12345678", r#","max_tokens":5"#);
    for _ in 0..3 {
        client.post("/v1/chat/completions", &[], &body);
    }
    client.post("/v1/chat/completions", &[("x-mock-status", "429")], &body);
    let page = client.get("/metrics");
    for line in [
        r#"mock_requests_total{status="200"} 3"#,
        r#"mock_requests_total{status="429"} 1"#,
        "mock_input_tokens_total 6",
        "mock_output_tokens_total 15",
        r#"mock_requests_ended_total{end="completed"} 4"#,
        "mock_requests_in_flight 1",
        "mock_connections_open 1",
    ] {
        assert!(page.text().lines().any(|found| found == line), "{line} in\n{}", page.text());
    }
    let stats = mock.stats();
    assert_eq!((stats.tokens_in, stats.tokens_out, stats.requests), (6, 15, 5));
}
