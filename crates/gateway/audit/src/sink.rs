//! Sinks: where batches of rows are written.

mod file;

use std::hash::{BuildHasher as _, RandomState};
use std::io;

use bytes::Bytes;
pub(crate) use file::FileSink;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue, InvalidHeaderValue};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};

use crate::settings::ClickHouse;

/// Whole lines that are written together.
#[derive(Debug)]
pub(crate) struct Batch<'a> {
    /// Its number, the same in every attempt.
    pub(crate) number: u64,
    pub(crate) lines: &'a [u8],
    /// Bytes already written, after a partly successful attempt.
    pub(crate) done: usize,
}

/// Why a batch was not written.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Temporary: try again.
    Again(String),
    /// Permanent: the sink will never take it.
    Refused(String),
}

/// A destination for batches. Runs on the writer's thread.
pub(crate) trait Sink: Send {
    /// Writes a batch, continuing where the last attempt ended.
    fn put(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure>;

    /// Syncs the written rows when an interval is over, and at the end.
    fn sync(&mut self, last: bool) -> Result<(), Failure>;
}

/// Answers are empty or contain an error message; only this many bytes are read.
const ANSWER: usize = 64 << 10;
/// Maximum length of an error message that is reported, in bytes.
const SHOWN: usize = 200;

type Connection = SendRequest<Full<Bytes>>;
type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Inserts batches over one kept connection.
#[derive(Debug)]
pub(crate) struct ClickHouseSink {
    store: ClickHouse,
    runtime: Runtime,
    connection: Option<Connection>,
    /// Distinguishes batches of different processes.
    run: u64,
}

impl ClickHouseSink {
    /// Opens the sink; the server may still be down.
    pub(crate) fn open(store: &ClickHouse) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let run = RandomState::new().hash_one(0);
        Ok(Self { store: store.clone(), runtime, connection: None, run })
    }

    fn failure(&self, error: &dyn std::fmt::Display) -> Failure {
        let ClickHouse { host, port, table, .. } = &self.store;
        Failure::Again(format!(
            "cannot insert into {table} at {host}:{port}: {error}; check that ClickHouse runs there and that this user may insert"
        ))
    }

    /// A batch that the server rejects as malformed is never accepted later.
    fn refusal(&self, status: StatusCode, text: &str) -> Failure {
        let text = redacted_line(text, &self.store.password);
        match (status, self.failure(&format!("{status}: {text}"))) {
            (StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE, Failure::Again(error)) => {
                Failure::Refused(error)
            }
            (_, failure) => failure,
        }
    }

    /// Inserts a batch; retries at once on a new connection if the server had closed the idle one.
    async fn insert(&self, kept: Option<Connection>, batch: &Batch<'_>) -> Result<Done, AnyError> {
        let body = Bytes::copy_from_slice(batch.lines);
        let token = format!("plimsoll-{:016x}-{}", self.run, batch.number);
        let request = || request(&self.store, &token, body.clone());
        if let Some(kept) = kept
            && !kept.is_closed()
            && let Ok(done) = send(kept, request()?).await
        {
            return Ok(done);
        }
        send(connect(&self.store).await?, request()?).await
    }
}

impl Sink for ClickHouseSink {
    fn put(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        let kept = self.connection.take();
        let done = self.runtime.block_on(async {
            tokio::time::timeout(self.store.timeout, self.insert(kept, batch)).await
        });
        let done = match done {
            Ok(Ok(done)) => done,
            Ok(Err(error)) => return Err(self.failure(&error)),
            Err(_) => return Err(self.failure(&"no answer in time")),
        };
        self.connection = Some(done.connection);
        done.error.map_or(Ok(()), |(status, text)| Err(self.refusal(status, &text)))
    }

    fn sync(&mut self, _last: bool) -> Result<(), Failure> {
        Ok(())
    }
}

/// A completed exchange.
struct Done {
    connection: Connection,
    error: Option<(StatusCode, String)>,
}

async fn connect(store: &ClickHouse) -> Result<Connection, AnyError> {
    // A host that is an IPv6 address comes in brackets.
    let host = store.host.trim_start_matches('[').trim_end_matches(']');
    let stream = TcpStream::connect((host, store.port)).await?;
    stream.set_nodelay(true)?;
    let (connection, driver) = handshake(TokioIo::new(stream)).await?;
    // The next request notices the end of the connection.
    tokio::spawn(async move { driver.await.ok() });
    Ok(connection)
}

async fn send(mut connection: Connection, request: Request<Full<Bytes>>) -> Result<Done, AnyError> {
    connection.ready().await?;
    let answer = connection.send_request(request).await?;
    let error = error_of(answer).await?;
    Ok(Done { connection, error })
}

async fn error_of(answer: Response<Incoming>) -> Result<Option<(StatusCode, String)>, AnyError> {
    let status = answer.status();
    // An error that comes after the status was sent.
    let late = answer.headers().contains_key("x-clickhouse-exception-code");
    let body = Limited::new(answer.into_body(), ANSWER).collect().await?.to_bytes();
    let failed = late || !status.is_success();
    Ok(failed.then(|| (status, String::from_utf8_lossy(&body).into_owned())))
}

/// The request of a batch. Its token is the same in every attempt, so that the server recognises a
/// batch it already has. Tables made for an earlier version lack columns; that must not cost rows.
fn request(store: &ClickHouse, token: &str, body: Bytes) -> Result<Request<Full<Bytes>>, AnyError> {
    let table = &store.table;
    let uri = format!(
        "/?query=INSERT%20INTO%20{table}%20FORMAT%20JSONEachRow\
         &input_format_skip_unknown_fields=1&insert_deduplication_token={token}"
    );
    let mut request = Request::post(uri)
        .header(HOST, format!("{}:{}", store.host, store.port))
        .header(CONTENT_TYPE, "application/x-ndjson");
    if !store.user.is_empty() {
        request = request
            .header("x-clickhouse-user", secret(&store.user)?)
            .header("x-clickhouse-key", secret(&store.password)?);
    }
    Ok(request.body(Full::new(body))?)
}

fn secret(text: &str) -> Result<HeaderValue, InvalidHeaderValue> {
    let mut value = HeaderValue::from_str(text)?;
    value.set_sensitive(true);
    Ok(value)
}

/// The start of the server's error message, on one line and without the password.
fn redacted_line(text: &str, password: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut line = if password.is_empty() { line } else { line.replace(password, "***") };
    line.truncate(line.floor_char_boundary(SHOWN));
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_short_and_without_the_password() {
        assert_eq!(
            redacted_line("Code: 1.\n key 'secret' wrong\n", "secret"),
            "Code: 1. key '***' wrong"
        );
        assert_eq!(redacted_line(&"é".repeat(300), "").len(), 200);
    }

    #[test]
    fn credentials_travel_in_headers_that_are_not_shown() {
        let store = ClickHouse::parse("http://joe:secret@h:1/t").unwrap();
        let request = request(&store, "plimsoll-1-2", Bytes::new()).unwrap();
        assert_eq!(request.headers()["x-clickhouse-key"], "secret");
        assert!(!format!("{request:?}").contains("secret"));
        let uri = request.uri().to_string();
        assert!(uri.ends_with("&insert_deduplication_token=plimsoll-1-2"), "{uri}");
    }
}
