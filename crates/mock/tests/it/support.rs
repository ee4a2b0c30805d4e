//! Test support: a small HTTP/1.1 client, which shares no code with the mock.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use plimsoll_mock::{LogRecord, Mock, MockConfig};
use serde_json::Value;

/// Starts a mock on a free port.
pub(crate) fn spawn(yaml: &str) -> Mock {
    let config = MockConfig::from_yaml(yaml).unwrap();
    Mock::spawn(&config, SocketAddr::from(([127, 0, 0, 1], 0))).unwrap()
}

/// Shuts a mock down and returns its log in the order of the requests.
pub(crate) fn finish(mut mock: Mock) -> Vec<LogRecord> {
    mock.shutdown();
    let mut log = mock.take_log();
    log.sort_by_key(|record| record.sequence);
    log
}

/// A chat of one message; `extra` are further members, each with a comma before it.
pub(crate) fn chat(text: &str, extra: &str) -> String {
    format!(r#"{{"model":"m","messages":[{{"role":"user","content":"{text}"}}]{extra}}}"#)
}

/// Waits until a condition holds, for some seconds at most.
pub(crate) fn wait(mut until: impl FnMut() -> bool) {
    let start = Instant::now();
    while !until() {
        assert!(start.elapsed() < Duration::from_secs(5), "the condition never held");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A response, as far as it came.
#[derive(Debug, Default)]
pub(crate) struct Response {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Vec<u8>,
    /// The time of each read of the body, and the number of HTTP chunks that it completed.
    pub(crate) reads: Vec<(Instant, usize)>,
    /// Whether the body ended properly.
    pub(crate) complete: bool,
    pub(crate) error: Option<io::ErrorKind>,
}

impl Response {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .into_iter()
            .find(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Client {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(mock: &Mock) -> Self {
        let stream = TcpStream::connect(mock.addr()).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        Self { stream, unread: Vec::new() }
    }

    pub(crate) fn post(&mut self, path: &str, headers: &[(&str, &str)], body: &str) -> Response {
        self.send_post(path, headers, body);
        self.response()
    }

    pub(crate) fn get(&mut self, path: &str) -> Response {
        self.send(&format!("GET {path} HTTP/1.1\r\nhost: mock\r\n\r\n"));
        self.response()
    }

    pub(crate) fn send_post(&mut self, path: &str, headers: &[(&str, &str)], body: &str) {
        let lines: String =
            headers.iter().flat_map(|(name, value)| [*name, ": ", *value, "\r\n"]).collect();
        let length = body.len();
        self.send(&format!(
            "POST {path} HTTP/1.1\r\nhost: mock\r\n{lines}content-length: {length}\r\n\r\n{body}"
        ));
    }

    pub(crate) fn send(&mut self, bytes: &str) {
        self.stream.write_all(bytes.as_bytes()).unwrap();
    }

    /// Reads one response, as far as it comes.
    pub(crate) fn response(&mut self) -> Response {
        let mut response = Response::default();
        if let Err(error) = self.try_response(&mut response) {
            response.error = Some(error.kind());
        }
        response
    }

    fn try_response(&mut self, response: &mut Response) -> io::Result<()> {
        response.head = self.head()?;
        response.status = response.head.split(' ').nth(1).unwrap().parse().unwrap();
        match response.header("content-length").map(|length| length.parse().unwrap()) {
            Some(length) => self.sized(response, length)?,
            None => self.chunked(response)?,
        }
        response.complete = true;
        Ok(())
    }

    fn more(&mut self) -> io::Result<()> {
        let mut buffer = [0; 16_384];
        match self.stream.read(&mut buffer)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                self.unread.extend_from_slice(&buffer[..read]);
                Ok(())
            }
        }
    }

    fn head(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = self.unread.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                let head: Vec<u8> = self.unread.drain(..end + 4).collect();
                return Ok(String::from_utf8(head).unwrap());
            }
            self.more()?;
        }
    }

    fn sized(&mut self, response: &mut Response, length: usize) -> io::Result<()> {
        loop {
            let take = self.unread.len().min(length - response.body.len());
            response.body.extend(self.unread.drain(..take));
            response.reads.push((Instant::now(), 0));
            if response.body.len() == length {
                return Ok(());
            }
            self.more()?;
        }
    }

    fn chunked(&mut self, response: &mut Response) -> io::Result<()> {
        loop {
            let (chunks, is_last) = self.take_chunks(&mut response.body);
            if chunks > 0 {
                response.reads.push((Instant::now(), chunks));
            }
            if is_last {
                return Ok(());
            }
            self.more()?;
        }
    }

    /// Takes the complete HTTP chunks of the unread bytes: their number, and whether the last was
    /// among them.
    fn take_chunks(&mut self, body: &mut Vec<u8>) -> (usize, bool) {
        let mut chunks = 0;
        while let Some((begin, length)) = self.chunk() {
            let chunk: Vec<u8> = self.unread.drain(..begin + length + 2).collect();
            body.extend_from_slice(&chunk[begin..begin + length]);
            if length == 0 {
                return (chunks, true);
            }
            chunks += 1;
        }
        (chunks, false)
    }

    /// Start and length of the HTTP chunk at the front of the unread bytes, if it is complete.
    fn chunk(&self) -> Option<(usize, usize)> {
        let line = self.unread.windows(2).position(|bytes| bytes == b"\r\n")?;
        let digits = std::str::from_utf8(&self.unread[..line]).unwrap();
        let length = usize::from_str_radix(digits, 16).unwrap();
        (self.unread.len() >= line + 2 + length + 2).then_some((line + 2, length))
    }
}
