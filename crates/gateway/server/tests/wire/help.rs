//! Gateways, upstreams and raw clients.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::{self, sleep};
use std::time::Duration;

use plimsoll_gateway_server::{Gateway, Spec};

pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";

/// No test waits longer for an answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// A gateway with these sections.
pub(crate) fn gateway(sections: &str) -> Gateway {
    let yaml = format!("listen: 127.0.0.1:0\n{sections}");
    let spec = Spec::from_yaml(&yaml).unwrap_or_else(|error| panic!("{error}\n{yaml}"));
    Gateway::spawn(&spec).unwrap_or_else(|error| panic!("{error}\n{yaml}"))
}

/// A gateway that passes everything on.
pub(crate) fn proxy(upstream: SocketAddr, settings: &str, sections: &str) -> Gateway {
    gateway(&format!(
        "upstreams: {{u: {{addresses: ['{upstream}'], {settings}}}}}\n\
         routes: [{{name: all, path: /*, upstream: u}}]\n{sections}"
    ))
}

/// An upstream: `serve` gets each connection, in a thread of its own.
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

/// An upstream that says the same to every head; bodies of requests it does not read.
pub(crate) fn saying(answer: &'static str) -> SocketAddr {
    upstream(move |mut stream| {
        while head(&mut stream).is_some() {
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    })
}

/// The head of a message, byte by byte so that nothing behind it is taken.
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

/// All that comes until the connection ends. It must end.
pub(crate) fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    if let Err(error) = stream.read_to_end(&mut bytes) {
        let waited = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
        assert!(!waited, "the connection stays open");
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What is answered to these bytes, until the connection ends.
pub(crate) fn exchange(gateway: &Gateway, bytes: impl AsRef<[u8]>) -> String {
    let mut stream = connect(gateway);
    // One that refuses early closes before all is written.
    let _ = stream.write_all(bytes.as_ref());
    rest(&mut stream)
}

pub(crate) fn get(gateway: &Gateway, path: &str) -> String {
    exchange(gateway, format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"))
}

/// The value of a header of an answer.
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
    assert!(held, "never: {what}");
}

/// Client connections that are open, as the gateway counts them, the one that asks left out.
pub(crate) fn open(gateway: &Gateway) -> i64 {
    let text = get(gateway, "/metrics");
    let line = text.lines().find_map(|line| line.strip_prefix("gateway_active_connections "));
    line.unwrap().parse::<i64>().unwrap() - 1
}
