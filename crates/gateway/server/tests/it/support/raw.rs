//! Upstreams and clients that read and write raw bytes.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::{self, sleep};
use std::time::Duration;

use plimsoll_gateway_server::{Gateway, Spec};

pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";

/// No test waits longer for a response.
const PATIENCE: Duration = Duration::from_secs(20);

/// A gateway with these sections.
pub(crate) fn gateway(sections: &str) -> Gateway {
    let open = if sections.contains("admin:") { "" } else { "admin: {local: true}\n" };
    let yaml = format!("listen: 127.0.0.1:0\n{open}{sections}");
    let spec = Spec::from_yaml(&yaml).unwrap_or_else(|error| panic!("{error}\n{yaml}"));
    Gateway::spawn(&spec).unwrap_or_else(|error| panic!("{error}\n{yaml}"))
}

/// A gateway that forwards everything to one upstream.
pub(crate) fn proxy(upstream: SocketAddr, settings: &str, sections: &str) -> Gateway {
    gateway(&format!(
        "upstreams: {{u: {{addresses: ['{upstream}'], {settings}}}}}\n\
         routes: [{{name: all, path: /*, upstream: u}}]\n{sections}"
    ))
}

/// An upstream: `serve` runs for each connection, in its own thread.
pub(crate) fn upstream(serve: impl Fn(TcpStream) + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = serve.clone();
            thread::spawn(move || serve(stream));
        }
    });
    addr
}

/// An upstream that answers every head with the same response; it does not read bodies.
pub(crate) fn fixed_upstream(response: &'static str) -> SocketAddr {
    upstream(move |mut stream| {
        while head(&mut stream).is_some() {
            if stream.write_all(response.as_bytes()).is_err() {
                return;
            }
        }
    })
}

/// Reads the head of a message, byte by byte so that nothing behind it is read.
pub(crate) fn head(stream: &mut TcpStream) -> Option<String> {
    let (mut text, mut byte) = (String::new(), [0]);
    while !text.ends_with("\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        text.push(char::from(byte[0]));
    }
    Some(text)
}

pub(crate) fn connect(gateway: &Gateway) -> TcpStream {
    let stream = TcpStream::connect(gateway.addr()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Reads until the connection ends; it must end.
pub(crate) fn read_to_end(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    if let Err(error) = stream.read_to_end(&mut bytes) {
        let timed_out = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
        assert!(!timed_out, "the connection stays open");
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Sends bytes, and reads until the connection ends.
pub(crate) fn send_raw(gateway: &Gateway, bytes: impl AsRef<[u8]>) -> String {
    let mut stream = connect(gateway);
    // A gateway that refuses early closes before all is written.
    let _ = stream.write_all(bytes.as_ref());
    read_to_end(&mut stream)
}

pub(crate) fn get(gateway: &Gateway, path: &str) -> String {
    send_raw(
        gateway,
        format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"),
    )
}

/// The value of a header of a response.
pub(crate) fn header<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    let (head, _) = answer.split_once("\r\n\r\n")?;
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let held = (0..1_000).any(|_| {
        let held = holds();
        if !held {
            sleep(Duration::from_millis(10));
        }
        held
    });
    assert!(held, "it never happened: {what}");
}

/// The gateway's count of open client connections, without the one that asks.
pub(crate) fn open_connections(gateway: &Gateway) -> i64 {
    let text = get(gateway, "/metrics");
    let line = text.lines().find_map(|line| line.strip_prefix("gateway_active_connections "));
    line.unwrap().parse::<i64>().unwrap() - 1
}
