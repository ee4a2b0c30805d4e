//! The queue between producers and the writer.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::accounting::{QueueState, lock};
use crate::capacity::QueueCapacity;

/// State shared by producers and the writer.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) capacity: QueueCapacity,
    pub(crate) accounting: Mutex<QueueState>,
    /// Rows that are worth a batch of their own.
    pub(crate) batch: usize,
    call: Mutex<WakeReason>,
    called: Condvar,
}

/// Why the writer wakes.
#[derive(Debug, Default)]
struct WakeReason {
    batch: bool,
    close: bool,
}

impl Queue {
    pub(crate) fn new(queue: usize, queue_bytes: usize, batch: usize) -> Self {
        Self {
            capacity: QueueCapacity::new(queue, queue_bytes),
            accounting: Mutex::default(),
            batch: batch.min(queue),
            call: Mutex::default(),
            called: Condvar::new(),
        }
    }

    /// Wakes the writer: a batch is complete.
    pub(crate) fn wake_writer(&self) {
        lock(&self.call).batch = true;
        self.called.notify_all();
    }

    /// Tells the writer to empty the queue and end.
    pub(crate) fn wake_to_close(&self) {
        lock(&self.call).close = true;
        self.called.notify_all();
    }

    /// Sleeps until a batch waits, the interval is over or the audit is closed; says whether it is
    /// closed.
    pub(crate) fn wait(&self, interval: Duration) -> bool {
        let call = lock(&self.call);
        let woken = self.called.wait_timeout_while(call, interval, |call: &mut WakeReason| {
            !call.batch && !call.close && self.capacity.taken() < self.batch
        });
        let (mut call, _) = woken.unwrap_or_else(PoisonError::into_inner);
        call.batch = false;
        call.close
    }

    /// Sleeps for the whole interval; says whether the audit is closed.
    pub(crate) fn pause(&self, interval: Duration) -> bool {
        let call = lock(&self.call);
        let woken = self.called.wait_timeout_while(call, interval, |_| true);
        woken.unwrap_or_else(PoisonError::into_inner).0.close
    }
}
