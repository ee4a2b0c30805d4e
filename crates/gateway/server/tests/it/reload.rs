//! Reloads of the configuration under load.

use std::fs;
use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_gateway_server::{Gateway, GatewayError, Spec};

use super::support::client::{ask, get};
use super::support::raw::{OK, connect, fixed_upstream, head};

#[test]
fn no_request_is_lost_while_the_configuration_is_reloaded() {
    let folder = tempfile::tempdir().unwrap();
    let (file, up) = (folder.path().join("g.yaml"), fixed_upstream(OK));
    let write = |number: usize| {
        let text = format!(
            "listen: 127.0.0.1:0\nworkers: 2\nupstreams: {{u{}: {{addresses: ['{up}']}}}}\n\
             routes:\n  - {{name: r{number}, path: /x, upstream: u{}}}\n",
            number % 3,
            number % 3
        );
        fs::write(&file, text).unwrap();
    };
    write(0);
    let gateway = Gateway::spawn_from(&Spec::open(&file).unwrap(), &file).unwrap();
    let (over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let mut stream = connect(&gateway);
                while !over.load(Ordering::SeqCst) {
                    stream.write_all(b"GET /x HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
                    let answer = head(&mut stream).unwrap();
                    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
                    let mut body = [0; 5];
                    stream.read_exact(&mut body).unwrap();
                    assert_eq!(&body, b"hello");
                    answered.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        for number in 1..=60 {
            write(number);
            gateway.reload().unwrap();
            let seen = answered.load(Ordering::SeqCst);
            while answered.load(Ordering::SeqCst) < seen + 10 {
                thread::yield_now();
            }
        }
        over.store(true, Ordering::SeqCst);
    });
    assert!(answered.load(Ordering::SeqCst) >= 600);
}

/// A configuration that uses what only a start opens, in `folder`.
const WHOLE: &str = "listen: 127.0.0.1:0
admin: {local: true}
metrics: {}
server: {connections: 50, drain: 1s}
audit: {path: 'FOLDER/audit', flush: 1ms}
cache: {bytes: 1MiB}
routes: [{name: r, path: /x, respond: {body: here}}]
";

#[test]
fn a_reload_that_needs_a_restart_changes_nothing_and_names_the_settings() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("g.yaml");
    let write = |old: &str, new: &str| {
        assert!(WHOLE.contains(old), "{old}");
        // Every file would also change the route.
        let text = WHOLE.replace("here", "there").replacen(old, new, 1);
        fs::write(&file, text.replace("FOLDER", &folder.path().display().to_string())).unwrap();
    };
    fs::write(&file, WHOLE.replace("FOLDER", &folder.path().display().to_string())).unwrap();
    let gateway = Gateway::spawn_from(&Spec::open(&file).unwrap(), &file).unwrap();
    let build = || {
        let mut build = get(gateway.addr(), "/admin/build").json();
        build["served"].take();
        build
    };
    let before = build();
    for (old, new, names) in [
        ("listen: 127.0.0.1:0", "listen: 127.0.0.1:1", "listen"),
        ("metrics", "workers: 2\nmetrics", "workers"),
        ("connections: 50", "connections: 51", "server.connections"),
        ("local: true", "local: true, listen: '127.0.0.1:0'", "admin.listen"),
        ("metrics", "tls: {cert: /none, key: /none}\nmetrics", "tls"),
        ("FOLDER/audit", "FOLDER/other", "audit"),
        ("flush: 1ms", "when_full: block", "audit"),
        ("audit: {path: 'FOLDER/audit', flush: 1ms}\n", "workers: 2\n", "workers, audit"),
        ("bytes: 1MiB", "bytes: 2MiB", "cache.bytes"),
        ("metrics", "store: {timeout: 1s}\nmetrics", "store"),
    ] {
        write(old, new);
        let reply = ask(gateway.addr(), "POST /admin/reload", &[], b"");
        let shown = reply.text();
        assert_eq!(reply.status, 409, "{old} -> {new}: {shown}");
        assert!(shown.contains(&format!("new values of: {names};")), "{new}: {shown}");
        assert_eq!((build(), get(gateway.addr(), "/x").text()), (before.clone(), "here".into()));
    }
    assert!(!folder.path().join("other").exists());
    // Settings that need no restart are applied, such as a disabled cache.
    for (old, new) in [("cache: {bytes: 1MiB}\n", ""), ("drain: 1s", "drain: 2s, body_bytes: 9")] {
        write(old, new);
        assert_eq!(ask(gateway.addr(), "POST /admin/reload", &[], b"").status, 200, "{new}");
        assert_eq!(get(gateway.addr(), "/x").text(), "there");
    }
}

