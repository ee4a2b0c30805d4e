//! An upstream that answers as the cases say, and records what reaches it.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use plimsoll_measure::{Clock as _, Moment, MonotonicClock};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::cases::{Close, Reply};

/// A request that reached the upstream.
#[derive(Clone, Debug, Default)]
pub(super) struct Call {
    pub(super) path: String,
    /// Names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    /// Whether its connection had a request before.
    pub(super) reused: bool,
    /// When each event was written.
    pub(super) sends: Vec<Moment>,
    /// When the other side had closed the connection, before the end of the answer.
    pub(super) gone: Option<Moment>,
    /// Whether the answer was written to its end.
    pub(super) finished: bool,
}

/// The answers by dialect.
pub(super) type Replies = BTreeMap<String, Reply>;

/// The current exchange: the mark of its requests, their answers, and the requests so far.
#[derive(Debug, Default)]
struct Current {
    mark: String,
    replies: Replies,
    calls: Vec<Call>,
}

#[derive(Debug)]
struct Shared {
    clock: MonotonicClock,
    usual: Replies,
    current: Mutex<Current>,
}

/// The upstream, on a thread of its own until it is dropped.
#[derive(Debug)]
pub(super) struct ScriptedUpstream {
    pub(super) port: u16,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ScriptedUpstream {
    /// Starts it. Requests without the mark of the current exchange get the usual answer.
    pub(super) fn start(clock: MonotonicClock, usual: Replies) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0)))?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared { clock, usual, current: Mutex::default() });
        let (stop, stopped) = oneshot::channel();
        let accepting = accept(listener, Arc::clone(&shared));
        let serve = async move {
            tokio::select! {
                _ = accepting => {}
                _ = stopped => {}
            }
        };
        let thread = thread::spawn(move || runtime.block_on(serve));
        Ok(Self { port, shared, stop: Some(stop), thread: Some(thread) })
    }

    /// Begins an exchange: requests with this mark in their bodies get these answers.
    pub(super) fn begin(&self, mark: &str, replies: Replies) {
        *self.shared.current() = Current { mark: mark.to_owned(), replies, calls: Vec::new() };
    }

    /// The requests of the current exchange.
    pub(super) fn calls(&self) -> Vec<Call> {
        self.shared.current().calls.clone()
    }
}

impl Drop for ScriptedUpstream {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The dialect that clients of a path use.
pub(super) fn dialect_of(path: &str) -> Option<&'static str> {
    let path = path.split('?').next().unwrap_or_default();
    let dialects = [("/chat/completions", "openai"), ("/messages", "anthropic")];
    dialects.into_iter().find(|(end, _)| path.ends_with(end)).map(|(_, dialect)| dialect)
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(Connection::new(stream, Arc::clone(&shared)).serve());
    }
}

struct Connection {
    stream: BufReader<TcpStream>,
    shared: Arc<Shared>,
}

/// The call that a connection answers, by the mark of its exchange and its number there.
type CallId = Option<(String, usize)>;

impl Connection {
    fn new(stream: TcpStream, shared: Arc<Shared>) -> Self {
        // Without it, events could be late, but the answer would be right.
        let _ = stream.set_nodelay(true);
        Self { stream: BufReader::new(stream), shared }
    }

    async fn serve(mut self) {
        let mut reused = false;
        while let Ok((call, is_http_10)) = self.read(reused).await {
            let closes = is_http_10 || value_of(&call.headers, "connection") == Some("close");
            let dialect = dialect_of(&call.path).unwrap_or_default();
            let (id, reply) = self.record(call, dialect);
            if reply.close == Close::Unanswered
                || (reply.close == Close::UnansweredIfReused && reused)
            {
                return;
            }
            let answered = self.answer(&id, &reply, is_http_10).await;
            if answered.is_err() {
                self.note(&id, |call, now| call.gone = Some(now));
            }
            if closes || !answered.unwrap_or(false) {
                return;
            }
            reused = true;
        }
    }

    /// Reads a request, and whether it is HTTP/1.0.
    async fn read(&mut self, reused: bool) -> io::Result<(Call, bool)> {
        let request_line = self.line().await?;
        let mut headers = Vec::new();
        while let Some((name, value)) = self.line().await?.split_once(':') {
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let body = if value_of(&headers, "transfer-encoding").is_some() {
            self.chunks().await?
        } else {
            let length = value_of(&headers, "content-length").and_then(|text| text.parse().ok());
            self.bytes(length.unwrap_or(0)).await?
        };
        let path = request_line.split(' ').nth(1).unwrap_or_default().to_owned();
        let is_http_10 = request_line.ends_with("HTTP/1.0");
        Ok((Call { path, headers, body, reused, ..Call::default() }, is_http_10))
    }

    async fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        if self.stream.read_until(b'\n', &mut line).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
    }

