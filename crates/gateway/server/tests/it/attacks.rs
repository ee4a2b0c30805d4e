//! Attacks over sockets: what each gets, and what the upstream saw of it.
//!
//! The tables are in the modules. Truth is the upstream's own log of whole heads. `@` in a table
//! stands for the headers of an honest guest: host and key.

mod agents;
mod framing;
mod headers;
mod hosts;
mod http2;
mod methods;
mod paths;

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_gateway_server::Gateway;

use super::support::raw::{connect, gateway, head, upstream};
use super::support::sleep_ms;

const GUEST: &str = "host: gateway\r\napikey: guest-key\r\n";

/// A gateway with a rule on one prefix, and the upstream behind it.
pub(super) struct Range {
    pub(super) gateway: Gateway,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Range {
    pub(super) fn new() -> Self {
        let heads = Arc::<Mutex<Vec<String>>>::default();
        let log = Arc::clone(&heads);
        let up = upstream(move |stream| serve(stream, &log));
        let gateway = gateway(&format!(
            "auth: {{header: apikey, keys: [{{name: owner, key: owner-key, tenant: a}}, \
                                            {{name: guest, key: guest-key, tenant: b}}]}}\n\
             tenant: {{}}\nrequest_id: {{}}\n\
             upstreams: {{u: {{addresses: ['{up}']}}}}\n\
             routes:\n\
             - {{name: private, path: /files/private/*, upstream: u, consumers: [owner]}}\n\
             - {{name: files, path: /files/*, upstream: u}}\n\
             - {{name: ws, path: /ws/*, upstream: u, websocket: true}}\n\
             - {{name: stripped, path: /strip/*, strip: /strip, upstream: u}}\n\
             agents: {{agents: {{known: {{planner: {{url: 'http://{up}/agent'}}, \
                                          private: {{url: 'http://{up}/private'}}}}, \
                                 allow: {{a: ['*'], b: [planner]}}}}}}\n"
        ));
        Self { gateway, heads }
    }

    /// The heads of whole requests that the upstream saw since the last call.
    pub(super) fn seen(&self) -> Vec<String> {
        std::mem::take(&mut *self.heads.lock().unwrap())
    }

    /// Sends bytes, and reads until the connection ends. The status of the first response, 0 for
    /// none.
    fn send(&self, bytes: &[u8]) -> u16 {
        let asked = bytes.windows(8).filter(|part| part.starts_with(b" HTTP/1.")).count();
        let mut stream = connect(&self.gateway);
        // A gateway that refuses early closes before all is written.
        let _ = stream.write_all(bytes);
        stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        let mut answer = Vec::new();
        let mut part = [0; 4_096];
        let mut patience = 40;
        loop {
            match stream.read(&mut part) {
                Ok(0) => break,
                Ok(length) => answer.extend_from_slice(&part[..length]),
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    // After an answer the connection is idle, or half a request waits for its rest.
                    let _ = stream.shutdown(Shutdown::Write);
                    patience -= 1;
                    assert!(patience > 0, "the connection hangs");
                }
                Err(_) => break,
            }
            if responses(&answer) >= asked {
                // Only the end follows.
                let _ = stream.shutdown(Shutdown::Write);
            }
        }
        let text = String::from_utf8_lossy(&answer);
        text.get(9..12).and_then(|status| status.parse().ok()).unwrap_or(0)
    }

    /// Runs a table.
    pub(super) fn run(&self, cases: &[Case<'_>]) {
        for (what, request, status, lines) in cases {
            self.run_one(what, request, *status, lines);
        }
        self.settle();
    }

    /// Sends a request; compares its status, and the request lines that the upstream saw.
    pub(super) fn run_one(&self, what: &str, request: &str, status: u16, lines: &[&str]) {
        // A table writes its own `@` as a control character.
        let bytes = request.replace('@', GUEST).replace('\u{1}', "@");
        let found = self.send(bytes.as_bytes());
        let seen = self.seen();
        let seen: Vec<_> = seen.iter().map(|head| first_line(head)).collect();
        assert_eq!((found, &*seen), (status, lines), "{what}: {bytes:?}");
    }

    /// The upstream receives nothing later.
    pub(super) fn settle(&self) {
        sleep_ms(50);
        assert_eq!(self.seen(), Vec::<String>::new(), "nothing comes late");
    }
}

/// Name of the attack, its bytes, the status, and the requests that reached the upstream.
pub(super) type Case<'a> = (&'a str, &'a str, u16, &'a [&'a str]);

fn responses(answer: &[u8]) -> usize {
    answer.windows(9).filter(|part| *part == b"HTTP/1.1 ").count()
}

fn first_line(head: &str) -> &str {
    let line = head.lines().next().unwrap_or_default();
    line.strip_suffix(" HTTP/1.1").unwrap_or(line)
}

/// Logs and answers requests; bodies have a length or are chunked.
fn serve(mut stream: TcpStream, log: &Mutex<Vec<String>>) {
    while let Some(head) = head(&mut stream) {
        let lower = head.to_ascii_lowercase();
        let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.map_or(0, |length| length.trim().parse().unwrap())];
        let is_whole = if lower.contains("\r\ntransfer-encoding: chunked") {
            last_chunk(&mut stream)
        } else {
            stream.read_exact(&mut body).is_ok()
        };
        // Incomplete requests are not requests.
        if !is_whole {
            return;
        }
        log.lock().unwrap().push(head);
        let answer: &[u8] = if lower.contains("\r\nupgrade: websocket") {
            b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"
        } else {
            b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
        };
        if stream.write_all(answer).is_err() {
            return;
        }
    }
}

fn last_chunk(stream: &mut TcpStream) -> bool {
    let (mut text, mut byte) = (Vec::new(), [0]);
    while !text.ends_with(b"0\r\n\r\n") {
        if stream.read_exact(&mut byte).is_err() {
            return false;
        }
        text.push(byte[0]);
    }
    true
}

#[test]
fn the_suite_has_two_hundred_cases() {
    let count = paths::CASES.len()
        + framing::CASES.len()
        + hosts::CASES.len()
        + methods::CASES.len()
        + headers::CASES.len()
        + agents::CASES.len()
        + http2::CASES.len();
    assert!(count >= 200, "{count}");
}