/// The effect of a setting on an outside probe.
type Probe = fn(&Gateway) -> String;

/// A setting: as it is, changed, broken; whether it needs a restart; and its probe.
type Setting = (&'static str, &'static str, &'static str, bool, Probe);

fn status(gateway: &Gateway, line: &str, headers: &[(&str, &str)], body: &str) -> String {
    ask(gateway.addr(), line, headers, body.as_bytes()).status.to_string()
}

fn text(gateway: &Gateway, path: &str) -> String {
    get(gateway.addr(), path).text()
}

fn layers(gateway: &Gateway) -> String {
    get(gateway.addr(), "/admin/build").json()["layers"].to_string()
}

const ATTACK: &str = r#"{"query":"1 union select password from users","request_type":"sql",
    "skip_llm":true,"user_token":"t","client_id":"c"}"#;

const SETTINGS: &[Setting] = &[
    ("name: one", "name: two", "name: [1]", false, |gateway| text(gateway, "/health")),
    ("envelope: plain", "envelope: typed", "envelope: x", false, |gateway| text(gateway, "/none")),
    (
        "request_id: {}",
        "request_id: {header: x-trace}",
        "request_id: {header: 'a b'}",
        false,
        |gateway| {
            let reply = get(gateway.addr(), "/x");
            ["x-request-id", "x-trace"]
                .map(|name| reply.header(name).is_some().to_string())
                .concat()
        },
    ),
    (
        "auth: {header: apikey, keys: [{name: a, key: k1}]}",
        "auth: {header: apikey, keys: [{name: a, key: k2}]}",
        "auth: {header: apikey, keys: [{name: a}]}",
        false,
        |gateway| status(gateway, "GET /x", &[("apikey", "k1")], ""),
    ),
    (
        "tenant: {required: true}",
        "tenant: {}",
        "tenant: {required: true, anonymous: true}",
        false,
        |gateway| status(gateway, "GET /x", &[], ""),
    ),
    (
        "rate_limits: [{per: address, requests: 30}]",
        "rate_limits: [{per: address, requests: 40}]",
        "rate_limits: [{per: tenant, requests: 1}]",
        false,
        |gateway| format!("{:?}", get(gateway.addr(), "/x").header("x-ratelimit-limit")),
    ),
    (
        "server: {body_bytes: 9}",
        "server: {body_bytes: 90}",
        "server: {body_bytes: 0}",
        false,
        |gateway| status(gateway, "POST /x", &[], &"x".repeat(50)),
    ),
    (
        "server: {connections: 50}",
        "server: {connections: 60}",
        "server: {connections: 0}",
        true,
        layers,
    ),
    (
        "policy: {endpoint: true}",
        "policy: {endpoint: true, actions: {sql_injection: log}}",
        "policy: {endpoint: true, rules: /none}",
        false,
        |gateway| status(gateway, "POST /api/request", &[], ATTACK),
    ),
    (
        "scrub: {}",
        "scrub: {pass_types: [text/plain]}",
        "scrub: {unreadable: x}",
        false,
        |gateway| text(gateway, "/up"),
    ),
    ("metrics: {open: true}", "metrics: {open: false}", "metrics: {open: 1}", false, |gateway| {
        status(gateway, "GET /metrics", &[("via", "x")], "")
    }),
    (
        "tools: {local: [echo], allow: {'*': ['local/*']}}",
        "tools: {local: [add], allow: {'*': ['local/*']}}",
        "tools: {local: [none]}",
        false,
        |gateway| text(gateway, "/v1/mcp/tools"),
    ),
    (
        "agents: {sessions: {calls: 3}}",
        "agents: {sessions: {calls: 4}}",
        "agents: {sessions: {max: 0}}",
        false,
        |gateway| {
            let reply = ask(gateway.addr(), "POST /v1/sessions", &[], b"{}");
            format!(
                "{} {}",
                reply.status,
                serde_json::from_str::<serde_json::Value>(&reply.text()).unwrap_or_default()["calls_left"]
            )
        },
    ),
    (
        "tenant: {}\nbudgets: {default: 5}",
        "tenant: {}\nbudgets: {default: 6}",
        "tenant: {}\nbudgets: {default: -1}",
        false,
        |gateway| text(gateway, "/v1/budget/t"),
    ),
    (
        "faults: {error_share: 1}",
        "faults: {error_share: 0.0}",
        "faults: {error_share: 2}",
        false,
        |gateway| status(gateway, "GET /up", &[], ""),
    ),
    ("open: [/admin/*]", "open: [/admin/*, /x]", "open: [/nowhere]", false, layers),
    ("workers: 1", "workers: 2", "workers: 0", true, |gateway| {
        get(gateway.addr(), "/admin/build").json()["workers"].to_string()
    }),
    ("store: {timeout: 1s}", "store: {timeout: 2s}", "store: {timeout: 0s}", true, |gateway| {
        get(gateway.addr(), "/admin/build").json()["store"].to_string()
    }),
    ("audit: {path: FOLDER/a}", "audit: {path: FOLDER/b}", "audit: {}", true, layers),
    (
        "audit: {path: FOLDER/a}",
        "audit: {path: FOLDER/a, queue: 9}",
        "audit: {path: FOLDER/a, queue: 0}",
        true,
        layers,
    ),
    (
        "access_log: {path: FOLDER/a}",
        "access_log: {path: FOLDER/b}",
        "access_log: {}",
        true,
        layers,
    ),
    (
        "rate_limits: [{per: address, requests: 30}]\ntrusted_proxies: [127.0.0.1]",
        "rate_limits: [{per: address, requests: 30}]\ntrusted_proxies: [10.0.0.0/8]",
        "trusted_proxies: [proxy.example]",
        false,
        |gateway| {
            let left = |hop: &str| {
                let headers = [("x-forwarded-for", hop)];
                let reply = ask(gateway.addr(), "GET /x", &headers, b"");
                reply.header("x-ratelimit-remaining").map(str::to_owned)
            };
            // Two clients share a limit unless the proxy is trusted.
            (left("203.0.113.7") == left("203.0.113.8")).to_string()
        },
    ),
    ("", "tls: {cert: /none, key: /none}", "tls: {}", true, layers),
    ("server: {headers: 5}", "server: {headers: 50}", "server: {headers: 0}", false, |gateway| {
        status(gateway, "GET /x", &[("x-a", "1"); 20], "")
    }),
    (
        "server: {header_bytes: 8KiB}",
        "server: {header_bytes: 64KiB}",
        "server: {header_bytes: 1}",
        false,
        |gateway| status(gateway, "GET /x", &[("x-a", &"x".repeat(10_000))], ""),
    ),
    (
        "scrub: {}\nserver: {response_bytes: 5}",
        "scrub: {}\nserver: {response_bytes: 50}",
        "scrub: {}\nserver: {response_bytes: 0}",
        false,
        |gateway| status(gateway, "GET /up", &[], ""),
    ),
    ("faults: {delay: 300ms}", "faults: {delay: 0s}", "faults: {delay: late}", false, |gateway| {
        let begin = Instant::now();
        get(gateway.addr(), "/up");
        (begin.elapsed() >= Duration::from_millis(300)).to_string()
    }),
    (
        "rate_limits: [{per: address, requests: 1}]\nfaults: {limiter_open: true}",
        "rate_limits: [{per: address, requests: 1}]\nfaults: {limiter_open: false}",
        "faults: {limiter_open: 7}",
        false,
        |gateway| [(); 2].map(|()| status(gateway, "GET /x", &[], "")).concat(),
    ),
    (
        "policy: {endpoint: true}\nfaults: {policy_off: true}",
        "policy: {endpoint: true}\nfaults: {policy_off: false}",
        "policy: {endpoint: 3}",
        false,
        |gateway| status(gateway, "POST /api/request", &[], ATTACK),
    ),
    (
        "tenant: {required: true, header: x-org}",
        "tenant: {required: true, header: x-team}",
        "tenant: {header: content-length}",
        false,
        |gateway| status(gateway, "GET /x", &[("x-org", "a")], ""),
    ),
    (
        "tools: {local: [echo]}\nauth: {keys: [{name: a, key: k, scopes: [tools]}]}",
        "tools: {local: [echo]}\nauth: {keys: [{name: a, key: k, scopes: [chat]}]}",
        "tools: {local: [echo]}\nauth: {keys: [{name: a, key: ''}]}",
        false,
        |gateway| status(gateway, "GET /v1/mcp/tools", &[("authorization", "Bearer k")], ""),
    ),
    (
        "tools: {local: [echo], allow: {'*': ['local/*']}}",
        "tools: {local: [echo], allow: {'*': []}}",
        "tools: {local: [echo], allow: 3}",
        false,
        |gateway| {
            let call = r#"{"name":"echo","arguments":{"text":"hi"}}"#;
            status(gateway, "POST /v1/mcp/tools/call", &[], call)
        },
    ),
];

