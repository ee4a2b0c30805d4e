//! The server, and what bad clients can do to it.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use plimsoll_export::{LiveMetrics, MetricsServer, Verdict};
use plimsoll_metrics::Snapshot;

use crate::support::{exchange, read, run, scrape};

fn server() -> (LiveMetrics, MetricsServer) {
    let live = LiveMetrics::default();
    live.begin(run());
    let server = MetricsServer::start(SocketAddr::from(([127, 0, 0, 1], 0)), live.clone()).unwrap();
    (live, server)
}

#[test]
fn metrics_are_at_one_path_and_only_to_be_read() {
    let (live, server) = server();
    let (head, body) = scrape(server.address());
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
    assert!(head.contains("connection: close"), "{head}");
    assert_eq!(*body, *live.page().0);
    read(&body);
    for (request, status) in [
        ("HEAD /metrics HTTP/1.1\r\nhost: h\r\n\r\n", "200"),
        ("GET /metrics?x=1 HTTP/1.0\r\n\r\n", "200"),
        ("GET / HTTP/1.1\r\nhost: h\r\n\r\n", "404"),
        ("PUT /metrics HTTP/1.1\r\nhost: h\r\ncontent-length: 0\r\n\r\n", "405"),
        ("nonsense\r\n\r\n", "400"),
    ] {
        let answer = exchange(server.address(), request);
        assert_eq!(answer.get(9..12), Some(status), "{request}: {answer}");
    }
    let long = format!("GET /metrics HTTP/1.1\r\nhost: {}\r\n\r\n", "h".repeat(40_000));
    let answer = exchange(server.address(), &long);
    assert!(!answer.contains(" 200 "), "{answer}");
}

#[test]
fn the_last_page_is_noticed_when_it_is_read() {
    let (live, server) = server();
    scrape(server.address());
    assert!(!server.final_page_was_read());
    live.end(&Snapshot::new(), Verdict::default());
    assert!(!server.final_page_was_read());
    exchange(server.address(), "GET / HTTP/1.1\r\nhost: h\r\n\r\n");
    assert!(!server.final_page_was_read(), "another page");
    scrape(server.address());
    assert!(server.final_page_was_read());
}

/// As many connections as there are slots say nothing. They are cut off, and others come through.
#[test]
fn silent_and_slow_clients_are_cut_off() {
    let (_, server) = server();
    let mut silent: Vec<_> =
        (0..16).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
    silent[0].write_all(b"GET /metrics HTTP/1.1\r\nhos").unwrap();
    assert!(scrape(server.address()).0.contains(" 200 "));
    for stream in &mut silent {
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut answer = Vec::new();
        // Zero bytes or an error: in any case the end, and no page.
        let _ = stream.read_to_end(&mut answer);
        assert!(!answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    }
}

#[test]
fn a_port_that_is_taken_is_an_error_and_one_that_was_given_back_is_not() {
    let (live, first) = server();
    let address = first.address();
    assert!(MetricsServer::start(address, live.clone()).is_err());
    drop(first);
    let again = (0..400).any(|_| {
        let started = MetricsServer::start(address, live.clone()).is_ok();
        if !started {
            pause();
        }
        started
    });
    assert!(again, "{address} is still taken");
}

#[expect(clippy::disallowed_methods, reason = "a test waits for another thread")]
fn pause() {
    std::thread::sleep(Duration::from_millis(10));
}
