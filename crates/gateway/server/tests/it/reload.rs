//! Reloads of the configuration under load.

use std::fs;
use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use plimsoll_gateway_server::{Gateway, Spec};

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
    // What a start is not needed for is applied, the end of the cache included.
    for (old, new) in [("cache: {bytes: 1MiB}\n", ""), ("drain: 1s", "drain: 2s, body_bytes: 9")] {
        write(old, new);
        assert_eq!(ask(gateway.addr(), "POST /admin/reload", &[], b"").status, 200, "{new}");
        assert_eq!(get(gateway.addr(), "/x").text(), "there");
    }
}
