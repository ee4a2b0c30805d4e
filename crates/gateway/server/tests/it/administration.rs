//! Administration, reloads of bad files, and errors that repeat no secret.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::IpAddr;
use std::time::Duration;

use plimsoll_gateway_server::{Gateway, Spec};

use super::support::client::{Headers, ask, get};
use super::support::gateway;

const SECRET: &str = "S3cr3t-Value";

/// An address of this machine that is not its loopback; `None` where there is none.
fn outer_address() -> Option<IpAddr> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    // No packet is sent: this only chooses a route.
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback() && !address.is_unspecified()).then_some(address)
}

const PAGES: [&str; 3] = ["GET /admin/build", "POST /admin/reload", "GET /metrics"];

#[test]
fn only_this_machine_or_the_key_administrates() {
    let open = gateway("");
    for page in PAGES {
        assert_ne!(ask(open.addr(), page, &[], b"").status, 403, "{page}");
        let named = format!("{page} HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n");
        let rebound = super::support::client::raw(open.addr(), named.as_bytes()).reply();
        assert_eq!(rebound.status, 403, "{page}: another name for this machine");
        for name in ["x-forwarded-for", "forwarded", "via", "origin", "sec-fetch-site"] {
            assert_eq!(ask(open.addr(), page, &[(name, "x")], b"").status, 403, "{page} {name}");
        }
    }
    let keyed = gateway("admin: {key: sesame}");
    let cases: [(Headers<'_>, u16); 3] = [
        (&[], 401),
        (&[("authorization", "Bearer wrong")], 403),
        (&[("authorization", "Bearer sesame")], 200),
    ];
    for (headers, status) in cases {
        for page in [PAGES[0], PAGES[2]] {
            assert_eq!(ask(keyed.addr(), page, headers, b"").status, status, "{page} {headers:?}");
        }
    }
    let shown = gateway("admin: {enabled: false}");
    assert_eq!(get(shown.addr(), "/admin/build").status, 404);
}

#[test]
fn an_address_of_its_own_answers_when_all_connections_are_taken() {
    let gateway = gateway("admin: {listen: '127.0.0.1:0'}\nserver: {connections: 1}");
    let admin = gateway.admin_addr().unwrap();
    let held = std::net::TcpStream::connect(gateway.addr()).unwrap();
    let mut waiting = std::net::TcpStream::connect(gateway.addr()).unwrap();
    waiting.write_all(b"GET /health/live HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    waiting.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert!(waiting.read(&mut [0; 1]).is_err(), "the only connection is taken");
    for page in ["/health", "/health/live", "/health/ready", "/metrics", "/admin/build"] {
        assert_eq!(get(admin, page).status, 200, "{page}");
    }
    for page in ["GET /api/request", "POST /v1/chat/completions", "GET /"] {
        assert_eq!(ask(admin, page, &[], b"").status, 404, "{page} is for clients");
    }
    drop((held, waiting));
    // Where the administration has an address of its own, clients do not reach it.
    for page in PAGES {
        assert_eq!(ask(gateway.addr(), page, &[], b"").status, 404, "{page}");
    }
    assert_eq!(get(gateway.addr(), "/health").status, 200);
}

#[test]
fn a_client_from_another_address_is_refused() {
    let Some(address) = outer_address() else { return };
    for (metrics, status) in [("{}", 403), ("{open: true}", 200)] {
        let spec = format!("listen: '0.0.0.0:0'\nadmin: {{}}\nmetrics: {metrics}");
        let gateway = Gateway::spawn(&Spec::from_yaml(&spec).unwrap()).unwrap();
        let from_outside = (address, gateway.addr().port()).into();
        for page in [PAGES[0], PAGES[1]] {
            assert_eq!(ask(from_outside, page, &[], b"").status, 403, "{page}");
        }
        assert_eq!(get(from_outside, "/metrics").status, status, "metrics: {metrics}");
        assert_eq!(get(from_outside, "/health").status, 200);
    }
}

const GOOD: &str = "listen: 127.0.0.1:0\nadmin: {local: true}\nroutes: [{name: r, path: /x, respond: {body: here}}]\n";

/// Files that cannot be configurations, each with the secret somewhere.
const BAD_FILES: [&str; 14] = [
    "",
    "\n  \n",
    "# S3cr3t-Value\n---\n",
    "S3cr3t-Value",
    "{}",
    "listen: 127.0.0.1:0\n",
    "auth: {keys: [{name: a, key: S3cr3t-Value}]\nroutes: [",
    "auth: {keys: [{name: a, key:S3cr3t-Value}]}\n",
    "auth: {keys: S3cr3t-Value}\n",
    "workers: S3cr3t-Value\n",
    "server: {body_timeout: S3cr3t-Value, body_bytes: S3cr3t-Value}\n",
    "envelope: S3cr3t-Value\n",
    "upstreams: {u: {addresses: ['http://u:S3cr3t-Value@host']}}\nroutes: [{name: r, path: /x, upstream: u}]\n",
    "name: \"S3cr3t-Value\n  key: *S3cr3t\n\tx",
];

/// A proxy on this machine passes everybody's requests on as its own: who connects says nothing.
#[test]
fn without_a_key_or_an_address_of_its_own_administration_is_closed() {
    let sections = "admin: {}\nmetrics: {}\ntenant: {}\nbudgets: {default: 5}\n\
                    tools: {local: [add], allow: {'*': [add]}}";
    let gateway = gateway(&sections.replace("metrics: {}\n", ""));
    let lines = ["GET /admin/build", "POST /admin/reload", "GET /metrics", "GET /v1/mcp/servers"];
    for line in lines {
        let reply = ask(gateway.addr(), line, &[], b"{}");
        assert_eq!(reply.status, 403, "{line}: {reply:?}");
    }
    for line in ["GET /v1/budget/a", "GET /v1/policies/a"] {
        assert_eq!(ask(gateway.addr(), line, &[], b"").status, 403, "{line}");
    }
}

#[test]
fn a_bad_file_changes_nothing_and_its_error_repeats_nothing_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("g.yaml");
    fs::write(&file, GOOD).unwrap();
    let gateway = Gateway::spawn_from(&Spec::open(&file).unwrap(), &file).unwrap();
    for text in BAD_FILES {
        fs::write(&file, text).unwrap();
        let reply = ask(gateway.addr(), "POST /admin/reload", &[], b"");
        let shown = reply.text();
        assert_eq!(reply.status, 400, "{text:?}: {shown}");
        let names_place = shown.contains("line ") || !text.contains('\n') || text.len() > 50;
        assert!(names_place || shown.contains("no routes"), "{text:?}: {shown}");
        for hidden in ["S3cr3t", "g.yaml", "auth", "keys", "workers:"] {
            assert!(!shown.contains(hidden), "{text:?}: {shown}");
        }
        let error = gateway.reload().unwrap_err().to_string();
        assert!(!error.contains("S3cr3t"), "{text:?}: {error}");
        assert_eq!(get(gateway.addr(), "/x").text(), "here", "{text:?}");
    }
    fs::write(&file, GOOD.replace("here", "there")).unwrap();
    assert_eq!(ask(gateway.addr(), "POST /admin/reload", &[], b"").status, 200);
    assert_eq!(get(gateway.addr(), "/x").text(), "there");
}

#[test]
fn errors_of_settings_name_paths_and_no_values() {
    for overrides in [
        vec![format!("auth.key={SECRET}"), "bogus=1".to_owned()],
        vec![format!("workers={SECRET}")],
        vec![format!("server.body_timeout={SECRET}")],
        vec![format!("envelope={SECRET}")],
        vec![format!("name.x={SECRET}")],
        vec![format!("auth=[{SECRET}")],
        vec![SECRET.to_owned()],
    ] {
        let text = "name: a\nmetrics: {}\n";
        let error = Spec::with_overrides(text, &overrides).unwrap_err().to_string();
        assert!(!error.contains(SECRET), "{overrides:?}: {error}");
        let path = overrides[0].split_once('=').map(|(path, _)| path);
        let named = path.is_none_or(|path| error.contains(path) || error.contains("bogus"));
        assert!(named, "{overrides:?}: {error}");
    }
}

#[test]
fn an_address_with_a_password_is_never_shown() {
    for sections in [
        format!("store: {{redis: 'redis://u:{SECRET}@127.0.0.1:1:2:3'}}"),
        format!("store: {{redis: 'http://u:{SECRET}@host'}}"),
        format!("audit: {{clickhouse: 'ftp://u:{SECRET}@host'}}"),
        format!("upstreams: {{u: {{addresses: ['u:{SECRET}@host:80']}}}}"),
        format!("auth: {{header: '{SECRET} x', keys: []}}"),
        format!("request_id: {{header: '{SECRET} x'}}"),
    ] {
        let spec = Spec::from_yaml(&format!("listen: 127.0.0.1:0\n{sections}")).unwrap();
        let error = Gateway::spawn(&spec).unwrap_err();
        assert!(!format!("{error} {error:?}").contains(SECRET), "{sections}: {error:?}");
        assert!(
            !format!("{spec:?}").contains(&format!("u:{SECRET}")) || sections.contains("upstr")
        );
    }
}
