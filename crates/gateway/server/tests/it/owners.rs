//! Chats over WebSockets, agent loops and background runs count as held memory, and no owner takes
//! it from all others.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use plimsoll_gateway_server::Gateway;
use plimsoll_mock::{Mock, MockConfig};
use serde_json::{Value, json};
use tungstenite::client::IntoClientRequest as _;
use tungstenite::http::HeaderValue;
use tungstenite::{Message, WebSocket};

use super::support::client::{get, post};
use super::support::provider::Provider;
use super::support::{CHAT, gateway, metric, question, until};

const TENANTS: &str = "auth: {header: apikey, keys: [{name: a, key: key-a, tenant: ta}, \
                       {name: b, key: key-b, tenant: tb}]}\ntenant: {}";

fn memory(gateway: &Gateway) -> f64 {
    metric(gateway, "gateway_memory_bytes ").unwrap()
}

/// A provider that takes every request and never answers.
fn silent() -> Mock {
    let config = "{other_models: {faults: [{fault: hang, share: 1}]}}";
    Mock::spawn(&MockConfig::from_yaml(config).unwrap(), SocketAddr::from(([127, 0, 0, 1], 0)))
        .unwrap()
}

fn chats(provider: SocketAddr, server: &str, rest: &str) -> Gateway {
    gateway(&format!(
        "server: {server}
upstreams: {{p: {{addresses: ['{provider}'], timeout: 60s}}}}
routes:
  - {{name: ws, path: /ws/chat, upstream: p, llm: true, websocket: true, model: m}}
  - {{name: chat, path: {CHAT}, upstream: p, llm: true}}
{rest}"
    ))
}

