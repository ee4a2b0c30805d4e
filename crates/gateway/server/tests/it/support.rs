//! Gateways to test, and helpers of several tests.

pub(crate) mod client;
pub(crate) mod provider;
pub(crate) mod raw;
pub(crate) mod recorded;
pub(crate) mod sdk;

use std::net::SocketAddr;
use std::sync::mpsc::channel;
use std::time::Duration;

use plimsoll_gateway_server::{Gateway, Spec};
use serde_json::{Value, json};

use self::client::{ClientResponse, get};

pub(crate) const CHAT: &str = "/v1/chat/completions";
pub(crate) const MESSAGES: &str = "/v1/messages";

/// A gateway with the metrics and these sections.
pub(crate) fn gateway(sections: &str) -> Gateway {
    let open = if sections.contains("admin:") { "" } else { "admin: {local: true}\n" };
    let yaml = format!("listen: 127.0.0.1:0\nmetrics: {{}}\n{open}{sections}");
    let spec = Spec::from_yaml(&yaml).unwrap_or_else(|error| panic!("{error}\n{yaml}"));
    Gateway::spawn(&spec).unwrap_or_else(|error| panic!("{error}\n{yaml}"))
}

/// A gateway with the two LLM routes before a provider, and these sections.
pub(crate) fn llm(provider: SocketAddr, sections: &str) -> Gateway {
    with(provider, "openai", sections)
}

pub(crate) fn with(provider: SocketAddr, dialect: &str, sections: &str) -> Gateway {
    gateway(&format!(
        "upstreams: {{p: {{addresses: ['{provider}'], dialect: {dialect}, timeout: 10s}}}}
routes:
  - {{name: chat, path: {CHAT}, upstream: p, llm: true}}
  - {{name: messages, path: {MESSAGES}, upstream: p, llm: true}}
{sections}"
    ))
}

/// A question that both dialects understand.
pub(crate) fn question(text: &str) -> Value {
    json!({"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": text}]})
}

/// The same question, with a streamed answer.
pub(crate) fn streamed(text: &str) -> Value {
    let mut question = question(text);
    question["stream"] = json!(true);
    question
}

/// The value of a sample of `/metrics`, by its beginning.
pub(crate) fn metric(gateway: &Gateway, sample: &str) -> Option<f64> {
    let text = get(gateway.addr(), "/metrics").text();
    let line = text.lines().find_map(|line| line.strip_prefix(sample))?;
    line.trim().parse().ok()
}

/// Waits until a condition holds, at most ten seconds.
pub(crate) fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..2_000 {
        if holds() {
            return;
        }
        sleep_ms(5);
    }
    panic!("it never happened: {what}");
}

/// Waits this many milliseconds.
pub(crate) fn sleep_ms(millis: u64) {
    let (_silent, pause) = channel::<()>();
    let _ = pause.recv_timeout(Duration::from_millis(millis));
}

/// Sends 64 requests at once.
pub(crate) fn crowd(ask: impl Fn(usize) -> ClientResponse + Sync) -> Vec<ClientResponse> {
    let ask = &ask;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..64).map(|number| scope.spawn(move || ask(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}
