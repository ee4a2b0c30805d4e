//! A client that sees every byte, with one connection per request.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// A response.
#[derive(Debug)]
pub(crate) struct ClientResponse {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    /// The chunks of a chunked body, or the body as one.
    pub(crate) chunks: Vec<Vec<u8>>,
    /// Whether the body was truncated.
    pub(crate) broken: bool,
}

impl ClientResponse {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn number(&self, name: &str) -> u64 {
        let value = self.header(name);
        value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name}: {self:?}"))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.chunks.concat()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text()).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The frames of an event stream.
    pub(crate) fn frames(&self) -> Vec<String> {
        self.text().split_inclusive("\n\n").map(str::to_owned).collect()
    }
}

/// A request that was sent: its response can be read, or the connection dropped.
pub(crate) struct PendingRequest(BufReader<TcpStream>);

/// Sends bytes as they are.
pub(crate) fn raw(addr: SocketAddr, bytes: &[u8]) -> PendingRequest {
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // A gateway that refuses early closes before all is written.
    let _ = stream.write_all(bytes);
    PendingRequest(BufReader::new(stream))
}

pub(crate) type Headers<'a> = &'a [(&'a str, &'a str)];

/// Sends a request.
pub(crate) fn send(
    addr: SocketAddr,
    line: &str,
    headers: Headers<'_>,
    body: &[u8],
) -> PendingRequest {
    let mut head = format!("{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let post = line.starts_with("POST");
    let typed = headers.iter().any(|(name, _)| *name == "content-type");
    if post && !typed {
        head.push_str("content-type: application/json\r\n");
    }
    if post {
        head.push_str(&format!("content-length: {}\r\n", body.len()));
    }
    raw(addr, &[head.as_bytes(), b"\r\n", body].concat())
}

/// Sends a request and reads the response.
pub(crate) fn ask(
    addr: SocketAddr,
    line: &str,
    headers: Headers<'_>,
    body: &[u8],
) -> ClientResponse {
    send(addr, line, headers, body).reply()
}

pub(crate) fn get(addr: SocketAddr, path: &str) -> ClientResponse {
    ask(addr, &format!("GET {path}"), &[], b"")
}

pub(crate) fn post(
    addr: SocketAddr,
    path: &str,
    headers: Headers<'_>,
    body: &Value,
) -> ClientResponse {
    ask(addr, &format!("POST {path}"), headers, body.to_string().as_bytes())
}

impl PendingRequest {
    pub(crate) fn reply(mut self) -> ClientResponse {
        let mut reply = self.head();
        let (chunks, whole) = self.body(&reply);
        (reply.chunks, reply.broken) = (chunks, !whole);
        reply
    }

    /// Reads status and headers only.
    pub(crate) fn head(&mut self) -> ClientResponse {
        let first = self.line();
        let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no response: {first:?}"));
        let mut headers = Vec::new();
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        ClientResponse { status, headers, chunks: Vec::new(), broken: false }
    }

    /// One chunk of a chunked body; `None` where it breaks off.
    pub(crate) fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = usize::from_str_radix(self.line().trim(), 16).ok()?;
        let mut chunk = vec![0; size + 2];
        self.0.read_exact(&mut chunk).ok()?;
        chunk.truncate(size);
        Some(chunk)
    }

    fn body(&mut self, head: &ClientResponse) -> (Vec<Vec<u8>>, bool) {
        if head.header("transfer-encoding").is_none() {
            let length = head.header("content-length").map_or(0, |length| length.parse().unwrap());
            let mut body = vec![0; length];
            let whole = self.0.read_exact(&mut body).is_ok();
            return (vec![body], whole);
        }
        let mut chunks = Vec::new();
        loop {
            match self.chunk() {
                Some(chunk) if chunk.is_empty() => return (chunks, true),
                Some(chunk) => chunks.push(chunk),
                None => return (chunks, false),
            }
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        let _ = self.0.read_line(&mut line);
        line.trim_end().to_owned()
    }
}
