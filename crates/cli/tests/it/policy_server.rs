//! A tiny policy gateway. It blocks every body that contains one of its words, and logs each
//! decision.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// The form of its decisions.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum ReplyStyle {
    /// Status 200 or 403.
    Status,
    /// Status 200 and a member of the body.
    Body,
}

pub(crate) struct PolicyServer {
    pub(crate) addr: SocketAddr,
    log: Arc<Mutex<Vec<(String, bool)>>>,
}

impl PolicyServer {
    pub(crate) fn spawn(words: &'static [&'static str], style: ReplyStyle) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let log = Arc::default();
        let shared = Arc::clone(&log);
        // The thread ends with the process.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let log = Arc::clone(&shared);
                thread::spawn(move || serve(stream, words, style, &log));
            }
        });
        Self { addr, log }
    }

    /// Bodies and whether they were blocked.
    pub(crate) fn log(&self) -> Vec<(String, bool)> {
        self.log.lock().unwrap().clone()
    }
}

fn serve(stream: TcpStream, words: &[&str], style: ReplyStyle, log: &Mutex<Vec<(String, bool)>>) {
    stream.set_nodelay(true).unwrap();
    let mut writer = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    while let Some(body) = read_request(&mut reader) {
        let blocked = words.iter().any(|word| body.contains(word));
        log.lock().unwrap().push((body, blocked));
        let status =
            if blocked && style == ReplyStyle::Status { "403 Forbidden" } else { "200 OK" };
        let response = format!("{{\"success\":{},\"blocked\":{blocked}}}", !blocked);
        let length = response.len();
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        );
        if writer.write_all((head + &response).as_bytes()).is_err() {
            return;
        }
    }
}

/// The body of the next request; `None` at the end of the connection.
pub(crate) fn read_request(reader: &mut BufReader<TcpStream>) -> Option<String> {
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
