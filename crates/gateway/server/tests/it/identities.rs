//! Callers: two tenants with two keys each, anonymous and forged ones, over every stateful layer.
//! No cell of the matrix sees another tenant's state.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use plimsoll_gateway_server::Gateway;
use ring::hmac;
use serde_json::{Value, json};

use super::support::client::{ClientResponse, Headers, ask, get, post};
use super::support::provider::Provider;
use super::support::{CHAT, crowd, gateway, llm, question};

const KEYS: &str = "auth: {header: apikey, keys: [\
    {name: a1, key: ka1, tenant: a}, {name: a2, key: ka2, tenant: a}, \
    {name: b1, key: kb1, tenant: b}, {name: b2, key: kb2, tenant: b}, {name: n, key: kn}]}\n";

/// Those who ask: headers, and the tenant that they have, if they are served at all.
const ASKERS: [(Headers<'static>, Option<&str>, u16); 12] = [
    (&[("apikey", "ka1")], Some("a"), 200),
    (&[("apikey", "ka2")], Some("a"), 200),
    (&[("apikey", "kb1")], Some("b"), 200),
    (&[("apikey", "kb2"), ("x-tenant-id", "b")], Some("b"), 200),
    (&[], None, 401),
    (&[("x-tenant-id", "a")], None, 401),
    (&[("apikey", "")], None, 401),
    (&[("apikey", "forged")], None, 403),
    (&[("apikey", "forged"), ("x-tenant-id", "a")], None, 403),
    (&[("apikey", "kb1"), ("x-tenant-id", "a")], None, 403),
    (&[("apikey", "kn"), ("x-tenant-id", "a")], None, 403),
    (&[("apikey", "kn")], None, 401),
];

fn chat(gateway: &Gateway, headers: Headers<'_>, text: &str) -> ClientResponse {
    post(gateway.addr(), CHAT, headers, &question(text))
}

fn spent(gateway: &Gateway, tenant: &str) -> f64 {
    let key = if tenant == "a" { "ka1" } else { "kb1" };
    let reply = ask(gateway.addr(), &format!("GET /v1/budget/{tenant}"), &[("apikey", key)], b"");
    reply.json()["spent"].as_f64().unwrap()
}

#[test]
fn the_cache_is_shared_within_a_tenant_only() {
    let provider = Provider::with_text(&["hello"]);
    let gateway = llm(provider.addr, &format!("{KEYS}tenant: {{required: true}}\ncache: {{}}"));
    for (round, tenant) in ["a", "b"].into_iter().enumerate() {
        let mut first = true;
        for (headers, own, status) in
            ASKERS.iter().filter(|(_, own, _)| own.is_none_or(|own| own == tenant))
        {
            let reply = chat(&gateway, headers, "same question");
            assert_eq!(reply.status, *status, "{headers:?}");
            let expected = own.map(|_| if first { "miss" } else { "hit" });
            assert_eq!(reply.header("x-cache"), expected, "{headers:?}");
            first = first && own.is_none();
        }
        assert_eq!(provider.count(), round + 1);
    }
}

#[test]
fn the_same_question_at_once_is_fetched_once_for_each_tenant() {
    let provider = Provider::with_text(&["hello"]);
    let gateway = llm(provider.addr, &format!("{KEYS}tenant: {{required: true}}\ncache: {{}}"));
    let replies = crowd(|number| {
        let (headers, ..) = ASKERS[number % ASKERS.len()];
        chat(&gateway, headers, "all at once")
    });
    for (number, reply) in replies.iter().enumerate() {
        assert_eq!(reply.status, ASKERS[number % ASKERS.len()].2);
    }
    assert_eq!(provider.count(), 2, "one for each tenant");
}

#[test]
fn a_limit_of_a_tenant_counts_both_its_keys_and_nobody_elses() {
    for (per, alone) in [("tenant", false), ("key", true)] {
        let gateway = gateway(&format!(
            "{KEYS}tenant: {{}}\nrate_limits: [{{per: {per}, requests: 2, window: 3600s}}]\n\
             routes: [{{name: all, path: /all, respond: {{body: hello}}}}]"
        ));
        let all = |headers: Headers<'_>| ask(gateway.addr(), "GET /all", headers, b"").status;
        // Strangers first, many times: they use up nothing of anybody.
        for (headers, own, status) in ASKERS.iter().filter(|(_, own, _)| own.is_none()) {
            let refused =
                if per == "key" && *headers == [("apikey", "kn")] { 200 } else { *status };
            // Without a limit of tenants, a key without tenant may ask, within its own limit.
            let wanted = if per == "key" { refused } else { *status };
            assert_eq!((all(headers), own), (wanted, &None), "{per} {headers:?}");
        }
        let served: Vec<u16> = ASKERS[..4].iter().map(|(headers, ..)| all(headers)).collect();
        assert_eq!(served, [200, 200, 200, 200], "{per}");
        let again: Vec<u16> = ASKERS[..4].iter().map(|(headers, ..)| all(headers)).collect();
        let expected = if alone { [200; 4] } else { [429; 4] };
        assert_eq!(again, expected, "{per}");
    }
}

#[test]
fn a_budget_is_spent_by_its_tenant_only() {
    let provider = Provider::with_text(&["hello"]);
    let gateway = llm(provider.addr, &format!("{KEYS}tenant: {{}}\nbudgets: {{default: 100000}}"));
    let mut expected = [0.0, 0.0];
    for (number, (headers, own, status)) in ASKERS.iter().enumerate() {
        let reply = chat(&gateway, headers, &format!("question {number}"));
        assert_eq!(reply.status, *status, "{headers:?}");
        match own {
            // The provider reports 7 and 5 tokens.
            Some("a") => expected[0] += 12.0,
            Some(_) => expected[1] += 12.0,
            None => {}
        }
        let found = [spent(&gateway, "a"), spent(&gateway, "b")];
        assert_eq!(found, expected, "{headers:?}");
    }
}

#[test]
fn the_policy_endpoint_knows_whose_budget_it_spends() {
    let provider = Provider::with_text(&["hello"]);
    let sections =
        format!("{KEYS}policy: {{endpoint: true}}\ntenant: {{}}\nbudgets: {{default: 100000}}");
    let gateway = llm(provider.addr, &sections);
    let mut expected = [0.0, 0.0];
    for (headers, own, status) in ASKERS {
        let body = json!({"query": "hello", "user_token": "u", "request_type": "chat"});
        let reply = post(gateway.addr(), "/api/request", headers, &body);
        assert_eq!(reply.status, status, "{headers:?}");
        match own {
            Some("a") => expected[0] += 12.0,
            Some(_) => expected[1] += 12.0,
            None => {}
        }
        assert_eq!([spent(&gateway, "a"), spent(&gateway, "b")], expected, "{headers:?}");
    }
}

#[test]
fn a_budget_is_shown_to_its_tenant_and_to_the_administration() {
    let provider = Provider::with_text(&["hello"]);
    let budgets = "tenant: {}\nbudgets: {default: 1000}";
    let gateway = llm(provider.addr, &format!("{KEYS}{budgets}\nadmin: {{key: sesame}}"));
    for (headers, own, _) in ASKERS {
        for tenant in ["a", "b"] {
            let path = format!("GET /v1/budget/{tenant}");
            let status = ask(gateway.addr(), &path, headers, b"").status;
            assert_eq!(status == 200, own == Some(tenant), "{headers:?} {tenant}: {status}");
        }
        for page in ["GET /admin/build", "POST /admin/reload", "GET /metrics"] {
            let status = ask(gateway.addr(), page, headers, b"").status;
            assert!(status == 401 || status == 403, "{headers:?} {page}: {status}");
        }
    }
    let admin = [("authorization", "Bearer sesame")];
    assert_eq!(ask(gateway.addr(), "GET /v1/budget/a", &admin, b"").status, 200);
    let forged = [("apikey", "forged"), ("authorization", "Bearer sesame")];
    assert_eq!(ask(gateway.addr(), "GET /v1/budget/a", &forged, b"").status, 403);
    // Without a key, this machine administrates; a limit of tenants is not its limit.
    let local = format!("{budgets}\nrate_limits: [{{per: tenant, requests: 1, window: 3600s}}]");
    let gateway = llm(provider.addr, &local);
    for _ in 0..3 {
        assert_eq!(get(gateway.addr(), "/v1/budget/a").status, 200);
    }
    let proxied = [("x-forwarded-for", "192.0.2.1")];
    assert_eq!(ask(gateway.addr(), "GET /v1/budget/a", &proxied, b"").status, 401);
}

#[test]
fn a_credential_that_is_passed_on_has_its_own_answers() {
    let provider = Provider::start(|seen, wire| {
        let good = seen.header("authorization") == Some("Bearer good")
            || seen.header("x-api-key") == Some("good");
        let status = if good { 200 } else { 401 };
        wire.json(status, &answer_of(&format!("{good}")))
    });
    let passing = llm(provider.addr, "cache: {}\ntenant: {}");
    let cases: [(Headers<'_>, u16, &str); 9] = [
        (&[("authorization", "Bearer good")], 200, "miss"),
        (&[("authorization", "Bearer good")], 200, "hit"),
        (&[("authorization", "Bearer wrong")], 401, "miss"),
        (&[], 401, "miss"),
        (&[("x-api-key", "good")], 200, "miss"),
        (&[("authorization", "Bearer good"), ("x-tenant-id", "t")], 200, "miss"),
        (&[("authorization", "Bearer good"), ("cookie", "user=1")], 200, "miss"),
        (&[("authorization", "Bearer good"), ("openai-organization", "o")], 200, "miss"),
        (&[("authorization", "Bearer good")], 200, "hit"),
    ];
    for (headers, status, cache) in cases {
        let reply = chat(&passing, headers, "who am I");
        assert_eq!((reply.status, reply.header("x-cache")), (status, Some(cache)), "{headers:?}");
    }
}

#[test]
fn with_a_key_of_the_upstream_no_credential_of_a_client_is_passed_on() {
    let provider = Provider::with_text(&["hello"]);
    let gateway = gateway(&format!(
        "upstreams: {{p: {{addresses: ['{}'], key: ours}}}}\ncache: {{}}\n\
         routes: [{{name: chat, path: {CHAT}, upstream: p, llm: true}}]",
        provider.addr
    ));
    let theirs = [
        ("authorization", "Bearer theirs"),
        ("x-api-key", "theirs"),
        ("api-key", "theirs"),
        ("x-goog-api-key", "theirs"),
        ("openai-organization", "theirs"),
        ("openai-project", "theirs"),
    ];
    assert_eq!(chat(&gateway, &theirs, "hi").header("x-cache"), Some("miss"));
    assert_eq!(chat(&gateway, &[], "hi").header("x-cache"), Some("hit"), "all use our key");
    let seen = provider.seen().pop().unwrap();
    assert_eq!(seen.header("authorization"), Some("Bearer ours"));
    assert!(seen.headers.iter().all(|(_, value)| !value.contains("theirs")), "{seen:?}");
}

#[test]
fn without_tenants_each_consumer_has_its_own_answers() {
    let provider = Provider::with_text(&["hello"]);
    let gateway = llm(provider.addr, &format!("{KEYS}cache: {{}}"));
    for (key, cache) in [("ka1", "miss"), ("ka2", "hit"), ("kn", "miss"), ("kn", "hit")] {
        // Without the section, the tenant of a key means nothing.
        let cache = if key == "ka2" { "miss" } else { cache };
        let reply = chat(&gateway, &[("apikey", key)], "hi");
        assert_eq!(reply.header("x-cache"), Some(cache), "{key}");
    }
}

#[test]
fn who_names_no_tenant_is_refused_where_tenants_count_or_shares_one_bucket() {
    let provider = Provider::with_text(&["hello"]);
    let limit = "rate_limits: [{per: tenant, requests: 1, window: 3600s}]";
    for (tenant, expected) in [("{}", [401, 401]), ("{anonymous: true}", [200, 429])] {
        for name in [None, Some("x-other")] {
            let gateway = llm(provider.addr, &format!("tenant: {tenant}\n{limit}"));
            let headers: Vec<_> = name.map(|name| (name, "")).into_iter().collect();
            let found = [(); 2].map(|()| chat(&gateway, &headers, "hi").status);
            assert_eq!(found, expected, "{tenant} {name:?}");
            // No name of a tenant reaches that bucket.
            for name in ["anonymous", "-", "x"] {
                assert_eq!(chat(&gateway, &[("x-tenant-id", name)], "hi").status, 200, "{name}");
            }
        }
    }
    let gateway = llm(provider.addr, "tenant: {}\nbudgets: {default: 1000}");
    assert_eq!(chat(&gateway, &[], "hi").status, 401, "a budget counts tenants, too");
}

#[test]
fn a_forged_key_counts_for_its_address() {
    let gateway = gateway(&format!(
        "{KEYS}rate_limits: [{{per: address, requests: 3, window: 3600s}}, {{per: global, requests: 4, window: 3600s}}]\n\
         routes: [{{name: all, path: /all, respond: {{body: hello}}}}]"
    ));
    let guess = || ask(gateway.addr(), "GET /all", &[("apikey", "guess")], b"").status;
    assert_eq!([guess(), guess(), guess(), guess()], [403, 403, 403, 429]);
}

fn token(secret: &str, claims: &str) -> String {
    let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let signed = format!("{}.{}", encode("{\"alg\":\"HS256\"}"), encode(claims));
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), signed.as_bytes());
    format!("Bearer {signed}.{}", URL_SAFE_NO_PAD.encode(tag))
}

