//! Keys, consumers, scopes and tenants.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;

use super::support::client::{ask, get};
use super::support::gateway;

const ROUTES: &str = "
routes:
  - {name: a, path: /all, respond: {body: hello}}
  - {name: b, path: /own, respond: {body: hello}, consumers: [acme]}
  - {name: c, path: /scoped, respond: {body: hello}, scope: chat}";

fn status(
    addr: std::net::SocketAddr,
    path: &str,
    headers: super::support::client::Headers<'_>,
) -> u16 {
    ask(addr, &format!("GET {path}"), headers, b"").status
}

#[test]
fn a_key_gives_access_to_the_routes_of_its_consumer() {
    for (header, prefix) in [("apikey", ""), ("authorization", "Bearer ")] {
        let keys = "[{name: acme, key: k1}, {name: other, key: k2, scopes: [chat, x]}, \
                    {name: third, key: k3, scopes: [x]}]";
        let gateway = gateway(&format!("auth: {{header: {header}, keys: {keys}}}{ROUTES}"));
        for (key, path, wanted) in [
            ("k1", "/all", 200),
            ("k2", "/all", 200),
            ("k9", "/all", 403),
            ("", "/all", 401),
            ("k1", "/own", 200),
            ("k2", "/own", 403),
            ("k1", "/scoped", 200),
            ("k2", "/scoped", 200),
            ("k3", "/scoped", 403),
        ] {
            let value = format!("{prefix}{key}");
            let found = status(gateway.addr(), path, &[(header, &value)]);
            assert_eq!(found, wanted, "{header}: {key} at {path}");
        }
        assert_eq!(status(gateway.addr(), "/all", &[]), 401);
        for open in ["/health", "/health/live", "/metrics", "/admin/build"] {
            assert_eq!(get(gateway.addr(), open).status, 200, "{open} needs no key");
        }
        let kinds = [("/all", "k9", "auth_failed"), ("/scoped", "k3", "insufficient_scope")];
        for (path, key, kind) in kinds {
            let value = format!("{prefix}{key}");
            let reply = ask(gateway.addr(), &format!("GET {path}"), &[(header, &value)], b"");
            assert_eq!(reply.json()["error"]["type"], kind);
        }
        assert_eq!(get(gateway.addr(), "/all").json()["error"]["type"], "auth_required");
    }
}

/// Routes of the gateway itself have scopes of their own, which a key with scopes needs.
#[test]
fn a_key_with_scopes_needs_those_of_built_in_routes() {
    let gateway = gateway(&format!(
        "auth: {{header: apikey, keys: [{{name: files, key: f, scopes: [files]}}, \
         {{name: agent, key: a, scopes: [chat, sessions, tools]}}, {{name: all, key: k}}, {{name: acme, key: other}}]}}\n\
         upstreams: {{u: {{addresses: ['127.0.0.1:1']}}}}\n\
         agents: {{chat: {{upstream: u}}}}\ntools: {{local: [add], allow: {{'*': [add]}}}}\n\
         policy: {{endpoint: true}}{ROUTES}"
    ));
    let refused = |key: &str, line: &str| {
        let reply = ask(gateway.addr(), line, &[("apikey", key)], b"{}");
        let kind = reply.json()["error"]["type"] == "insufficient_scope";
        assert_eq!(kind, reply.status == 403, "{key} {line}: {reply:?}");
        kind
    };
    for line in [
        "POST /api/chat",
        "POST /v1/runs",
        "POST /v1/sessions",
        "POST /v1/hitl",
        "GET /v1/approvals",
        "POST /v1/a2a/send",
        "POST /a2a",
        "POST /v1/mcp/tools/call",
        "GET /v1/mcp/tools",
        "POST /mcp",
        "POST /api/request",
    ] {
        assert!(refused("f", line), "{line}");
        assert!(!refused("k", line), "{line}");
    }
    for line in ["POST /api/chat", "POST /v1/sessions", "POST /v1/mcp/tools/call"] {
        assert!(!refused("a", line), "{line}");
    }
    assert!(refused("a", "POST /v1/hitl"));
}

fn token(secret: &str, claims: &str) -> String {
    let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let signed = format!("{}.{}", encode("{\"alg\":\"HS256\"}"), encode(claims));
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), signed.as_bytes());
    format!("Bearer {signed}.{}", URL_SAFE_NO_PAD.encode(tag))
}

#[test]
fn key_token_and_header_must_agree_on_the_tenant() {
    let gateway = gateway(&format!(
        "auth: {{header: apikey, keys: [{{name: a, key: k1, tenant: retail}}, {{name: b, key: k2}}, {{name: c, key: k3, tenant: '*'}}, {{name: acme, key: k4}}]}}
tenant: {{claim: tenant, secret: s3cret, required: true}}{ROUTES}"
    ));
    let (good, bad) =
        (token("s3cret", "{\"tenant\":\"retail\"}"), token("x", "{\"tenant\":\"retail\"}"));
    let old = token("s3cret", "{\"tenant\":\"retail\",\"exp\":1000}");
    let cases: [(super::support::client::Headers<'_>, u16); 11] = [
        (&[("apikey", "k1")], 200),
        (&[("apikey", "k2")], 401),
        (&[("apikey", "k2"), ("x-tenant-id", "any")], 403),
        (&[("apikey", "k3"), ("x-tenant-id", "any")], 200),
        (&[("apikey", "k3")], 401),
        (&[("apikey", "k1"), ("x-tenant-id", "retail")], 200),
        (&[("apikey", "k1"), ("x-tenant-id", "other")], 403),
        (&[("apikey", "k2"), ("authorization", &good)], 200),
        (&[("apikey", "k2"), ("authorization", &good), ("x-tenant-id", "other")], 403),
        (&[("apikey", "k2"), ("authorization", &bad)], 403),
        (&[("apikey", "k2"), ("authorization", &old)], 401),
    ];
    for (headers, wanted) in cases {
        assert_eq!(status(gateway.addr(), "/all", headers), wanted, "{headers:?}");
    }
}

#[test]
fn the_gateways_key_does_not_reach_the_upstream() {
    let provider = super::support::provider::Provider::with_text(&["x"]);
    let gateway =
        super::support::llm(provider.addr, "auth: {header: apikey, keys: [{name: a, key: k1}]}");
    let headers = [("apikey", "k1"), ("authorization", "Bearer theirs")];
    let body = super::support::question("hi");
    assert_eq!(
        super::support::client::post(gateway.addr(), super::support::CHAT, &headers, &body).status,
        200
    );
    let seen = provider.seen().pop().unwrap();
    assert_eq!(
        (seen.header("apikey"), seen.header("authorization")),
        (None, Some("Bearer theirs"))
    );
}
