//! Request heads and bodies, from the text of a profile.

use plimsoll_measure::{ConversationKey, ScenarioId, TargetId};
use plimsoll_profile::{EnvVars, Overrides, Profile, Purpose, load};

use crate::prepared::PreparedRun;

/// Head and body of the first request.
fn request(profile: &str) -> (String, String) {
    let text = format!(
        "model: m\nstages: 1:1s\ncontent: {{mode: sized, approx_input_tokens: 8}}\n{profile}\n"
    );
    let profile = Profile::new("test.yaml".as_ref(), text.into_bytes());
    let plan = load(&profile, &EnvVars::default(), &Overrides::default(), Purpose::Run).unwrap();
    let run = PreparedRun::new(plan).unwrap();
    let conversation = run.workload.conversation(ConversationKey::arrival(0), None);
    let route = run.route(ScenarioId(0), TargetId(0));
    let turn = conversation.turn().unwrap();
    let (mut head, mut body) = (Vec::new(), Vec::new());
    route.encoder.encode_body(&turn, &mut body).unwrap();
    route.head(&turn).unwrap().render(None, 0, &mut head);
    (String::from_utf8(head).unwrap(), String::from_utf8(body).unwrap())
}

#[test]
fn a_target_without_a_key_gets_no_authorization() {
    let with_key = request("target: http://h\nkey: k").0;
    assert!(with_key.contains("authorization: Bearer k\r\n"), "{with_key}");
    let without = request("target: http://h").0;
    assert!(!without.contains("authorization"), "{without}");
    let anthropic = request("target: http://h\nprotocol: anthropic-messages").0;
    assert!(!anthropic.contains("x-api-key"), "{anthropic}");
}

#[test]
fn a_websocket_is_asked_for_by_a_get_at_its_path() {
    let (head, message) = request("target: http://h/v1?k=1\nprotocol: websocket\nkey: k");
    assert_eq!(head.lines().next(), Some("GET /ws/chat?k=1 HTTP/1.1"));
    for line in [
        "upgrade: websocket",
        "connection: Upgrade",
        "sec-websocket-version: 13",
        "authorization: Bearer k",
    ] {
        assert!(head.lines().any(|found| found == line), "{line}: {head}");
    }
    assert!(!head.contains("content-"), "{head}");
    assert!(message.starts_with(r#"{"message":""#) && !message.contains("model"), "{message}");
    let own = "target: http://h/v1\nprotocol: websocket\nwebsocket: {path: /x?a=1, subprotocol: c}";
    let (head, _) = request(own);
    assert_eq!(head.lines().next(), Some("GET /x?a=1 HTTP/1.1"));
    assert!(head.contains("sec-websocket-protocol: c\r\n"), "{head}");
}

#[test]
fn the_targets_query_is_on_every_request() {
    for (profile, line) in [
        (
            "target: https://h/openai?api-version=2024-06-01",
            "POST /openai/v1/chat/completions?api-version=2024-06-01 HTTP/1.1",
        ),
        ("target: http://h?v=1\nprotocol: http\nhttp: {path: /x?a=2}", "GET /x?a=2&v=1 HTTP/1.1"),
        ("target: http://h/b?v=1\nprotocol: http\nhttp: {}", "GET /b?v=1 HTTP/1.1"),
    ] {
        let head = request(profile).0;
        assert_eq!(head.lines().next(), Some(line));
        assert!(head.contains("host: h\r\n"), "{head}");
    }
}

#[test]
fn every_request_names_plimsoll_unless_the_profile_says_otherwise() {
    let own = format!("user-agent: plimsoll/{}\r\n", env!("CARGO_PKG_VERSION"));
    for protocol in ["openai-chat", "http\nhttp: {path: /x}"] {
        let head = request(&format!("target: http://h\nprotocol: {protocol}")).0;
        assert!(head.contains(&own), "{head}");
    }
    for profile in [
        "headers: {User-Agent: mine/1}",
        "scenarios: [{headers: {user-agent: mine/1}}]",
        "protocol: http\nhttp: {headers: {USER-AGENT: mine/1}}",
    ] {
        let head = request(&format!("target: http://h\n{profile}")).0.to_lowercase();
        assert_eq!(head.matches("user-agent").count(), 1, "{head}");
        assert!(head.contains("user-agent: mine/1\r\n"), "{head}");
    }
}

#[test]
fn reasoning_models_get_max_completion_tokens() {
    let body = |field: &str| request(&format!("target: http://h\nmax_tokens: 9\n{field}")).1;
    let old = body("");
    assert!(old.contains("\"max_tokens\":9") && !old.contains("max_completion"), "{old}");
    let new = body("max_tokens_field: max_completion_tokens");
    assert!(
        new.contains("\"max_completion_tokens\":9") && !new.contains("\"max_tokens\""),
        "{new}"
    );
}
