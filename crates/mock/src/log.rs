//! The ground-truth log: one record for each request, kept in memory or written to a file.

use std::io;
use std::path::Path;

use parking_lot::Mutex;

use crate::clock::Clock;
use crate::counter::Counter;
use crate::error::MockError;
use crate::spec::{LogTarget, MockConfig};

mod file;
mod record;

use file::FileLog;
pub use record::{
    ChunkRecord, LogRecord, RequestEnd, RpcOutcome, RpcRecord, ToolTurnRecord, WebSocketEvent,
    WebSocketRecord,
};

/// The destination of the records.
#[derive(Debug)]
enum Destination {
    Off,
    Memory(Mutex<Vec<LogRecord>>),
    File(FileLog),
}

/// Adds a record without waiting for the disk.
#[derive(Debug)]
pub(crate) struct Log {
    destination: Destination,
    capacity: usize,
    pub(crate) keeps_text: bool,
    lost: Counter,
}

impl Log {
    pub(crate) fn open(config: &MockConfig, clock: Clock) -> Result<Self, MockError> {
        let destination = match &config.log {
            LogTarget::None => Destination::Off,
            LogTarget::Memory => Destination::Memory(Mutex::default()),
            LogTarget::File(path) => {
                Destination::File(FileLog::open(path, clock).map_err(|e| log_error(path, e))?)
            }
        };
        let (capacity, keeps_text) = (config.log_capacity, config.log_text);
        Ok(Self { destination, capacity, keeps_text, lost: Counter::default() })
    }

    pub(crate) const fn is_on(&self) -> bool {
        !matches!(self.destination, Destination::Off)
    }

    /// Adds a record; never waits for the disk.
    pub(crate) fn add(&self, record: Box<LogRecord>) {
        let added = match &self.destination {
            Destination::Off => true,
            Destination::Memory(records) => push_within(records, self.capacity, *record),
            Destination::File(file) => file.add(record, self.capacity),
        };
        if !added {
            self.lost.increment();
        }
    }

    /// Removes and returns the records in memory.
    pub(crate) fn take(&self) -> Vec<LogRecord> {
        match &self.destination {
            Destination::Memory(records) => std::mem::take(&mut *records.lock()),
            Destination::Off | Destination::File(_) => Vec::new(),
        }
    }

    /// The number of records lost: the log was full, or the file could not be written.
    pub(crate) fn lost(&self) -> u64 {
        let unwritten = match &self.destination {
            Destination::File(file) => file.failed(),
            Destination::Off | Destination::Memory(_) => 0,
        };
        self.lost.get() + unwritten
    }

    /// Writes all queued records and stops the writer.
    pub(crate) fn close(&self) {
        if let Destination::File(file) = &self.destination {
            file.close();
        }
    }
}

fn log_error(path: &Path, source: io::Error) -> MockError {
    MockError::Log { path: path.to_owned(), source }
}

/// Adds a record if there is room; returns whether it was added.
fn push_within(records: &Mutex<Vec<LogRecord>>, capacity: usize, record: LogRecord) -> bool {
    let mut records = records.lock();
    let room = records.len() < capacity;
    if room {
        records.push(record);
    }
    room
}
