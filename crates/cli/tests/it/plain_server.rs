//! A plain HTTP server that answers according to the path, and records its requests.

use std::io::{BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A request as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    /// Method and path.
    pub(crate) line: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Answers `/N/...` with the status N, and `/N/to/PLACE` with `Location: PLACE`, where `!` replaces
/// `/`.
pub(crate) struct PlainServer {
    pub(crate) addr: SocketAddr,
    log: Arc<Mutex<Vec<Received>>>,
}

impl PlainServer {
    pub(crate) fn spawn() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Self::on(listener)
    }

    pub(crate) fn on(listener: TcpListener) -> Self {
        let addr = listener.local_addr().unwrap();
        let log: Arc<Mutex<Vec<Received>>> = Arc::default();
        let shared = Arc::clone(&log);
        std::thread::spawn(move || {
            for tcp in listener.incoming() {
                let (tcp, log) = (tcp.unwrap(), Arc::clone(&shared));
                std::thread::spawn(move || serve(tcp, &log));
            }
        });
        Self { addr, log }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// Requests since the last call.
    pub(crate) fn take_log(&self) -> Vec<Received> {
        std::mem::take(&mut self.log.lock().unwrap())
    }
}

fn serve(tcp: TcpStream, log: &Mutex<Vec<Received>>) {
    let mut out = tcp.try_clone().unwrap();
    let mut reader = BufReader::new(tcp);
    while let Some(request) = read(&mut reader) {
        let path = request.line.split(' ').nth(1).unwrap_or_default().to_owned();
        log.lock().unwrap().push(request);
        if out.write_all(answer(&path).as_bytes()).is_err() {
            return;
        }
    }
}

pub(crate) fn read(reader: &mut impl std::io::BufRead) -> Option<Received> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
    let mut headers = Vec::new();
    loop {
        let mut field = String::new();
        reader.read_line(&mut field).ok().filter(|length| *length > 0)?;
        let Some((name, value)) = field.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.map_or(0, |(_, value)| value.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let line = line.trim_end().trim_end_matches(" HTTP/1.1").to_owned();
    Some(Received { line, headers, body })
}

fn answer(path: &str) -> String {
    let path =
        path.split_once("://").map_or(path, |(_, rest)| &rest[rest.find('/').unwrap_or(0)..]);
    let mut steps = path.split('?').next().unwrap_or_default().splitn(4, '/').skip(1);
    let status: u16 = steps.next().and_then(|status| status.parse().ok()).unwrap_or(200);
    let to = steps.next().filter(|word| *word == "to").and_then(|_| steps.next());
    let location = to.map(|to| format!("location: {}\r\n", to.replace('!', "/")));
    let body = match status {
        204 | 304 => String::new(),
        200 => "fine".to_owned(),
        _ => format!("{{\"error\": \"this is {status}\"}}"),
    };
    format!(
        "HTTP/1.1 {status} X\r\n{}content-length: {}\r\n\r\n{body}",
        location.unwrap_or_default(),
        body.len()
    )
}
