//! The log file: JSON lines, written by a separate thread.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use parking_lot::Mutex;

use super::record::LogRecord;
use crate::clock::Clock;
use crate::counter::Counter;

/// Largest delay until a record is in the file.
const FLUSH_EVERY: Duration = Duration::from_millis(200);

enum Message {
    Record(Box<LogRecord>),
    Stop,
}

/// The queue to the writer thread.
#[derive(Debug)]
pub(super) struct FileLog {
    queue: Sender<Message>,
    state: Arc<QueueState>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct QueueState {
    waiting: Counter,
    /// Records that could not be written.
    failed: Counter,
}

impl FileLog {
    pub(super) fn open(path: &Path, clock: Clock) -> io::Result<Self> {
        let file = File::create(path)?;
        let (queue, messages) = channel();
        let state = Arc::new(QueueState::default());
        let mut writer = Writer::new(file, clock, Arc::clone(&state));
        let thread = Builder::new().name("mock-log".to_owned());
        let writer = thread.spawn(move || writer.run(&messages))?;
        Ok(Self { queue, state, writer: Mutex::new(Some(writer)) })
    }

    /// Queues a record if there is room; returns whether it was queued.
    pub(super) fn add(&self, record: Box<LogRecord>, capacity: usize) -> bool {
        let room = self.state.waiting.get() < capacity as u64;
        if room {
            self.state.waiting.increment();
        }
        room && self.queue.send(Message::Record(record)).is_ok()
    }

    pub(super) fn failed(&self) -> u64 {
        self.state.failed.get()
    }

    /// Waits until all queued records are in the file.
    pub(super) fn close(&self) {
        let writer = self.writer.lock().take();
        if let Some(writer) = writer {
            // Both fail only if the thread has ended.
            let _ = self.queue.send(Message::Stop);
            let _ = writer.join();
        }
    }
}

struct Writer {
    out: BufWriter<File>,
    clock: Clock,
    flushed_at: u64,
    /// Records since the last flush, which a failed flush loses.
    buffered: u64,
    state: Arc<QueueState>,
}

impl Writer {
    fn new(file: File, clock: Clock, state: Arc<QueueState>) -> Self {
        let out = BufWriter::with_capacity(1 << 18, file);
        Self { out, clock, flushed_at: clock.now(), buffered: 0, state }
    }

    fn run(&mut self, messages: &Receiver<Message>) {
        loop {
            match messages.recv_timeout(FLUSH_EVERY) {
                Ok(Message::Record(record)) => self.write(&record),
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if u128::from(self.clock.now() - self.flushed_at) >= FLUSH_EVERY.as_nanos() {
                self.flush();
            }
        }
        self.flush();
    }

    fn write(&mut self, record: &LogRecord) {
        self.state.waiting.decrement();
        self.buffered += 1;
        let line = serde_json::to_writer(&mut self.out, record).map_err(io::Error::from);
        if line.and_then(|()| self.out.write_all(b"\n")).is_err() {
            self.lose_buffered();
        }
    }

    fn flush(&mut self) {
        if self.out.flush().is_err() {
            self.lose_buffered();
        }
        (self.buffered, self.flushed_at) = (0, self.clock.now());
    }

    fn lose_buffered(&mut self) {
        self.state.failed.add(std::mem::take(&mut self.buffered));
    }
}
