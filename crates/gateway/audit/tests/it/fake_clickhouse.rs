//! A server that takes inserts as `ClickHouse` does, and can be stopped and started again.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// The table's rows by deduplication token, and the server's behaviour.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) batches: BTreeMap<String, String>,
    /// All heads, as they came.
    pub(crate) heads: Vec<String>,
    /// Status and text of every answer, when it is not 200.
    pub(crate) answer: Option<(u16, String)>,
    streams: Vec<TcpStream>,
    stopped: bool,
}

impl Table {
    pub(crate) fn ids(&self) -> Vec<String> {
        let lines = self.batches.values().flat_map(|batch| batch.lines());
        lines.map(|line| crate::support::id_of(line).to_owned()).collect()
    }
}

/// A running server; its table outlives it.
pub(crate) struct Server {
    pub(crate) port: u16,
    table: Arc<Mutex<Table>>,
    thread: JoinHandle<()>,
}

impl Server {
    pub(crate) fn start(port: u16, table: &Arc<Mutex<Table>>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let port = listener.local_addr().unwrap().port();
        table.lock().unwrap().stopped = false;
        let queue = Arc::clone(table);
        let thread = std::thread::spawn(move || accept(&listener, &queue));
        Self { port, table: Arc::clone(table), thread }
    }

    /// Breaks all connections off, in the midst of whatever they do.
    pub(crate) fn stop(self) {
        {
            let mut table = self.table.lock().unwrap();
            table.stopped = true;
            for stream in table.streams.drain(..) {
                drop(stream.shutdown(Shutdown::Both));
            }
        }
        drop(TcpStream::connect(("127.0.0.1", self.port)));
        self.thread.join().unwrap();
    }
}

fn accept(listener: &TcpListener, table: &Arc<Mutex<Table>>) {
    for stream in listener.incoming() {
        let stream = stream.unwrap();
        let mut locked = table.lock().unwrap();
        if locked.stopped {
            return;
        }
        locked.streams.push(stream.try_clone().unwrap());
        let table = Arc::clone(table);
        std::thread::spawn(move || serve(stream, &table));
    }
}

/// Ends at the first thing that is not as it should be, as a broken connection is.
fn serve(mut stream: TcpStream, table: &Mutex<Table>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let (mut head, mut length) = (String::new(), 0);
        while !head.ends_with("\r\n\r\n") {
            let start = head.len();
            (reader.read_line(&mut head).ok()? > 0).then_some(())?;
            let line = head[start..].to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let (status, text) = store(table, head, String::from_utf8(body).ok()?)?;
        let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{text}", text.len());
        stream.write_all(answer.as_bytes()).ok()?;
    }
}

fn store(table: &Mutex<Table>, head: String, body: String) -> Option<(u16, String)> {
    let mut table = table.lock().unwrap();
    (!table.stopped).then_some(())?;
    let token = head.split_once("insert_deduplication_token=")?.1.split(' ').next()?.to_owned();
    table.heads.push(head);
    if table.answer.is_none() {
        table.batches.insert(token, body);
    }
    Some(table.answer.clone().unwrap_or((200, String::new())))
}
