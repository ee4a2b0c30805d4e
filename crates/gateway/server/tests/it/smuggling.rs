//! Requests that must not pass the gateway, sent byte for byte.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use plimsoll_gateway_server::{Gateway, GatewayError, Spec};

use super::support::raw::gateway;

/// The response to some bytes, after which the gateway closes the connection.
fn ask(addr: SocketAddr, bytes: &str) -> String {
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.write_all(bytes.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

const FIXED: &str = "routes: [{name: all, path: /*, respond: {body: reached}}]\nmetrics: {}\n";

#[test]
fn a_head_with_two_lengths_is_refused_and_one_length_is_not() {
    let gateway = gateway(FIXED);
    let head = "POST /x HTTP/1.1\r\nhost: x\r\nconnection: close\r\n";
    for (lengths, status) in [
        ("content-length: 5\r\ntransfer-encoding: chunked\r\n", "400"),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "400"),
        ("transfer-encoding: chunked\r\n", "200"),
    ] {
        let answer = ask(gateway.addr(), &format!("{head}{lengths}\r\n0\r\n\r\n"));
        assert_eq!(answer.get(9..12), Some(status), "{lengths}: {answer}");
        assert_eq!(answer.contains("reached"), status == "200", "{answer}");
    }
    let answer = ask(gateway.addr(), &format!("{head}content-length: 2\r\n\r\nok"));
    assert!(answer.contains("reached"), "{answer}");
}

#[test]
fn invalid_codings_and_contradicting_lengths_are_refused() {
    let gateway = gateway(FIXED);
    let head = "POST /x HTTP/1.1\r\nhost: x\r\n";
    for bad in [
        "content-length: 5\r\ncontent-length: 6\r\n\r\nhello",
        "content-length: -1\r\n\r\n",
        "transfer-encoding: gzip\r\n\r\n",
        "transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        "x y: z\r\n\r\n",
    ] {
        let answer = ask(gateway.addr(), &format!("{head}{bad}"));
        assert_eq!(answer.get(9..12), Some("400"), "{bad}: {answer}");
    }
}

#[test]
fn paths_with_dot_segments_are_refused() {
    let gateway = gateway(FIXED);
    for (path, status) in [
        ("/smoke/../admin/build", "400"),
        ("/smoke/%2e%2E/admin/build", "400"),
        ("/smoke/..%5cadmin", "400"),
        ("/smoke/a..b/.c", "200"),
    ] {
        let answer = ask(
            gateway.addr(),
            &format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"),
        );
        assert_eq!(answer.get(9..12), Some(status), "{path}: {answer}");
    }
}

#[test]
fn a_second_gateway_on_the_same_port_fails_to_start() {
    for workers in [1, 2] {
        let first = gateway(&format!("workers: {workers}"));
        for others in [1, 2] {
            let spec = format!("listen: {}\nworkers: {others}", first.addr());
            let second = Gateway::spawn(&Spec::from_yaml(&spec).unwrap());
            assert!(matches!(second, Err(GatewayError::Listen { .. })), "{workers}, {others}");
        }
    }
}

#[test]
fn a_websocket_upgrade_drops_the_clients_key_and_hop_by_hop_headers() {
    let upstream = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = upstream.local_addr().unwrap();
    let seen = thread::spawn(move || {
        let (mut stream, _) = upstream.accept().unwrap();
        let mut head = [0; 2_048];
        let length = stream.read(&mut head).unwrap();
        let switch =
            "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
        stream.write_all(switch.as_bytes()).unwrap();
        let mut echo = [0; 5];
        stream.read_exact(&mut echo).unwrap();
        stream.write_all(&echo).unwrap();
        String::from_utf8_lossy(&head[..length]).to_lowercase()
    });
    let gateway = gateway(&format!(
        "auth: {{header: apikey, keys: [{{name: a, key: client-secret}}]}}\n\
         upstreams: {{u: {{addresses: ['{addr}'], key: upstream-secret}}}}\n\
         routes: [{{name: ws, path: /ws/*, upstream: u, websocket: true}}]\n"
    ));
    let mut client = TcpStream::connect(gateway.addr()).unwrap();
    let request = "GET /ws/x HTTP/1.1\r\nhost: x\r\napikey: client-secret\r\nx-hop: 1\r\nconnection: upgrade\r\n\
                   connection: x-hop\r\nupgrade: websocket\r\nsec-websocket-key: abc\r\n\r\n";
    client.write_all(request.as_bytes()).unwrap();
    let mut answer = [0; 1_024];
    let length = client.read(&mut answer).unwrap();
    assert!(
        answer[..length].starts_with(b"HTTP/1.1 101"),
        "{:?}",
        String::from_utf8_lossy(&answer)
    );
    client.write_all(b"hello").unwrap();
    let mut echo = [0; 5];
    client.read_exact(&mut echo).unwrap();
    assert_eq!(&echo, b"hello");
    let head = seen.join().unwrap();
    assert!(head.contains("authorization: bearer upstream-secret"), "{head}");
    assert!(
        head.contains("upgrade: websocket") && head.contains("sec-websocket-key: abc"),
        "{head}"
    );
    assert!(!head.contains("client-secret") && !head.contains("x-hop"), "{head}");
}

/// Reads everything, and responds to requests without a body only.
fn serve_get(mut stream: TcpStream) {
    let mut heard = vec![0; 65_536];
    let length = stream.read(&mut heard).unwrap_or(0);
    if heard[..length].starts_with(b"GET ") {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    }
    while stream.read(&mut heard).is_ok_and(|length| length > 0) {}
}

#[test]
fn a_client_cannot_open_the_breaker_for_others() {
    let upstream = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = upstream.local_addr().unwrap();
    thread::spawn(move || {
        for stream in upstream.incoming() {
            thread::spawn(move || serve_get(stream.unwrap()));
        }
    });
    let gateway = gateway(&format!(
        "server: {{body_bytes: 1KiB}}\n\
         upstreams: {{u: {{addresses: ['{addr}'], breaker: {{failures: 2, open: 60s}}}}}}\n\
         routes: [{{name: all, path: /*, upstream: u}}]\n"
    ));
    let chunk = format!("400\r\n{}\r\n", "x".repeat(1_024));
    for _ in 0..4 {
        let head = "POST /x HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n";
        let mut client = TcpStream::connect(gateway.addr()).unwrap();
        client.write_all(format!("{head}{chunk}{chunk}").as_bytes()).unwrap();
        let mut status = [0; 12];
        client.read_exact(&mut status).unwrap();
        assert_eq!(&status, b"HTTP/1.1 413");
    }
    let answer = ask(gateway.addr(), "GET /x HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    assert!(answer.ends_with("ok"), "{answer}");
}
