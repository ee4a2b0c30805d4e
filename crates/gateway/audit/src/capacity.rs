//! The bounds of the queue in rows and in bytes, and the tasks that wait for room.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;

use crate::accounting::lock;

/// Counts the places in use: rows in buffers and in the writer's batch.
///
/// Kept instead of a channel of the standard library: rows wait as bytes in per-producer buffers,
/// so none is allocated or moved one by one, and async producers can wait without a thread.
#[derive(Debug)]
pub(crate) struct QueueCapacity {
    capacity: usize,
    taken: AtomicUsize,
    /// Bytes from which on no row is taken: the last one may go beyond.
    most_bytes: usize,
    bytes: AtomicUsize,
    waiting: Mutex<Waiting>,
}

/// The tasks to wake when there is room.
#[derive(Debug, Default)]
struct Waiting {
    wakers: Vec<Waker>,
    /// Incremented when all are woken; a task registered in this round need not register again.
    round: u64,
}

/// Proof that a task is registered to be woken.
#[derive(Debug)]
pub(crate) struct WaiterTicket {
    waker: Waker,
    round: u64,
}

impl QueueCapacity {
    pub(crate) fn new(capacity: usize, most_bytes: usize) -> Self {
        Self {
            capacity,
            taken: AtomicUsize::new(0),
            most_bytes,
            bytes: AtomicUsize::new(0),
            waiting: Mutex::default(),
        }
    }

    /// Takes a place; gives how many were taken before, or nothing when there is none.
    pub(crate) fn reserve(&self) -> Option<usize> {
        if self.bytes.load(Ordering::Acquire) >= self.most_bytes {
            return None;
        }
        let before = self.taken.fetch_add(1, Ordering::AcqRel);
        if before < self.capacity {
            return Some(before);
        }
        // Between these two steps others may see one place less than there is, near a full queue
        // only.
        self.taken.fetch_sub(1, Ordering::AcqRel);
        None
    }

    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Acquire)
    }

    /// Counts the bytes of a row that took a place.
    pub(crate) fn add_bytes(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::AcqRel);
    }

    /// Gives places and bytes back and wakes all who wait.
    pub(crate) fn release(&self, places: usize, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::AcqRel);
        self.taken.fetch_sub(places, Ordering::AcqRel);
        let wakers = {
            let mut waiting = lock(&self.waiting);
            waiting.round += 1;
            std::mem::take(&mut waiting.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Wakes the task at the next release. The caller must try once more afterwards, because a
    /// release may have come before the registration.
    pub(crate) fn register(&self, ticket: &mut Option<WaiterTicket>, waker: &Waker) {
        let mut waiting = lock(&self.waiting);
        if !ticket
            .as_ref()
            .is_some_and(|t: &WaiterTicket| t.round == waiting.round && t.waker.will_wake(waker))
        {
            waiting.wakers.push(waker.clone());
            *ticket = Some(WaiterTicket { waker: waker.clone(), round: waiting.round });
        }
    }
}
