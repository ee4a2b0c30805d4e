//! Two gateways on one Redis, and the loss of Redis.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use plimsoll_gateway_server::Gateway;
use serde_json::json;

use super::support::client::{ask, get, post};
use super::support::provider::Provider;
use super::support::{CHAT, llm, metric, question, sleep_ms, until};

/// A Redis server of one test; killed when dropped, or when the test's process ends.
struct Redis {
    child: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Redis {
    fn start() -> Self {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let folder = tempfile::tempdir().unwrap();
        let mut server = Command::new("setpriv");
        server.args(["--pdeathsig", "KILL", "redis-server", "--bind", "127.0.0.1", "--save", ""]);
        server
            .args(["--appendonly", "no", "--port", &port.to_string(), "--dir"])
            .arg(folder.path());
        server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = server.spawn().expect("setpriv (util-linux) starts redis-server");
        let redis = Self { child, port, _folder: folder };
        for _ in 0..1_000 {
            if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
                return redis;
            }
            sleep_ms(10);
        }
        panic!("no Redis: install redis-server (apt-get install redis-server)");
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// The number of cached responses.
    fn answers(&self) -> usize {
        let port = self.port.to_string();
        let mut list = Command::new("redis-cli");
        let script = "return #redis.call('keys', 'plimsoll:answer:*')";
        list.args(["-p", &port, "eval", script, "0"]);
        let listed = list.output().expect("redis-cli comes with redis-server").stdout;
        String::from_utf8(listed).unwrap().trim().parse().unwrap()
    }

    fn store(&self, on_loss: &str) -> String {
        let port = self.port;
        format!("store: {{redis: 'redis://127.0.0.1:{port}', on_loss: {on_loss}, timeout: 2s}}\n")
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const LAYERS: &str = "tenant: {}\nrate_limits: [{per: tenant, requests: 4, window: 3600s}]\ncache: {}\nbudgets: {default: 10000}\n";
const A: super::support::client::Headers<'_> = &[("x-tenant-id", "a")];

fn spent(gateway: &Gateway) -> f64 {
    // A tenant's view of the budget would be counted by the limit.
    get(gateway.addr(), "/v1/budget/a").json()["spent"].as_f64().unwrap()
}

#[test]
fn two_gateways_share_their_state_through_redis() {
    let redis = Redis::start();
    let provider = Provider::with_text(&["Hello"]);
    let layers = format!("{LAYERS}{}", redis.store("closed"));
    let [one, two] = [(); 2].map(|()| llm(provider.addr, &layers));
    assert_eq!(get(one.addr(), "/admin/build").json()["store"], "redis");
    let ask = |gateway: &Gateway, text| post(gateway.addr(), CHAT, A, &question(text));
    let first = ask(&one, "hi");
    assert_eq!((first.status, first.header("x-cache")), (200, Some("miss")), "{first:?}");
    until("the answer is kept and paid for", || redis.answers() == 1 && spent(&two) == 12.0);
    let second = ask(&two, "hi");
    assert_eq!((second.header("x-cache"), second.text()), (Some("hit"), first.text()));
    assert_eq!(second.number("x-ratelimit-remaining"), 2, "one limit");
    assert_eq!(ask(&two, "ho").header("x-cache"), Some("miss"));
    until("both have paid into one budget", || spent(&one) == 24.0);
    assert_eq!(
        [ask(&one, "hi").status, ask(&two, "hi").status, ask(&one, "hi").status],
        [200, 429, 429]
    );
    assert_eq!(provider.count(), 2);
}

#[test]
fn sixty_four_requests_to_two_gateways_get_no_more_than_allowed() {
    let redis = Redis::start();
    let limits = format!(
        "rate_limits: [{{per: global, requests: 50, window: 86400s}}]\n{}",
        redis.store("closed")
    );
    let provider = Provider::with_text(&["Hello"]);
    let gateways = [(); 2].map(|()| llm(provider.addr, &limits));
    let replies = super::support::crowd(|number| {
        post(gateways[number % 2].addr(), CHAT, &[], &question("hi"))
    });
    let count = |status| replies.iter().filter(|reply| reply.status == status).count();
    assert_eq!((count(200), count(429)), (50, 14));
}

#[test]
fn a_stream_cached_by_one_gateway_is_replayed_by_another_with_the_same_frames() {
    let redis = Redis::start();
    let provider = Provider::with_text(&["Hello", " there", " you"]);
    let layers = format!("cache: {{}}\n{}", redis.store("closed"));
    let [one, two] = [(); 2].map(|()| llm(provider.addr, &layers));
    let ask = |gateway: &Gateway| post(gateway.addr(), CHAT, &[], &super::support::streamed("hi"));
    let miss = ask(&one);
    assert_eq!(miss.header("x-cache"), Some("miss"));
    until("the answer is kept", || redis.answers() == 1);
    let hit = ask(&two);
    assert_eq!((hit.header("x-cache"), &hit.chunks), (Some("hit"), &miss.chunks));
    assert_eq!(hit.header("content-type"), miss.header("content-type"));
    let others = super::support::crowd(|number| {
        let body = question("asked by all");
        post([&one, &two][number % 2].addr(), CHAT, &[], &body)
    });
    assert!(others.iter().all(|reply| reply.status == 200));
    // One flight for each process, and one process may have come after the other's answer.
    assert!((2..=3).contains(&provider.count()), "{}", provider.count());
}

#[test]
fn without_redis_a_gateway_fails_open_or_closed_as_configured() {
    for (on_loss, wanted) in [("open", 200), ("closed", 503)] {
        let mut redis = Redis::start();
        let provider = Provider::with_text(&["Hello"]);
        let gateway = llm(provider.addr, &format!("{LAYERS}{}", redis.store(on_loss)));
        let ask = || post(gateway.addr(), CHAT, A, &question("hi"));
        assert_eq!(ask().status, 200);
        redis.kill();
        let statuses = [(); 6].map(|()| ask().status);
        assert_eq!(statuses, [wanted; 6], "{on_loss}");
        if on_loss == "closed" {
            let body = ask().json();
            assert!(body["error"]["message"].as_str().unwrap().contains("store"), "{body}");
        }
        assert!(metric(&gateway, "gateway_store_errors ").unwrap() > 0.0);
        let health = get(gateway.addr(), "/health");
        assert_eq!(health.status, 200, "it is alive");
        let health = health.json();
        assert_eq!([&health["status"], &health["store"]], ["degraded", "failing"], "{on_loss}");
    }
}

#[test]
fn a_redis_that_hangs_shows_until_it_answers_again() {
    let redis = Redis::start();
    let store = redis.store("open").replace("timeout: 2s", "timeout: 100ms");
    let gateway = llm(Provider::with_text(&["Hello"]).addr, &format!("{LAYERS}{store}"));
    let signal = |name: &str| {
        let pid = redis.child.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    };
    let health = || get(gateway.addr(), "/health").json()["status"].clone();
    assert_eq!(health(), "ok");
    signal("-STOP");
    assert_eq!(post(gateway.addr(), CHAT, A, &question("hi")).status, 200);
    assert_eq!(health(), "degraded");
    signal("-CONT");
    until("it answers again", || health() == "ok");
}

#[test]
fn sessions_and_approvals_are_shared_and_never_pass_without_redis() {
    let mut redis = Redis::start();
    // Closed or open makes no difference to them.
    let layers = format!("tenant: {{}}\nagents: {{}}\n{}", redis.store("open"));
    let [one, two] = [(); 2].map(|()| super::support::gateway(&layers));
    let made = post(one.addr(), "/v1/sessions", A, &json!({"ttl_s": 60})).json();
    let session = format!("/v1/sessions/{}", made["session_id"].as_str().unwrap());
    let shown = ask(two.addr(), &format!("GET {session}"), A, b"");
    assert_eq!((shown.status, &shown.json()["expires_at"]), (200, &made["expires_at"]));
    let asked = post(one.addr(), "/v1/hitl", A, &json!({"action": "pay"})).json();
    let approval = format!("/v1/hitl/{}", asked["id"].as_str().unwrap());
    let words = ["approve", "reject", "expire"];
    let replies = super::support::crowd(|number| {
        let path = format!("{approval}/{}", words[number % 3]);
        post([&one, &two][number % 2].addr(), &path, A, &json!({}))
    });
    let count = |status| replies.iter().filter(|reply| reply.status == status).count();
    assert_eq!((count(200), count(409)), (1, 63), "one outcome for both gateways");
    let state = ask(two.addr(), &format!("GET {approval}"), A, b"").json()["state"].clone();
    assert!(replies.iter().all(|reply| reply.json()["state"] == state), "{state}");
    redis.kill();
    for (line, body) in [
        ("POST /v1/sessions".to_owned(), &b"{}"[..]),
        (format!("GET {session}"), b""),
        (format!("DELETE {session}"), b""),
        ("POST /v1/hitl".to_owned(), br#"{"action":"pay"}"#),
        ("GET /v1/hitl/pending".to_owned(), b""),
        (format!("GET {approval}"), b""),
        (format!("POST {approval}/approve"), b"{}"),
    ] {
        let reply = ask(one.addr(), &line, A, body);
        let kind = reply.json()["error"]["type"].clone();
        assert_eq!((reply.status, kind), (503, json!("store_unavailable")), "{line}");
    }
}
