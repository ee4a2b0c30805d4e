//! The bound of the queue, and the tasks that wait for room.

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
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, taken: AtomicUsize::new(0), waiting: Mutex::default() }
    }

    /// Takes a place; gives how many were taken before, or nothing when there is none.
    pub(crate) fn reserve(&self) -> Option<usize> {
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

    /// Gives places back and wakes all who wait.
    pub(crate) fn release(&self, places: usize) {
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
        let valid = |t: &WaiterTicket| t.round == waiting.round && t.waker.will_wake(waker);
        if !ticket.as_ref().is_some_and(valid) {
            waiting.wakers.push(waker.clone());
            *ticket = Some(WaiterTicket { waker: waker.clone(), round: waiting.round });
        }
    }
}