fn open(gateway: &Gateway, key: &str) -> WebSocket<TcpStream> {
    let mut request = format!("ws://{}/ws/chat", gateway.addr()).into_client_request().unwrap();
    request.headers_mut().insert("apikey", HeaderValue::from_str(key).unwrap());
    let stream = TcpStream::connect(gateway.addr()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    tungstenite::client(request, stream).unwrap().0
}

/// Says something, and reads to the end of its answer: the last message, or the code of the close.
fn say(socket: &mut WebSocket<TcpStream>, text: &str) -> Result<Value, u16> {
    socket.send(Message::text(json!({"message": text}).to_string())).unwrap();
    loop {
        match socket.read().unwrap() {
            Message::Text(message) => {
                let message: Value = serde_json::from_str(message.as_str()).unwrap();
                if message["type"] != "delta" {
                    return Ok(message);
                }
            }
            Message::Close(frame) => return Err(frame.unwrap().code.into()),
            _ => {}
        }
    }
}

#[test]
fn what_an_idle_chat_keeps_is_counted_and_given_back() {
    let provider = Provider::with_text(&["fine"]);
    let gateway = chats(provider.addr, "{}", "");
    let mut sockets: Vec<_> = (0..8).map(|_| open(&gateway, "")).collect();
    for socket in &mut sockets {
        assert_eq!(say(socket, &"word ".repeat(20_000)).unwrap()["type"], "done");
    }
    // Each keeps 100,000 bytes of dialogue, and the buffer that the message was read into.
    until("the chats are idle", || memory(&gateway) > 8.0 * 200_000.0);
    assert!(memory(&gateway) < 8.0 * 300_000.0, "{}", memory(&gateway));
    drop(sockets);
    until("it is given back", || memory(&gateway).abs() < 0.5);
}

#[test]
fn many_small_turns_count_for_what_they_take() {
    let provider = Provider::with_text(&["a"]);
    let gateway = chats(provider.addr, "{}", "");
    let mut socket = open(&gateway, "");
    for _ in 0..600 {
        say(&mut socket, "a").unwrap();
    }
    // 600 turns of two bytes are no 600 kB of text, and yet so many objects.
    let sent = provider.seen().pop().unwrap().json();
    assert!(sent["messages"].as_array().unwrap().len() < 600, "older turns are forgotten");
    assert!(memory(&gateway) > 200_000.0, "{}", memory(&gateway));
}

#[test]
fn a_message_that_is_not_complete_is_counted_and_refused_where_there_is_no_room() {
    let provider = Provider::with_text(&["fine"]);
    let gateway = chats(provider.addr, "{memory: 64MiB, owner_memory: 256KiB}", "");
    let mut socket = open(&gateway, "");
    let whole = json!({"message": "word ".repeat(40_000)}).to_string();
    assert_eq!(say(&mut socket, "x").unwrap()["type"], "done");
    // Half a message of a million bytes, and nothing more.
    let begun = [&[0x81, 0xff][..], &1_000_000_u64.to_be_bytes(), &[0; 4]].concat();
    std::io::Write::write_all(socket.get_mut(), &begun).unwrap();
    std::io::Write::write_all(socket.get_mut(), &whole.as_bytes()[..150_000]).unwrap();
    until("it is counted", || memory(&gateway) > 150_000.0);
    std::io::Write::write_all(socket.get_mut(), &whole.as_bytes()[..150_000]).unwrap();
    let closed = loop {
        if let Message::Close(frame) = socket.read().unwrap() {
            break u16::from(frame.unwrap().code);
        }
    };
    assert_eq!(closed, 1013, "come again later");
    drop(socket);
    until("it is given back", || memory(&gateway).abs() < 0.5);
}

#[test]
fn a_tenant_with_its_share_taken_leaves_the_rest_to_others() {
    let provider = Provider::with_text(&["fine"]);
    let gateway = chats(provider.addr, "{memory: 8MiB, owner_memory: 1MiB}", TENANTS);
    let text = "word ".repeat(20_000);
    let mut sockets = Vec::new();
    let refused = (0..20).find_map(|_| {
        let mut socket = open(&gateway, "key-a");
        let said = say(&mut socket, &text);
        sockets.push(socket);
        said.err()
    });
    assert_eq!(refused, Some(1013));
    assert!(
        sockets.len() > 2 && memory(&gateway) < 1.2e6,
        "{} {}",
        sockets.len(),
        memory(&gateway)
    );
    let mut other = open(&gateway, "key-b");
    assert_eq!(say(&mut other, &text).unwrap()["type"], "done");
    let key = [("apikey", "key-b")];
    assert_eq!(post(gateway.addr(), CHAT, &key, &question("hello")).status, 200);
}

#[test]
fn runs_before_a_silent_provider_take_their_owners_share_only() {
    let provider = silent();
    let gateway = chats(
        provider.addr(),
        "{memory: 16MiB}",
        &format!("agents: {{chat: {{upstream: p, model: m, owner_runs: 20}}}}\n{TENANTS}"),
    );
    let start = |key: &str, size: usize| {
        let input = json!({"input": "word ".repeat(size / 5)});
        post(gateway.addr(), "/v1/runs", &[("apikey", key)], &input)
    };
    let large: Vec<_> = (0..30).map(|_| start("key-a", 500_000).status).collect();
    let accepted = large.iter().filter(|status| **status == 202).count();
    assert!((3..=8).contains(&accepted), "{large:?}");
    assert_eq!(*large.last().unwrap(), 429, "{large:?}");
    assert!(memory(&gateway) <= f64::from(4 << 20), "a quarter of all");
    assert_eq!(start("key-a", 500_000).json()["error"]["type"], "owner_limit");
    assert_eq!(start("key-b", 500_000).status, 202);
    // Small ones are bounded in number, for each owner.
    let small: Vec<_> = (0..25).map(|_| start("key-b", 10).status).collect();
    assert_eq!(small.iter().filter(|status| **status == 202).count(), 19, "{small:?}");
    let health = get(gateway.addr(), "/health/live");
    assert_eq!(health.status, 200);
}
