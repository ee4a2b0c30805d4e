//! Rate limits: subjects, headers, and never one request too many.

use plimsoll_gateway_server::Gateway;

use super::support::client::{ClientResponse, Headers, ask, get};
use super::support::{crowd, gateway, metric};

const ROUTE: &str = "routes: [{name: a, path: /all, respond: {body: hello}}]";

fn all(gateway: &Gateway, headers: Headers<'_>) -> ClientResponse {
    ask(gateway.addr(), "GET /all", headers, b"")
}

#[test]
fn every_algorithm_counts_down_and_refuses() {
    for algorithm in ["sliding", "bucket"] {
        // With a window of an hour, it hardly ever ends during the test.
        let gateway = gateway(&format!(
            "rate_limits: [{{per: global, requests: 3, window: 3600s, algorithm: {algorithm}}}]\n{ROUTE}"
        ));
        for left in [2, 1, 0] {
            let reply = all(&gateway, &[]);
            assert_eq!(reply.status, 200, "{algorithm}");
            assert_eq!(reply.number("x-ratelimit-limit"), 3);
            assert_eq!(reply.number("x-ratelimit-remaining"), left, "{algorithm}");
            assert!((1..=7_200).contains(&reply.number("x-ratelimit-reset")), "{algorithm}");
            assert_eq!(reply.header("retry-after"), None);
        }
        let reply = all(&gateway, &[]);
        assert_eq!((reply.status, reply.number("x-ratelimit-remaining")), (429, 0), "{algorithm}");
        assert!((1..=7_200).contains(&reply.number("retry-after")), "{algorithm}: {reply:?}");
        assert_eq!(reply.json()["error"]["type"], "rate_limited");
        assert_eq!(metric(&gateway, "gateway_rate_limited_total "), Some(1.0));
        let open = get(gateway.addr(), "/health/live");
        assert_eq!((open.status, open.header("x-ratelimit-limit")), (200, None), "open");
    }
}

#[test]
fn a_limit_counts_per_its_subject() {
    let auth = "auth: {header: apikey, keys: [{name: a, key: k1, tenant: '*'}, {name: b, key: k2, tenant: '*'}]}\ntenant: {}";
    let headers: [Headers<'_>; 4] = [
        &[("apikey", "k1"), ("x-tenant-id", "t1")],
        &[("apikey", "k1"), ("x-tenant-id", "t2")],
        &[("apikey", "k2"), ("x-tenant-id", "t1")],
        &[("apikey", "k2"), ("x-tenant-id", "t2")],
    ];
    for (per, wanted) in [
        ("global", [200, 429, 429, 429]),
        ("address", [200, 429, 429, 429]),
        ("tenant", [200, 200, 429, 429]),
        ("key", [200, 429, 200, 429]),
    ] {
        let gateway =
            gateway(&format!("{auth}\nrate_limits: [{{per: {per}, requests: 1}}]\n{ROUTE}"));
        assert_eq!(headers.map(|headers| all(&gateway, headers).status), wanted, "{per}");
    }
}

#[test]
fn of_two_limits_both_or_none_are_charged() {
    let gateway = gateway(&format!(
        "tenant: {{}}
rate_limits: [{{per: tenant, requests: 1}}, {{per: global, requests: 2}}]\n{ROUTE}"
    ));
    let tenant = |name| all(&gateway, &[("x-tenant-id", name)]).status;
    assert_eq!(
        [tenant("a"), tenant("a"), tenant("a"), tenant("b"), tenant("c")],
        [200, 429, 429, 200, 429]
    );
}

#[test]
fn a_limit_of_zero_is_no_limit() {
    let gateway = gateway(&format!("rate_limits: [{{per: global, requests: 0}}]\n{ROUTE}"));
    let reply = all(&gateway, &[]);
    assert_eq!((reply.status, reply.header("x-ratelimit-limit")), (200, None));
    assert_eq!(metric(&gateway, "gateway_layer_enabled{layer=\"rate_limits\"} "), None);
}

#[test]
fn sixty_four_concurrent_requests_get_no_more_than_allowed() {
    for (algorithm, workers) in [("sliding", 2), ("bucket", 2)] {
        let gateway = gateway(&format!(
            "workers: {workers}
rate_limits: [{{per: global, requests: 100, window: 86400s, algorithm: {algorithm}}}]\n{ROUTE}"
        ));
        let admitted: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..64)
                .map(|_| {
                    scope.spawn(|| (0..4).filter(|_| all(&gateway, &[]).status == 200).count())
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(admitted, 100, "{algorithm}");
    }
}

#[test]
fn the_fault_limiter_open_lets_everything_pass_and_is_shown() {
    let limits = format!("rate_limits: [{{per: global, requests: 1}}]\n{ROUTE}");
    let gateway = gateway(&format!("faults: {{limiter_open: true}}\n{limits}"));
    assert!(crowd(|_| all(&gateway, &[])).iter().all(|reply| reply.status == 200));
    let build = get(gateway.addr(), "/admin/build").json();
    assert_eq!(build["faults"], serde_json::json!(["limiter_open"]));
    assert!(build["layers"].as_array().unwrap().iter().any(|layer| layer == "rate_limits"));
}
