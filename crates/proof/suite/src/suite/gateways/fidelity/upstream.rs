//! An upstream that answers as the cases say, and records what reaches it.

use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use plimsoll_measure::{Clock as _, Moment, MonotonicClock};

use super::cases::{Close, Reply};

/// A request that reached the upstream.
#[derive(Clone, Debug, Default)]
pub(super) struct Call {
    /// The mark of its exchange; empty for requests of no exchange.
    mark: String,
    pub(super) path: String,
    /// Names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    /// Whether its connection had a request before.
    pub(super) reused: bool,
    /// When each part of the answer was written.
    pub(super) sends: Vec<Moment>,
    /// When the other side was found to have left, before the end of the answer.
    pub(super) gone: Option<Moment>,
    /// Whether the answer was written to its end.
    pub(super) finished: bool,
}

/// The current exchange: its mark and the answer in each dialect. All requests so far.
#[derive(Debug, Default)]
struct Record {
    mark: String,
    replies: Vec<Reply>,
    calls: Vec<Call>,
    stopped: bool,
}

#[derive(Debug)]
struct Shared {
    clock: MonotonicClock,
    /// Answers to requests of no exchange.
    usual: Vec<Reply>,
    record: Mutex<Record>,
}

/// The upstream, which accepts connections until it is dropped.
#[derive(Debug)]
pub(super) struct ScriptedUpstream {
    pub(super) port: u16,
    shared: Arc<Shared>,
}

impl ScriptedUpstream {
    pub(super) fn start(clock: MonotonicClock, usual: Vec<Reply>) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared { clock, usual, record: Mutex::default() });
        let upstream = Self { port, shared: Arc::clone(&shared) };
        thread::spawn(move || {
            let streams = listener.incoming().flatten();
            for stream in streams.take_while(|_| !shared.record().stopped) {
                // Without it, events could be late, but the answer would be right.
                let _ = stream.set_nodelay(true);
                let (stream, shared) = (BufReader::new(stream), Arc::clone(&shared));
                thread::spawn(move || Connection { stream, shared }.serve());
            }
        });
        Ok(upstream)
    }

    /// Begins an exchange: requests with this mark in their bodies get these answers, by dialect.
    pub(super) fn begin(&self, mark: &str, replies: Vec<Reply>) {
        let mut record = self.shared.record();
        (record.mark, record.replies) = (mark.to_owned(), replies);
    }

    /// The requests of the current exchange.
    pub(super) fn calls(&self) -> Vec<Call> {
        let record = self.shared.record();
        record.calls.iter().filter(|call| call.mark == record.mark).cloned().collect()
    }
}

impl Drop for ScriptedUpstream {
    fn drop(&mut self) {
        self.shared.record().stopped = true;
        // It wakes the thread.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl Shared {
    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the record of a call.
    fn note(&self, call: usize, change: impl FnOnce(&mut Call, Moment)) {
        let now = self.clock.now();
        change(&mut self.record().calls[call], now);
    }
}

/// The number of the dialect that a path belongs to.
pub(super) fn dialect_of(path: &str) -> Option<usize> {
    let path = path.split('?').next().unwrap_or_default();
    ["/chat/completions", "/messages"].iter().position(|end| path.ends_with(end))
}

struct Connection {
    stream: BufReader<TcpStream>,
    shared: Arc<Shared>,
}

impl Connection {
    fn serve(mut self) {
        let mut reused = false;
        while let Ok((call, chunked)) = self.read(reused) {
            let (call, reply) = self.record(call);
            let is_dropped = match reply.close {
                Close::Unanswered => true,
                Close::UnansweredIfReused => reused,
                Close::Never | Close::Idle => false,
            };
            if is_dropped {
                return;
            }
            let answered = self.answer(call, &reply, chunked);
            if answered.is_err() {
                self.shared.note(call, |call, now| call.gone = Some(now));
            }
            if !answered.unwrap_or(false) {
                return;
            }
            reused = true;
        }
    }