    async fn bytes(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).await?;
        Ok(bytes)
    }

    /// Reads a body in chunked coding.
    async fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.line().await?;
            let size = usize::from_str_radix(line.split(';').next().unwrap_or_default(), 16);
            let size = size.map_err(io::Error::other)?;
            body.extend(self.bytes(size).await?);
            // The end of the chunk, or the trailer.
            while !self.line().await?.is_empty() {}
            if size == 0 {
                return Ok(body);
            }
        }
    }

    /// Records a call of the current exchange, and finds its answer.
    fn record(&self, call: Call, dialect: &str) -> (CallId, Reply) {
        let mut current = self.shared.current();
        let text = String::from_utf8_lossy(&call.body);
        if current.mark.is_empty() || !text.contains(&current.mark) {
            let usual =
                self.shared.usual.get(dialect).or_else(|| self.shared.usual.values().next());
            return (None, usual.cloned().unwrap_or_default());
        }
        let id = (current.mark.clone(), current.calls.len());
        current.calls.push(call);
        let unsupported = Reply { status: 404, ..Reply::default() };
        (Some(id), current.replies.get(dialect).cloned().unwrap_or(unsupported))
    }

    /// Changes the record of a call, unless its exchange is over.
    fn note(&self, id: &CallId, change: impl FnOnce(&mut Call, Moment)) {
        let now = self.shared.clock.now();
        let mut current = self.shared.current();
        if let Some((mark, number)) = id
            && current.mark == *mark
            && let Some(call) = current.calls.get_mut(*number)
        {
            change(call, now);
        }
    }

    /// Answers a call; `false` if the connection is to be closed.
    async fn answer(&mut self, id: &CallId, reply: &Reply, is_http_10: bool) -> io::Result<bool> {
        self.wait(reply.wait_ms).await?;
        let whole = if reply.events.is_empty() {
            self.whole(reply).await?
        } else {
            self.events(id, reply, is_http_10).await?
        };
        if whole {
            self.note(id, |call, _| call.finished = true);
        }
        Ok(whole && reply.close != Close::Idle)
    }

    /// Waits; an error if the other side leaves meanwhile.
    async fn wait(&mut self, millis: u64) -> io::Result<()> {
        let pause = Duration::from_millis(millis);
        let gone = match timeout(pause, self.stream.fill_buf()).await {
            Err(_) => false,
            Ok(read) => read.map_or(true, <[u8]>::is_empty),
        };
        if gone { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
    }

    /// Sends an answer in one piece; `false` if it is to be cut.
    async fn whole(&mut self, reply: &Reply) -> io::Result<bool> {
        let body = reply.json.to_string().into_bytes();
        let kept = reply.cut.unwrap_or(body.len()).min(body.len());
        let mut bytes = head(reply, &format!("content-length: {}\r\n", body.len()));
        bytes.extend_from_slice(&body[..kept]);
        self.stream.get_mut().write_all(&bytes).await?;
        Ok(reply.cut.is_none())
    }

    /// Sends each event in a write of its own; `false` if the stream is to be cut.
    async fn events(&mut self, id: &CallId, reply: &Reply, is_http_10: bool) -> io::Result<bool> {
        let framing = if is_http_10 { "" } else { "transfer-encoding: chunked\r\n" };
        self.stream.get_mut().write_all(&head(reply, framing)).await?;
        for event in reply.events.iter().take(reply.cut.unwrap_or(usize::MAX)) {
            self.wait(reply.gap_ms).await?;
            self.note(id, |call, now| call.sends.push(now));
            let event = event_text(event);
            let length = event.len();
            let chunk = if is_http_10 { event } else { format!("{length:x}\r\n{event}\r\n") };
            self.stream.get_mut().write_all(chunk.as_bytes()).await?;
        }
        if reply.cut.is_some() {
            // The gateway reads the events before the end.
            self.wait(reply.gap_ms).await?;
        } else if !is_http_10 {
            self.stream.get_mut().write_all(b"0\r\n\r\n").await?;
        }
        Ok(reply.cut.is_none())
    }
}

fn head(reply: &Reply, framing: &str) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {} Scripted\r\n", reply.status);
    for (name, value) in &reply.headers {
        head.extend([name, ": ", value, "\r\n"]);
    }
    head.extend([framing, "\r\n"]);
    head.into_bytes()
}

/// The text of an event; a text such as `[DONE]` is its data.
pub(super) fn event_text(event: &Value) -> String {
    let name = event["type"].as_str().map(|name| format!("event: {name}\n")).unwrap_or_default();
    let data = event.as_str().map_or_else(|| event.to_string(), str::to_owned);
    format!("{name}data: {data}\n\n")
}

/// The value of a header, by its name in lower case.
pub(super) fn value_of<'h>(headers: &'h [(String, String)], name: &str) -> Option<&'h str> {
    headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}
