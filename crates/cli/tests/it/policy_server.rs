//! A tiny policy gateway: it blocks what holds one of its words, and remembers every decision.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// How it tells its decision.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum ReplyStyle {
    /// By 200 and 403.
    Status,
    /// By a member of the body, always with 200.
    Body,
}

pub(crate) struct PolicyServer {
    pub(crate) addr: SocketAddr,
    log: Arc<Mutex<Vec<(String, bool)>>>,
}

impl PolicyServer {
    pub(crate) fn spawn(words: &'static [&'static str], manner: ReplyStyle) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let log = Arc::default();
        let shared = Arc::clone(&log);
        // Ends with the process: nothing waits for it.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let log = Arc::clone(&shared);
                thread::spawn(move || serve(stream, words, manner, &log));
            }
        });
        Self { addr, log }
    }

    /// Bodies and whether they were blocked.
    pub(crate) fn log(&self) -> Vec<(String, bool)> {
        self.log.lock().unwrap().clone()
    }
}

fn serve(stream: TcpStream, words: &[&str], manner: ReplyStyle, log: &Mutex<Vec<(String, bool)>>) {
    stream.set_nodelay(true).unwrap();
    let mut writer = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    while let Some(body) = read_request(&mut reader) {
        let blocked = words.iter().any(|word| body.contains(word));
        log.lock().unwrap().push((body, blocked));
        let status =
            if blocked && manner == ReplyStyle::Status { "403 Forbidden" } else { "200 OK" };
        let answer = format!("{{\"success\":{},\"blocked\":{blocked}}}", !blocked);
        let length = answer.len();
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        );
        if writer.write_all((head + &answer).as_bytes()).is_err() {
            return;
        }
    }
}

/// The body of the next request; `None` at the end of the connection.
fn read_request(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    String::from_utf8(body).ok()
}
