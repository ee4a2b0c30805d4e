//! The log as a file of JSON lines, written by a thread of its own.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use super::LogRecord;
use crate::clock::Clock;
use crate::counters::Count;

/// A record is in the file at the latest after this time.
const FLUSH_EVERY: Duration = Duration::from_millis(200);

enum Message {
    Record(Box<LogRecord>),
    Stop,
}

/// The queue to the writing thread.
#[derive(Debug)]
pub(super) struct FileLog {
    queue: Sender<Message>,
    state: Arc<State>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct State {
    waiting: Count,
    /// Records that the file did not take.
    failed: Count,
}

impl FileLog {
    pub(super) fn open(path: &Path, clock: Clock) -> io::Result<Self> {
        let file = File::create(path)?;
        let (queue, messages) = channel();
        let state = Arc::new(State::default());
        let mut writer = Writer::new(file, clock, Arc::clone(&state));
        let thread = Builder::new().name("mock-log".to_owned());
        let writer = thread.spawn(move || writer.run(&messages))?;
        Ok(Self { queue, state, writer: Mutex::new(Some(writer)) })
    }

    /// Returns whether there was room in the queue.
    pub(super) fn add(&self, record: Box<LogRecord>, capacity: usize) -> bool {
        let room = self.state.waiting.read() < capacity as u64;
        if room {
            self.state.waiting.up();
        }
        room && self.queue.send(Message::Record(record)).is_ok()
    }

    pub(super) fn failed(&self) -> u64 {
        self.state.failed.read()
    }

    /// Waits until all that was queued is in the file.
    pub(super) fn close(&self) {
        let writer = self.writer.lock().ok().and_then(|mut writer| writer.take());
        if let Some(writer) = writer {
            // Neither fails unless the thread is gone, and then there is nothing to wait for.
            let _ = self.queue.send(Message::Stop);
            let _ = writer.join();
        }
    }
}

struct Writer {
    out: BufWriter<File>,
    clock: Clock,
    flushed_at: u64,
    /// Records handed to the buffer since the last flush: a flush that fails loses them.
    buffered: u64,
    state: Arc<State>,
}

impl Writer {
    fn new(file: File, clock: Clock, state: Arc<State>) -> Self {
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
        self.state.waiting.down();
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
