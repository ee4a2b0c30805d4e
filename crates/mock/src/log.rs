//! The ground truth: what the mock really did, one record for each request.

use std::io;
use std::path::Path;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::counters::Count;
use crate::dialect::Dialect;
use crate::error::MockError;
use crate::spec::{LogTarget, MockConfig};

mod file;

use file::FileLog;

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The answer was written to its last byte.
    Completed,
    /// The mock broke off on purpose: cut, reset, hang.
    Aborted,
    /// The client went away first.
    ClientGone,
    /// The mock was shut down.
    ShutDown,
}

impl End {
    /// Every end.
    pub(crate) const ALL: [Self; 4] =
        [Self::Completed, Self::Aborted, Self::ClientGone, Self::ShutDown];

    /// The word in the log and in metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Aborted => "aborted",
            Self::ClientGone => "client_gone",
            Self::ShutDown => "shut_down",
        }
    }
}

/// A piece of a body that was written on its own. Times are nanoseconds since 1970 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkRecord {
    /// When the plan wanted it.
    pub due: u64,
    /// Stamped immediately before the bytes were handed to the connection.
    pub handed: u64,
    /// When the `write` that took its last byte returned; 0 where that never happened.
    pub written: u64,
    /// Bytes of the body, without HTTP's chunk framing.
    pub bytes: u64,
    /// Output tokens in it.
    pub tokens: u32,
}

/// What happened to one request. Times are nanoseconds since 1970 UTC: readings of the monotonic clock
/// plus one offset that was taken at the start, so that their differences are true lengths of time.
/// Hashes are FNV-1a, 64 bits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogRecord {
    /// The request's number, from 0 in the order in which heads were received.
    pub sequence: u64,
    /// Its `x-request-id`.
    pub request_id: Option<String>,
    /// The connection's number, from 0 in the order of acceptance.
    pub connection: u64,
    /// HTTP version, like `HTTP/1.1`.
    pub version: String,
    /// Method.
    pub method: String,
    /// Path without query.
    pub path: String,
    /// Wire format, where the path has one.
    pub dialect: Option<Dialect>,
    /// The model asked for.
    pub model: Option<String>,
    /// Was a stream asked for?
    pub stream: bool,
    /// Messages, or inputs to embed.
    pub messages: u32,
    /// Bytes of all texts of the prompt.
    pub prompt_bytes: u64,
    /// Input tokens.
    pub prompt_tokens: u64,
    /// Hash of all texts of the prompt, one after another.
    pub prompt_hash: u64,
    /// Hashes of the same text in blocks of 2,048 bytes (512 tokens): prompts with a common beginning
    /// have their first hashes in common.
    pub prompt_blocks: Vec<u64>,
    /// The first 60 characters of the first text, where the configuration wants them.
    pub prompt_head: Option<String>,
    /// When the first bytes of the request arrived, by the kernel's note; when they were read, where it makes none.
    pub arrived: u64,
    /// When the first bytes of the request were read.
    pub received: u64,
    /// When the last bytes of its head were read.
    pub head_complete: u64,
    /// When the last bytes of its body were read: the zero of all due times.
    pub body_complete: u64,
    /// Status of the answer; 0 for none.
    pub status: u16,
    /// Output tokens planned.
    pub planned_tokens: u32,
    /// The fault that was planned for it, as in the `x-mock-fault` header.
    pub fault: Option<String>,
    /// The pieces of the body, in order.
    pub chunks: Vec<ChunkRecord>,
    /// When it ended: after the last write, or when the end was noticed.
    pub finished: u64,
    /// How it ended.
    pub end: Option<End>,
}

/// Where records go.
#[derive(Debug)]
enum Target {
    Off,
    Memory(Mutex<Vec<LogRecord>>),
    File(FileLog),
}

/// The log of a mock.
#[derive(Debug)]
pub(crate) struct Log {
    target: Target,
    capacity: usize,
    keeps_text: bool,
    lost: Count,
}

impl Log {
    pub(crate) fn open(config: &MockConfig, clock: Clock) -> Result<Self, MockError> {
        let open = |path: &Path| FileLog::open(path, clock).map_err(|e| log_error(path, e));
        let target = match &config.log {
            LogTarget::None => Target::Off,
            LogTarget::Memory => Target::Memory(Mutex::default()),
            LogTarget::File(path) => Target::File(open(path)?),
        };
        let (capacity, keeps_text) = (config.log_capacity, config.log_text);
        Ok(Self { target, capacity, keeps_text, lost: Count::default() })
    }

    pub(crate) const fn is_on(&self) -> bool {
        !matches!(self.target, Target::Off)
    }

    pub(crate) const fn keeps_text(&self) -> bool {
        self.keeps_text
    }

    /// Takes a record; never blocks on a disk.
    pub(crate) fn add(&self, record: Box<LogRecord>) {
        let kept = match &self.target {
            Target::Off => true,
            Target::Memory(records) => remember(records, self.capacity, *record),
            Target::File(file) => file.add(record, self.capacity),
        };
        if !kept {
            self.lost.up();
        }
    }

    /// The records in memory, which are forgotten here.
    pub(crate) fn take(&self) -> Vec<LogRecord> {
        match &self.target {
            Target::Memory(records) => records.lock().map(|mut all| std::mem::take(&mut *all)),
            Target::Off | Target::File(_) => Ok(Vec::new()),
        }
        .unwrap_or_default()
    }

    pub(crate) fn lost(&self) -> u64 {
        let unwritten = match &self.target {
            Target::File(file) => file.failed(),
            Target::Off | Target::Memory(_) => 0,
        };
        self.lost.read() + unwritten
    }

    /// Writes out what waits, and ends.
    pub(crate) fn close(&self) {
        if let Target::File(file) = &self.target {
            file.close();
        }
    }
}

fn log_error(path: &Path, source: io::Error) -> MockError {
    MockError::Log { path: path.to_owned(), source }
}

/// Returns whether there was room.
fn remember(records: &Mutex<Vec<LogRecord>>, capacity: usize, record: LogRecord) -> bool {
    let Ok(mut records) = records.lock() else { return false };
    let room = records.len() < capacity;
    if room {
        records.push(record);
    }
    room
}