    /// Reads a request, and whether its sender understands chunks, which HTTP/1.0 does not have.
    fn read(&mut self, reused: bool) -> io::Result<(Call, bool)> {
        let request_line = self.line()?;
        let mut headers = Vec::new();
        while let Some((name, value)) = self.line()?.split_once(':') {
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let is_chunked = headers.iter().any(|(name, _)| name == "transfer-encoding");
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length = length.and_then(|(_, length)| length.parse().ok());
        let body = if is_chunked { self.chunks() } else { self.bytes(length.unwrap_or(0)) }?;
        let path = request_line.split(' ').nth(1).unwrap_or_default().to_owned();
        let chunked = !request_line.ends_with("HTTP/1.0");
        Ok((Call { path, headers, body, reused, ..Call::default() }, chunked))
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        if self.stream.read_until(b'\n', &mut line)? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
    }

    fn bytes(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads a body in chunked coding.
    fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.line()?;
            let size = usize::from_str_radix(line.split(';').next().unwrap_or_default(), 16);
            let size = size.map_err(io::Error::other)?;
            body.extend(self.bytes(size)?);
            // The end of the chunk, or the trailer.
            while !self.line()?.is_empty() {}
            if size == 0 {
                return Ok(body);
            }
        }
    }

    /// Records a call, and finds its answer.
    fn record(&self, mut call: Call) -> (usize, Reply) {
        let mut record = self.shared.record();
        let is_marked = String::from_utf8_lossy(&call.body).contains(&record.mark);
        let replies = if is_marked && !record.mark.is_empty() {
            call.mark.clone_from(&record.mark);
            &record.replies
        } else {
            &self.shared.usual
        };
        let reply = replies[dialect_of(&call.path).unwrap_or(0)].clone();
        record.calls.push(call);
        (record.calls.len() - 1, reply)
    }

    /// Answers a call; `false` if the connection is to be closed.
    fn answer(&mut self, call: usize, reply: &Reply, chunked: bool) -> io::Result<bool> {
        self.wait(reply.wait_ms)?;
        let mut pieces = reply.pieces();
        let is_stream = !reply.events.is_empty();
        let length = format!("content-length: {}\r\n", pieces[0].len());
        let chunked = chunked && is_stream;
        match reply.cut {
            Some(cut) if is_stream => pieces.truncate(cut),
            Some(cut) => pieces[0].truncate(cut),
            None => {}
        }
        let mut head = format!("HTTP/1.1 {} Scripted\r\n", reply.status);
        for (name, value) in &reply.headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        head += if chunked { "transfer-encoding: chunked\r\n" } else { "" };
        head += if is_stream { "" } else { &length };
        self.write(&(head + "\r\n"))?;
        for piece in &pieces {
            self.wait(reply.gap_ms)?;
            self.shared.note(call, |call, now| call.sends.push(now));
            let chunk = format!("{:x}\r\n{piece}\r\n", piece.len());
            self.write(if chunked { &chunk } else { piece })?;
        }
        if reply.cut.is_some() {
            // The gateway reads the rest before it sees the end.
            return self.wait(reply.gap_ms).map(|()| false);
        }
        self.write(if chunked { "0\r\n\r\n" } else { "" })?;
        self.shared.note(call, |call, _| call.finished = true);
        Ok(reply.close != Close::Idle && (chunked || !is_stream))
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.stream.get_mut().write_all(text.as_bytes())
    }

    /// Waits; an error if the other side leaves meanwhile.
    fn wait(&mut self, millis: u64) -> io::Result<()> {
        if millis == 0 {
            return Ok(());
        }
        self.stream.get_ref().set_read_timeout(Some(Duration::from_millis(millis)))?;
        let read = self.stream.fill_buf().map(<[u8]>::is_empty);
        self.stream.get_ref().set_read_timeout(None)?;
        match read {
            Ok(true) => Err(ErrorKind::BrokenPipe.into()),
            Err(error) if !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Err(error)
            }
            _ => Ok(()),
        }
    }
}
