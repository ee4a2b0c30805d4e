//! Agent loops and background runs count as held memory, and no owner takes it from all others.

use std::net::SocketAddr;

use plimsoll_gateway_server::Gateway;
use plimsoll_mock::{Mock, MockConfig};
use serde_json::json;

use super::support::client::{get, post};
use super::support::{gateway, metric};

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

#[test]
fn runs_before_a_silent_provider_take_their_owners_share_only() {
    let provider = silent();
    let gateway = gateway(&format!(
        "server: {{memory: 16MiB}}
upstreams: {{p: {{addresses: ['{}'], timeout: 60s}}}}
agents: {{chat: {{upstream: p, model: m, owner_runs: 20}}}}
{TENANTS}",
        provider.addr()
    ));
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
