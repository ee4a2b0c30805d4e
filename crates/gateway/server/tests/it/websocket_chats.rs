//! Chats over `WebSocket`s that the gateway itself speaks. The client is the crate `tungstenite`.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use plimsoll_gateway_server::Gateway;
use plimsoll_mock::{Mock, MockConfig, RequestEnd};
use serde_json::{Value, json};
use tungstenite::client::IntoClientRequest as _;
use tungstenite::http::HeaderValue;
use tungstenite::{Error, Message, WebSocket};

use super::support::client::get;
use super::support::provider::Provider;
use super::support::{gateway, metric, until};

fn chats(provider: SocketAddr, sections: &str) -> Gateway {
    patient_chats(provider, "10s", sections)
}

/// Chats with an upstream that may take so long.
fn patient_chats(provider: SocketAddr, timeout: &str, sections: &str) -> Gateway {
    gateway(&format!(
        "upstreams: {{p: {{addresses: ['{provider}'], timeout: {timeout}}}}}
routes: [{{name: chat, path: /ws/chat, upstream: p, llm: true, websocket: true, model: m}}]
{sections}"
    ))
}

/// Opens a chat; `key` is sent as `apikey`. A refusal is its status.
fn try_open(gateway: &Gateway, key: &str) -> Result<WebSocket<TcpStream>, u16> {
    let mut request = format!("ws://{}/ws/chat", gateway.addr()).into_client_request().unwrap();
    request.headers_mut().insert("apikey", HeaderValue::from_str(key).unwrap());
    let stream = TcpStream::connect(gateway.addr()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    match tungstenite::client(request, stream) {
        Ok((socket, response)) => {
            assert_eq!(response.status(), 101);
            Ok(socket)
        }
        Err(tungstenite::HandshakeError::Failure(Error::Http(response))) => {
            Err(response.status().as_u16())
        }
        Err(error) => panic!("{error}"),
    }
}

fn open(gateway: &Gateway) -> WebSocket<TcpStream> {
    try_open(gateway, "").unwrap()
}

/// Asks, and reads the answer to its end: its text and its last message.
fn ask(socket: &mut WebSocket<TcpStream>, question: &Value) -> (String, Value) {
    socket.send(Message::text(question.to_string())).unwrap();
    let mut text = String::new();
    loop {
        let Message::Text(message) = socket.read().unwrap() else { continue };
        let message: Value = serde_json::from_str(message.as_str()).unwrap();
        match message["type"].as_str().unwrap() {
            "delta" => text.push_str(message["text"].as_str().unwrap()),
            _ => return (text, message),
        }
    }
}

#[test]
fn each_message_is_a_streamed_chat_with_the_dialogue_so_far() {
    let provider = Provider::with_text(&["Ahoy", ", ", "friend"]);
    let gateway = chats(provider.addr, "");
    let mut socket = open(&gateway);
    let (text, done) = ask(&mut socket, &json!({"message": "first"}));
    assert_eq!((&*text, &done["type"]), ("Ahoy, friend", &json!("done")));
    assert!(done["usage"]["prompt_tokens"].is_u64(), "{done}");
    let (text, _) = ask(&mut socket, &json!({"message": "second", "model": "n", "max_tokens": 9}));
    assert_eq!(text, "Ahoy, friend");
    let seen = provider.seen();
    assert_eq!(seen[0].json()["messages"], json!([{"role": "user", "content": "first"}]));
    assert_eq!((&seen[0].json()["model"], &seen[0].json()["stream"]), (&json!("m"), &json!(true)));
    let dialogue = json!([
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": "Ahoy, friend"},
        {"role": "user", "content": "second"},
    ]);
    assert_eq!(seen[1].json()["messages"], dialogue);
    assert_eq!((&seen[1].json()["model"], &seen[1].json()["max_tokens"]), (&json!("n"), &json!(9)));
    socket.send(Message::Ping(b"x".to_vec().into())).unwrap();
    assert_eq!(socket.read().unwrap(), Message::Pong(b"x".to_vec().into()));
    socket.close(None).unwrap();
    while socket.read().is_ok() {}
    // The handshake and two chats, each under its route.
    let counted = |method: &str, status: u16| {
        let sample = format!(
            "gateway_requests_total{{method=\"{method}\",route=\"/ws/chat\",status=\"{status}\"}}"
        );
        metric(&gateway, &sample).unwrap_or_default()
    };
    let total = || counted("GET", 101) * 10.0 + counted("POST", 200);
    until("all are counted", || (total() - 12.0).abs() < 0.5);
}

#[test]
fn keys_limits_and_policy_hold_as_for_the_chat_route() {
    let provider = Provider::with_text(&["fine"]);
    let gateway = chats(
        provider.addr,
        "auth: {header: apikey, keys: [{name: c, key: secret}]}
policy: {}
rate_limits: [{per: key, requests: 4, window: 60s}]",
    );
    assert_eq!(try_open(&gateway, "").err(), Some(401));
    let wrong = try_open(&gateway, "wrong").err();
    assert!(matches!(wrong, Some(401 | 403)), "{wrong:?}");
    let mut socket = try_open(&gateway, "secret").unwrap();
    assert_eq!(ask(&mut socket, &json!({"message": "hello"})).0, "fine");
    let attack = "1' UNION SELECT password FROM users --";
    let (text, blocked) = ask(&mut socket, &json!({"message": attack}));
    assert_eq!((&*text, &blocked["error"]["type"]), ("", &json!("policy_blocked")), "{blocked}");
    assert_eq!(provider.count(), 1, "what is blocked is not sent");
    assert_eq!(ask(&mut socket, &json!({"message": "again"})).0, "fine");
    // What was blocked is no part of the dialogue.
    assert_eq!(provider.seen()[1].json()["messages"].as_array().unwrap().len(), 3);
    // The handshake counted, too.
    let (_, limited) = ask(&mut socket, &json!({"message": "one too many"}));
    assert_eq!(limited["error"]["type"], "rate_limited");
    assert_eq!(provider.count(), 2);
}

#[test]
fn what_is_no_chat_gets_an_error_and_a_dead_upstream_too() {
    let gateway = chats("127.0.0.1:1".parse().unwrap(), "");
    let mut socket = open(&gateway);
    socket.send(Message::text("hello")).unwrap();
    let Message::Text(error) = socket.read().unwrap() else { panic!("a text") };
    assert!(error.as_str().contains("invalid_request"), "{error}");
    for no_object in [json!(["hello"]), json!(["hello", null, null]), json!("hello")] {
        let (_, error) = ask(&mut socket, &no_object);
        assert_eq!(error["error"]["type"], "invalid_request", "{no_object}: {error}");
    }
    let (_, error) = ask(&mut socket, &json!({"message": "x"}));
    assert_eq!(error["type"], "error", "{error}");
    socket.send(Message::Binary(b"x".to_vec().into())).unwrap();
    let closed = loop {
        if let Message::Close(frame) = socket.read().unwrap() {
            break frame.unwrap();
        }
    };
    assert_eq!(u16::from(closed.code), 1003);
    assert_eq!(get(gateway.addr(), "/ws/chat").status, 426);
}

/// A question whose answer does not come is on its way.
fn wait_for_ever(gateway: &Gateway, mock: &Mock) -> WebSocket<TcpStream> {
    let mut socket = open(gateway);
    socket.send(Message::text(json!({"message": "hello"}).to_string())).unwrap();
    until("the upstream has the question", || mock.stats().in_flight == 1);
    socket
}

#[test]
fn a_client_that_goes_while_the_upstream_thinks_ends_its_request() {
    // It sends nothing, until its client disconnects.
    let config = "{log: memory, other_models: {faults: [{fault: hang, share: 1}]}}";
    let config = MockConfig::from_yaml(config).unwrap();
    let mut mock = Mock::spawn(&config, SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let gateway = patient_chats(mock.addr(), "10m", "");
    let cut = |number| until("the request is cut", || mock.stats().aborted == number);
    // With a goodbye, after a ping that is answered meanwhile.
    let mut socket = wait_for_ever(&gateway, &mock);
    socket.send(Message::Ping(b"x".to_vec().into())).unwrap();
    assert_eq!(socket.read().unwrap(), Message::Pong(b"x".to_vec().into()));
    socket.close(None).unwrap();
    while socket.read().is_ok() {}
    cut(1);
    // Without one.
    drop(wait_for_ever(&gateway, &mock));
    cut(2);
    mock.shutdown();
    let log = mock.take_log();
    let ends: Vec<_> = log.iter().map(|record| (record.end, record.status)).collect();
    assert_eq!(ends, [(Some(RequestEnd::Aborted), 0); 2]);
}
