//! The queue between the callers and the writer: waiting lines and the counts of all rows.
//!
//! One lock guards both, so every snapshot balances. It is held for the time of one line.

use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::row::Row;
use crate::settings::Settings;
use crate::stats::{Drops, Stats};

/// Whether a row was queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a row may have been dropped, although it is counted then"]
pub enum Offered {
    /// It waits for the writer.
    Queued,
    /// The queue is full, or the audit is closed; the loss is counted.
    Dropped,
}

/// State shared by the callers and the writer.
#[derive(Debug)]
pub(crate) struct Queue {
    /// Most rows that wait or are being written.
    most_rows: u64,
    /// Byte limit: a full queue accepts no row, but the last accepted row may exceed the limit.
    most_bytes: usize,
    /// Rows that are worth a batch of their own.
    batch: usize,
    state: Mutex<State>,
    /// Wakes the writer: a batch is complete, or the queue closes.
    work: Condvar,
    /// Wakes the callers that wait for room.
    room: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Rows that the writer has not taken yet.
    lines: Vec<u8>,
    /// Their number.
    waiting: usize,
    /// Bytes of all rows queued, those being written included.
    bytes: usize,
    stats: Stats,
    closed: bool,
    error: Option<String>,
}

impl Queue {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            most_rows: settings.queue as u64,
            most_bytes: settings.queue_bytes,
            batch: settings.batch.min(settings.queue),
            state: Mutex::default(),
            work: Condvar::new(),
            room: Condvar::new(),
        }
    }

    /// Queues a row. If the queue is full, waits or drops the row.
    pub(crate) fn offer(&self, row: &Row<'_>, wait: bool) -> Offered {
        let mut state = self.state.lock();
        self.room.wait_while(&mut state, |state| wait && self.is_full(state));
        let state = &mut *state;
        state.stats.accepted += 1;
        if state.closed {
            state.stats.dropped.closed += 1;
            return Offered::Dropped;
        }
        if self.is_full(state) {
            state.stats.dropped.queue_full += 1;
            return Offered::Dropped;
        }
        let before = state.lines.len();
        row.write_line(&mut state.lines);
        state.bytes += state.lines.len() - before;
        state.waiting += 1;
        state.stats.queued += 1;
        if state.waiting == self.batch {
            self.work.notify_one();
        }
        Offered::Queued
    }

    /// Whether a row has to wait. A closed queue never gets room.
    fn is_full(&self, state: &State) -> bool {
        let full = state.stats.queued >= self.most_rows || state.bytes >= self.most_bytes;
        full && !state.closed
    }

    /// Rejects further rows and tells the writer to empty the queue and stop.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.work.notify_all();
        self.room.notify_all();
    }

    /// Sleeps until a batch waits, the interval is over or the queue is closed. Swaps the lines
    /// that wait into the empty `lines`, and says whether the queue is closed.
    pub(crate) fn take(&self, interval: Duration, lines: &mut Vec<u8>) -> bool {
        let mut state = self.state.lock();
        let sleeps = |state: &mut State| !state.closed && state.waiting < self.batch;
        self.work.wait_while_for(&mut state, sleeps, interval);
        std::mem::swap(&mut state.lines, lines);
        state.waiting = 0;
        state.closed
    }

    /// Sleeps for the whole interval; says whether the queue is closed.
    pub(crate) fn pause(&self, interval: Duration) -> bool {
        let mut state = self.state.lock();
        self.work.wait_while_for(&mut state, |_| true, interval);
        state.closed
    }

    /// Marks rows that were taken as written or dropped, which gives room.
    pub(crate) fn settle(&self, written: u64, dropped: Drops, bytes: usize) {
        let mut state = self.state.lock();
        state.bytes -= bytes;
        state.stats.queued -= written + dropped.total();
        state.stats.written += written;
        state.stats.dropped.store += dropped.store;
        state.stats.dropped.refused += dropped.refused;
        drop(state);
        self.room.notify_all();
    }

    pub(crate) fn failed(&self, error: &str, again: bool) {
        let mut state = self.state.lock();
        state.stats.retries += u64::from(again);
        state.error = Some(error.to_owned());
    }

    /// Records whether the last write failed.
    pub(crate) fn set_failing(&self, failing: bool) {
        self.state.lock().stats.failing = failing;
    }

    pub(crate) fn last_error(&self) -> Option<String> {
        self.state.lock().error.clone()
    }

    pub(crate) fn stats(&self) -> Stats {
        self.state.lock().stats
    }
}