/// Whatever a reload says it did, an outside probe sees: a new start with the same file is what the
/// gateway must look like, or nothing may have changed.
#[test]
fn what_a_reload_claims_is_what_a_probe_sees() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("g.yaml");
    let up = fixed_upstream(
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 15\r\n\r\nann@example.com",
    );
    let write = |line: &str| {
        let text = format!(
            "listen: 127.0.0.1:0\nadmin: {{local: true}}\nupstreams: {{u: {{addresses: ['{up}']}}}}\n\
             routes: [{{name: x, path: /x, respond: {{}}}}, {{name: up, path: /up, upstream: u}}]\n{line}\n"
        );
        fs::write(&file, text.replace("FOLDER", &folder.path().display().to_string())).unwrap();
    };
    let mut seen = 0;
    for &(line, changed, broken, needs_restart, probe) in SETTINGS {
        for (from, to) in [(line, changed), (line, ""), ("", line), (line, broken)] {
            write(from);
            let gateway = Gateway::spawn_from(&Spec::open(&file).unwrap(), &file).unwrap();
            let before = probe(&gateway);
            write(to);
            let reloaded = gateway.reload();
            let fresh = Spec::open(&file).and_then(|spec| Gateway::spawn(&spec));
            let expected = match (&reloaded, &fresh) {
                (Ok(()), Ok(fresh)) => probe(fresh),
                (Ok(()), Err(error)) => panic!("{from} -> {to}: {error}"),
                (Err(_), _) => before,
            };
            assert_eq!(probe(&gateway), expected, "{from} -> {to}: {reloaded:?}");
            let is_refused = matches!(reloaded, Err(GatewayError::Restart(_)));
            // A line that says what is the default changes nothing.
            let is_default = [from, to].contains(&"workers: 1") && [from, to].contains(&"");
            assert!(
                to == broken || from == to || is_default || is_refused == needs_restart,
                "{from} -> {to}: {reloaded:?}"
            );
            assert!(to != broken || reloaded.is_err(), "{to}");
            seen += 1;
        }
    }
    assert_eq!(seen, 4 * SETTINGS.len());
}
