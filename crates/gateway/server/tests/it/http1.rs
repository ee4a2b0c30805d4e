//! HTTP/1.1: time limits, methods, malformed heads.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use super::support::raw::{
    connect, fixed_upstream, gateway, get, head, header, proxy, read_to_end, send_raw, upstream,
};

#[test]
fn a_client_that_sends_nothing_or_stops_is_disconnected() {
    let gateway = gateway("server: {header_timeout: 200ms}");
    let begins = ["", "P", "PRI * HT", "GET / HT", "GET /health/live HTTP/1.1\r\nhost: x\r\n"];
    let mut streams = begins.map(|begin| {
        let mut stream = connect(&gateway);
        stream.write_all(begin.as_bytes()).unwrap();
        stream
    });
    let begun = Instant::now();
    for (stream, begin) in streams.iter_mut().zip(begins) {
        assert_eq!(read_to_end(stream), "", "{begin:?}");
    }
    // The test's own time limit would be twenty seconds.
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[test]
fn an_idle_connection_is_closed() {
    let gateway = gateway("server: {header_timeout: 200ms}");
    let mut stream = connect(&gateway);
    for _ in 0..3 {
        stream.write_all(b"GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
        let answer = head(&mut stream).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        stream.read_exact(&mut [0; 14]).unwrap();
    }
    assert_eq!(read_to_end(&mut stream), "");
}

#[test]
fn the_first_bytes_may_arrive_one_by_one() {
    let gateway = gateway("");
    for text in ["GET /health/live HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"] {
        let mut stream = connect(&gateway);
        for byte in text.as_bytes() {
            stream.write_all(&[*byte]).unwrap();
        }
        assert!(read_to_end(&mut stream).ends_with("{\"alive\":true}"));
    }
}

#[test]
fn an_unknown_path_gets_404_for_every_method() {
    let gateway = gateway("");
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
        for path in ["/nope", "/health/nope", "/admin/nope"] {
            let request = format!(
                "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
            );
            let answer = send_raw(&gateway, request);
            assert!(answer.starts_with("HTTP/1.1 404"), "{method} {path}: {answer}");
            assert_eq!(header(&answer, "allow"), None, "{method} {path}: {answer}");
        }
    }
}

#[test]
fn a_wrong_method_gets_405_with_the_allowed_ones() {
    for sections in ["", "metrics: {}", "request_id: {}", "faults: {delay: 1ms}"] {
        let gateway = gateway(sections);
        for (line, allow) in [
            ("POST /health/live", "GET, HEAD"),
            ("DELETE /health", "GET, HEAD"),
            ("PUT /admin/build", "GET, HEAD"),
            ("GET /admin/reload", "POST"),
        ] {
            let request = format!(
                "{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
            );
            let answer = send_raw(&gateway, request);
            assert!(answer.starts_with("HTTP/1.1 405"), "{sections} {line}: {answer}");
            assert_eq!(header(&answer, "allow"), Some(allow), "{sections} {line}: {answer}");
        }
        let head = send_raw(
            &gateway,
            "HEAD /health/live HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
        );
        assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"), "{head}");
    }
}

#[test]
fn an_injected_delay_applies_to_the_fast_path() {
    let gateway = gateway("faults: {delay: 30ms}");
    let begun = Instant::now();
    assert!(get(&gateway, "/health/live").starts_with("HTTP/1.1 200"));
    assert!(begun.elapsed() >= Duration::from_millis(30));
}

/// Heads that hyper refuses by itself, and the status.
fn unreadable() -> Vec<(String, &'static str)> {
    let many: String = "x-y: z\r\n".repeat(100);
    vec![
        ("G\u{7f}T / HTTP/1.1\r\nhost: x\r\n\r\n".to_owned(), "400"),
        ("GET / HTTP/1.1\r\nhost x\r\n\r\n".to_owned(), "400"),
        ("GET / HTTP/9.9\r\nhost: x\r\n\r\n".to_owned(), "400"),
        ("POST / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n".to_owned(), "400"),
        ("POST / HTTP/1.1\r\ntransfer-encoding: gzip\r\n\r\n".to_owned(), "400"),
        (format!("GET / HTTP/1.1\r\nhost: x\r\n{many}\r\n"), "431"),
        (format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(40_000)), "431"),
    ]
}

#[test]
fn a_malformed_head_is_refused_in_the_configured_format() {
    for (envelope, kind) in [("typed", "application/json"), ("plain", "text/plain; charset=utf-8")]
    {
        let gateway = gateway(&format!("envelope: {envelope}"));
        let first = "GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n";
        for (request, status) in unreadable() {
            let answer = send_raw(&gateway, &request);
            assert_eq!(answer.get(9..12), Some(status), "{request:.80}: {answer}");
            assert_eq!(header(&answer, "content-type"), Some(kind), "{request:.80}: {answer}");
            let body = answer.split_once("\r\n\r\n").unwrap().1;
            assert_eq!(header(&answer, "content-length"), Some(&*body.len().to_string()));
            assert_eq!(body.starts_with("{\"error\":{"), envelope == "typed", "{body}");
            // The same after a response on the same connection.
            let mut stream = connect(&gateway);
            stream.write_all(first.as_bytes()).unwrap();
            head(&mut stream).unwrap();
            stream.read_exact(&mut [0; 14]).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            assert!(read_to_end(&mut stream).ends_with(body), "{request:.80}");
        }
    }
}

#[test]
fn an_empty_400_of_the_upstream_is_not_replaced() {
    let up = fixed_upstream("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nx-own: yes\r\n\r\n");
    let answer = get(&proxy(up, "", ""), "/x");
    assert_eq!(header(&answer, "x-own"), Some("yes"));
    assert!(answer.ends_with("\r\n\r\n"), "{answer}");
}

#[test]
fn a_slow_body_gets_408_and_a_slow_server_504() {
    let reading = upstream(|mut stream| drop(std::io::copy(&mut stream, &mut std::io::sink())));
    let start = "POST /x HTTP/1.1\r\nhost: x\r\nconnection: close\r\n";
    let chunked = format!("{start}transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n");
    let sized = format!("{start}content-length: 100000\r\n\r\nabc");
    let small = format!("{start}content-length: 100\r\n\r\nabc");
    for (upstream, server) in
        [("timeout: 10s", "body_timeout: 200ms"), ("timeout: 200ms", "body_timeout: 500ms")]
    {
        let gateway = proxy(reading, upstream, &format!("server: {{{server}}}"));
        for request in [&chunked, &sized, &small] {
            let answer = send_raw(&gateway, request);
            assert!(answer.starts_with("HTTP/1.1 408"), "{upstream}: {request}: {answer}");
        }
    }
    let gateway = proxy(reading, "timeout: 200ms", "server: {body_timeout: 10s}");
    let answer = send_raw(&gateway, format!("{chunked}0\r\n\r\n"));
    assert!(answer.starts_with("HTTP/1.1 504"), "{answer}");
}
