//! Pages of other origins.

use std::net::TcpStream;

use plimsoll_gateway_server::{Gateway, Spec};
use tungstenite::client::IntoClientRequest as _;
use tungstenite::http::HeaderValue;

use super::support::client::{ClientResponse, ask, post};
use super::support::provider::Provider;
use super::support::{CHAT, gateway, question};

const PAGE: &str = "https://app.example";

fn served(provider: &Provider, sections: &str) -> Gateway {
    gateway(&format!(
        "upstreams: {{p: {{addresses: ['{}']}}}}
routes:
  - {{name: chat, path: {CHAT}, upstream: p, llm: true}}
  - {{name: ws, path: /ws/chat, upstream: p, llm: true, websocket: true, model: m}}
{sections}",
        provider.addr
    ))
}

fn preflight(gateway: &Gateway, origin: &str) -> ClientResponse {
    let headers = [
        ("origin", origin),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "authorization, content-type"),
    ];
    ask(gateway.addr(), &format!("OPTIONS {CHAT}"), &headers, b"")
}

#[test]
fn a_preflight_needs_no_key_and_names_what_a_page_may_send() {
    let provider = Provider::with_text(&["fine"]);
    let keys = "auth: {header: authorization, keys: [{name: a, key: secret}]}";
    let gateway = served(&provider, &format!("cors: {{origins: ['{PAGE}']}}\n{keys}"));
    let answer = preflight(&gateway, PAGE);
    assert_eq!(answer.status, 204);
    assert_eq!(answer.header("access-control-allow-origin"), Some(PAGE));
    assert_eq!(answer.header("access-control-allow-headers"), Some("authorization, content-type"));
    assert!(answer.header("access-control-allow-methods").unwrap().contains("POST"));
    assert_eq!(answer.header("vary"), Some("origin"));
    for other in ["https://evil.example", "http://app.example", "https://app.example.evil", "null"]
    {
        let answer = preflight(&gateway, other);
        assert_eq!(answer.header("access-control-allow-origin"), None, "{other}");
        assert_eq!(answer.header("access-control-allow-methods"), None, "{other}");
    }
    // The question itself still needs its key, and a page may read why it was refused.
    let refused = post(gateway.addr(), CHAT, &[("origin", PAGE)], &question("x"));
    assert_eq!(refused.status, 401);
    assert_eq!(refused.header("access-control-allow-origin"), Some(PAGE));
    let key = [("origin", PAGE), ("authorization", "Bearer secret")];
    let reply = post(gateway.addr(), CHAT, &key, &question("x"));
    assert_eq!((reply.status, reply.header("access-control-allow-origin")), (200, Some(PAGE)));
    assert!(reply.header("access-control-expose-headers").unwrap().contains("x-cache"));
    let other = [("origin", "https://evil.example"), ("authorization", "Bearer secret")];
    let reply = post(gateway.addr(), CHAT, &other, &question("x"));
    assert_eq!((reply.status, reply.header("access-control-allow-origin")), (200, None));
}

#[test]
fn without_the_section_no_page_is_named_and_every_origin_may_be() {
    let provider = Provider::with_text(&["fine"]);
    let gateway = served(&provider, "");
    assert_eq!(preflight(&gateway, PAGE).status, 405);
    let gateway = served(&provider, "cors: {origins: ['*']}");
    let reply = post(gateway.addr(), CHAT, &[("origin", PAGE)], &question("x"));
    assert_eq!(reply.header("access-control-allow-origin"), Some("*"));
}

#[test]
fn settings_that_open_too_much_or_nothing_are_refused() {
    for (section, part) in [
        ("cors: {}", "allows nothing"),
        ("cors: {origins: ['*'], credentials: true}", "by name"),
        ("cors: {origins: [app.example]}", "is not an origin"),
        ("cors: {origins: ['https://app.example/x']}", "is not an origin"),
    ] {
        let error = Spec::from_yaml(section).unwrap().check().unwrap_err().to_string();
        assert!(error.contains(part), "{section}: {error}");
    }
}

fn open_chat(gateway: &Gateway, origin: Option<&str>) -> u16 {
    let mut request = format!("ws://{}/ws/chat", gateway.addr()).into_client_request().unwrap();
    if let Some(origin) = origin {
        request.headers_mut().insert("origin", HeaderValue::from_str(origin).unwrap());
    }
    match tungstenite::client(request, TcpStream::connect(gateway.addr()).unwrap()) {
        Ok((_, response)) => response.status().as_u16(),
        Err(tungstenite::HandshakeError::Failure(tungstenite::Error::Http(response))) => {
            response.status().as_u16()
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_chat_is_opened_by_pages_of_this_host_and_of_named_origins_only() {
    let provider = Provider::with_text(&["fine"]);
    let gateway = served(&provider, "");
    let own = format!("http://{}", gateway.addr());
    let neighbour = format!("http://{}:1", gateway.addr().ip());
    for (origin, status) in [
        (None, 101),
        (Some(&*own), 101),
        (Some(PAGE), 403),
        (Some("null"), 403),
        (Some(&*neighbour), 403),
    ] {
        assert_eq!(open_chat(&gateway, origin), status, "{origin:?}");
    }
    let gateway = served(&provider, &format!("cors: {{origins: ['{PAGE}']}}"));
    assert_eq!(open_chat(&gateway, Some(PAGE)), 101);
    assert_eq!(open_chat(&gateway, Some("https://evil.example")), 403);
}
