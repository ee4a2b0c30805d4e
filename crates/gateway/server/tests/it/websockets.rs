//! `WebSocket`s are connections like all others: counted, and closed when nothing passes.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};

use plimsoll_gateway_server::Gateway;

use super::support::raw::{connect, eventually, gateway, head, open_connections, upstream};

const OPEN: &str =
    "GET /ws/a HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";

/// Switches protocols, and sends back what it gets.
fn echo() -> SocketAddr {
    upstream(|mut stream| {
        if head(&mut stream).is_none() {
            return;
        }
        let agree =
            "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
        stream.write_all(agree.as_bytes()).unwrap();
        let mut back = stream.try_clone().unwrap();
        let _ = std::io::copy(&mut stream, &mut back);
    })
}

fn sockets(server: &str) -> Gateway {
    gateway(&format!(
        "metrics: {{}}\nserver: {{{server}}}\nupstreams: {{u: {{addresses: ['{}']}}}}\n\
         routes: [{{name: ws, path: /ws/*, upstream: u, websocket: true}}]",
        echo()
    ))
}

fn open(gateway: &Gateway) -> TcpStream {
    let mut client = connect(gateway);
    client.write_all(OPEN.as_bytes()).unwrap();
    assert!(head(&mut client).unwrap().starts_with("HTTP/1.1 101"));
    client
}

fn passes(client: &mut TcpStream) {
    client.write_all(b"ping").unwrap();
    let mut back = [0; 4];
    client.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"ping");
}

#[test]
fn they_count_among_the_connections() {
    let gateway = sockets("connections: 1");
    let mut socket = open(&gateway);
    passes(&mut socket);
    let mut other = connect(&gateway);
    other.write_all(b"GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    other.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let early = other.read(&mut [0; 1]).unwrap_err();
    assert!(matches!(early.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{early}");
    drop(socket);
    other.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert!(head(&mut other).unwrap().starts_with("HTTP/1.1 200"));
}

#[test]
fn one_on_which_nothing_passes_is_closed() {
    let gateway = sockets("websocket_timeout: 1s");
    let mut busy = open(&gateway);
    let mut idle = open(&gateway);
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(3) {
        passes(&mut busy);
        sleep(Duration::from_millis(50));
    }
    assert!(matches!(idle.read(&mut [0; 1]), Ok(0) | Err(_)), "the idle one");
    passes(&mut busy);
    drop(busy);
    eventually("none is left", || open_connections(&gateway) == 0);
}

#[test]
fn a_stopping_gateway_does_not_wait_for_them() {
    let mut gateway = sockets("drain: 60s");
    let mut socket = open(&gateway);
    passes(&mut socket);
    let begin = Instant::now();
    gateway.shutdown();
    assert!(begin.elapsed() < Duration::from_secs(30));
    assert!(matches!(socket.read(&mut [0; 1]), Ok(0) | Err(_)));
}
