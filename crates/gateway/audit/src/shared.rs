//! What producers and the writer share.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::ledger::{Ledger, lock};
use crate::room::Room;

/// The queue's two ends meet here.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) room: Room,
    pub(crate) ledger: Mutex<Ledger>,
    /// Rows that are worth a batch of their own.
    pub(crate) batch: usize,
    call: Mutex<Call>,
    called: Condvar,
}

/// Why the writer should not sleep on.
#[derive(Debug, Default)]
struct Call {
    batch: bool,
    close: bool,
}

impl Shared {
    pub(crate) fn new(queue: usize, batch: usize) -> Self {
        Self {
            room: Room::new(queue),
            ledger: Mutex::default(),
            batch: batch.min(queue),
            call: Mutex::default(),
            called: Condvar::new(),
        }
    }

    /// A batch waits.
    pub(crate) fn call_writer(&self) {
        lock(&self.call).batch = true;
        self.called.notify_all();
    }

    /// The writer shall empty the queue and end.
    pub(crate) fn call_close(&self) {
        lock(&self.call).close = true;
        self.called.notify_all();
    }

    /// Sleeps until a batch waits, the interval is over or the audit is closed; says whether it is closed.
    pub(crate) fn wait(&self, interval: Duration) -> bool {
        let call = lock(&self.call);
        let sleeps = |call: &mut Call| !call.batch && !call.close && self.room.taken() < self.batch;
        let woken = self.called.wait_timeout_while(call, interval, sleeps);
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