#[test]
fn a_token_is_believed_only_within_its_time_and_with_its_signature() {
    let gateway = gateway(
        "tenant: {claim: tenant, secret: s3cret, required: true}\n\
         routes: [{name: all, path: /all, respond: {body: hello}}]",
    );
    for (secret, claims, status) in [
        ("s3cret", r#"{"tenant":"a"}"#, 200),
        ("s3cret", r#"{"tenant":"a","exp":4000000000}"#, 200),
        ("s3cret", r#"{"tenant":"a","exp":4000000000.25,"nbf":1000.75}"#, 200),
        ("s3cret", r#"{"tenant":"a","exp":1000}"#, 401),
        ("s3cret", r#"{"tenant":"a","exp":1000.5}"#, 401),
        ("s3cret", r#"{"tenant":"a","nbf":4000000000}"#, 401),
        ("s3cret", r#"{"tenant":"a","nbf":4000000000.5}"#, 401),
        ("s3cret", r#"{"tenant":"a","exp":"4000000000"}"#, 403),
        ("s3cret", r#"{"tenant":"a","nbf":"1000"}"#, 403),
        ("s3cret", r#"{"tenant":"a","exp":null}"#, 403),
        ("s3cret", r#"{"tenant":"a","exp":[4000000000]}"#, 403),
        ("forged", r#"{"tenant":"a"}"#, 403),
        ("s3cret", r#"{"other":"a"}"#, 401),
    ] {
        let headers = [("authorization", &*token(secret, claims))];
        assert_eq!(ask(gateway.addr(), "GET /all", &headers, b"").status, status, "{claims}");
    }
    let named = [("x-tenant-id", "a")];
    assert_eq!(ask(gateway.addr(), "GET /all", &named, b"").status, 403, "nothing proves it");
    assert_eq!(get(gateway.addr(), "/all").status, 401);
}

fn answer_of(text: &str) -> Value {
    serde_json::json!({"id": "1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text},
            "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}})
}
