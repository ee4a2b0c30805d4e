//! The queue's accounting: what the writer did, and the buffers of all producers.
//!
//! Rows move from a buffer to the writer only under this lock. A snapshot that holds it therefore
//! sees every row exactly once, although the buffers are read one after another: whatever a buffer
//! takes meanwhile is in its `accepted` and in its `waiting` alike.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::producer_buffer::{Counts, ProducerBuffer, recycled};
use crate::stats::{Drops, Stats};

/// Locks, and ignores poisoning: the numbers are consistent between any two statements.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The state of the queue, seen from the writer.
#[derive(Debug, Default)]
pub(crate) struct QueueState {
    buffers: Vec<Arc<Mutex<ProducerBuffer>>>,
    /// Counts of buffers whose producers are gone.
    retired: Counts,
    in_progress: u64,
    written: u64,
    dropped: Drops,
    retries: u64,
    closed: bool,
    error: Option<String>,
}

impl QueueState {
    /// A buffer for a new producer.
    pub(crate) fn add_buffer(&mut self) -> Arc<Mutex<ProducerBuffer>> {
        let mut producer_buffer = ProducerBuffer::default();
        if self.closed {
            producer_buffer.close();
        }
        let producer_buffer = Arc::new(Mutex::new(producer_buffer));
        self.buffers.push(Arc::clone(&producer_buffer));
        producer_buffer
    }

    /// Moves all rows of all buffers into the writer's batch. After the last time, buffers take no
    /// more.
    pub(crate) fn collect(&mut self, collected: &mut Vec<u8>, spare: &mut Vec<u8>, last: bool) {
        self.closed |= last;
        for producer_buffer in &self.buffers {
            let (lines, rows) = lock(producer_buffer).take(std::mem::take(spare), last);
            self.in_progress += rows;
            collected.extend_from_slice(&lines);
            *spare = recycled(lines);
        }
        self.forget_buffers();
    }

    /// Drops buffers without a producer; they are empty now.
    fn forget_buffers(&mut self) {
        let retired = &mut self.retired;
        self.buffers.retain(|producer_buffer| {
            let used = Arc::strong_count(producer_buffer) > 1;
            let counts = lock(producer_buffer).counts();
            if used || counts.waiting > 0 {
                return true;
            }
            add(retired, counts);
            false
        });
    }

    /// Marks rows in progress as written or dropped.
    pub(crate) const fn settle(&mut self, written: u64, dropped: Drops) {
        self.in_progress -= written + dropped.total();
        self.written += written;
        self.dropped = sum(self.dropped, dropped);
    }

    pub(crate) fn failed(&mut self, error: &str, again: bool) {
        self.retries += u64::from(again);
        self.error = Some(error.to_owned());
    }

    pub(crate) fn last_error(&self) -> Option<String> {
        self.error.clone()
    }

    /// The sums of this moment.
    pub(crate) fn stats(&self) -> Stats {
        let mut all = self.retired;
        for producer_buffer in &self.buffers {
            add(&mut all, lock(producer_buffer).counts());
        }
        Stats {
            accepted: all.accepted,
            written: self.written,
            dropped: sum(all.dropped, self.dropped),
            queued: all.waiting + self.in_progress,
            retries: self.retries,
        }
    }
}

const fn add(to: &mut Counts, more: Counts) {
    to.accepted += more.accepted;
    to.waiting += more.waiting;
    to.dropped = sum(to.dropped, more.dropped);
}

const fn sum(a: Drops, b: Drops) -> Drops {
    Drops {
        queue_full: a.queue_full + b.queue_full,
        closed: a.closed + b.closed,
        store: a.store + b.store,
        refused: a.refused + b.refused,
    }
}
