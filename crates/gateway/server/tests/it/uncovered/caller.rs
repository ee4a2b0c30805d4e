//! Paths, callers, cached answers and budgets.

use serde_json::json;

use crate::support::client::{ask, get, post};
use crate::support::provider::Provider;
use crate::support::raw::head;
use crate::support::{CHAT, gateway, llm, question, until};

const KEYS: &str = "auth: {header: apikey, keys: [{name: owner, key: owner-key}, \
                    {name: guest, key: guest-key}]}";

#[test]
fn an_upstream_that_ignores_case_or_a_last_slash_gets_a_path_that_the_rule_does_not_mean() {
    let provider = Provider::start(|_, wire| wire.json(200, &json!({})));
    let gateway = gateway(&format!(
        "{KEYS}\nupstreams: {{p: {{addresses: ['{}']}}}}\nroutes:\n  \
         - {{name: own, path: /files/own, upstream: p, consumers: [owner]}}\n  \
         - {{name: rest, path: /*, upstream: p}}",
        provider.addr
    ));
    let guest = [("apikey", "guest-key")];
    let status = |path: &str| ask(gateway.addr(), &format!("GET {path}"), &guest, b"").status;
    assert_eq!(status("/files/own"), 403);
    for path in ["/files/OWN", "/files/own/"] {
        assert_eq!(status(path), 200, "{path}");
        assert_eq!(provider.seen().pop().unwrap().path, path);
    }
}

#[test]
fn what_an_upstream_reads_from_a_body_is_no_rule_of_a_path() {
    let provider = Provider::start(|_, wire| wire.json(200, &json!({})));
    let gateway = gateway(&format!(
        "upstreams: {{p: {{addresses: ['{}']}}}}\nroutes: [{{name: all, path: /*, upstream: p}}]",
        provider.addr
    ));
    let body = json!({"_method": "DELETE", "path": "/files/own"});
    assert_eq!(post(gateway.addr(), "/form", &[], &body).status, 200);
    assert_eq!(provider.seen().pop().unwrap().json(), body);
}

#[test]
fn a_key_that_leaked_is_a_key_and_a_token_of_another_kind_is_refused() {
    let provider = Provider::with_text(&["fine"]);
    let keyed = llm(provider.addr, KEYS);
    let status = |key: &str| post(keyed.addr(), CHAT, &[("apikey", key)], &question("hi")).status;
    assert_eq!((status("owner-key"), status("owner-kez")), (200, 403));
    let tokens = llm(provider.addr, "tenant: {claim: tenant, secret: s3cret}");
    // {"alg":"RS256","typ":"JWT"} and {"tenant":"a"}
    let token = "Bearer eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.eyJ0ZW5hbnQiOiJhIn0.AAAA";
    let reply = post(tokens.addr(), CHAT, &[("authorization", token)], &question("hi"));
    assert_eq!(reply.status, 403, "{reply:?}");
}

#[test]
fn headers_of_tracing_are_no_part_of_the_question() {
    let provider = Provider::with_text(&["fine"]);
    let gateway = llm(provider.addr, "cache: {}");
    for (trace, result) in [("00-aa-bb-01", "miss"), ("00-cc-dd-01", "hit")] {
        let reply = post(gateway.addr(), CHAT, &[("traceparent", trace)], &question("hi"));
        assert_eq!(reply.header("x-cache"), Some(result), "{trace}");
    }
}

/// A proxy on this machine that sends no header of its own, and this machine's name.
#[test]
fn behind_a_local_proxy_that_hides_its_clients_local_administration_is_everybodys() {
    let gateway = gateway("admin: {local: true}");
    assert_eq!(get(gateway.addr(), "/admin/build").status, 200);
    let shown = [("via", "1.1 proxy")];
    assert_eq!(ask(gateway.addr(), "GET /admin/build", &shown, b"").status, 403);
}

fn spent(gateway: &plimsoll_gateway_server::Gateway) -> (u64, u64) {
    let state = get(gateway.addr(), "/v1/budget/a").json();
    let [spent, reserved] = ["spent", "reserved"].map(|name| state[name].as_f64().unwrap());
    (format!("{spent}").parse().unwrap(), format!("{reserved}").parse().unwrap())
}

#[test]
fn a_prompt_of_short_tokens_costs_more_than_was_reserved() {
    // 20 tokens for 20 letters, and one of the answer: 5 letters a token were not thought of.
    let answer = json!({"id": "x", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "a"},
            "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 900, "completion_tokens": 1, "total_tokens": 901}});
    let provider = Provider::start(move |_, wire| wire.json(200, &answer));
    let gateway = llm(provider.addr, "tenant: {}\nbudgets: {default: 300}");
    let mut short = question("\u{1f600}".repeat(20).as_str());
    short["max_tokens"] = json!(1);
    let reply = post(gateway.addr(), CHAT, &[("x-tenant-id", "a")], &short);
    assert_eq!(reply.status, 200, "the reservation fitted");
    until("it is settled", || spent(&gateway).1 == 0);
    assert_eq!(spent(&gateway).0, 901, "more than the budget of 300");
}

#[test]
fn what_a_websocket_that_is_passed_through_carries_is_not_read() {
    use std::io::{Read as _, Write as _};
    let upstream = crate::support::raw::upstream(|mut stream| {
        if head(&mut stream).is_some() {
            let agree = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: \
                         websocket\r\n\r\nann@example.com";
            let _ = stream.write_all(agree.as_bytes());
            let _ = stream.read(&mut [0; 1]);
        }
    });
    let gateway = gateway(&format!(
        "scrub: {{unreadable: pass}}\nupstreams: {{u: {{addresses: ['{upstream}']}}}}\n\
         routes: [{{name: ws, path: /ws/*, upstream: u, websocket: true}}]"
    ));
    let mut client = crate::support::raw::connect(&gateway);
    client
        .write_all(
            b"GET /ws/a HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
        )
        .unwrap();
    assert!(head(&mut client).unwrap().starts_with("HTTP/1.1 101"));
    let mut passed = [0; 15];
    client.read_exact(&mut passed).unwrap();
    assert_eq!(&passed, b"ann@example.com");
}
