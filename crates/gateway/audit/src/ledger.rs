//! The writer's books, and the list of lanes.
//!
//! Rows move from a lane to the writer only under this lock. A snapshot that holds it therefore sees
//! every row exactly once, although the lanes are read one after another: whatever a lane takes meanwhile
//! is in its `accepted` and in its `waiting` alike.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::lane::{Counts, Lane, recycled};
use crate::stats::{Drops, Stats};

/// A lock whose holder panicked is used on: the numbers in it are whole between any two statements.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the writer did, and with whose rows.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    lanes: Vec<Arc<Mutex<Lane>>>,
    /// What lanes counted whose producers are gone.
    past: Counts,
    in_hand: u64,
    written: u64,
    dropped: Drops,
    retries: u64,
    closed: bool,
    error: Option<String>,
}

impl Ledger {
    /// A lane for a new producer.
    pub(crate) fn add_lane(&mut self) -> Arc<Mutex<Lane>> {
        let mut lane = Lane::default();
        if self.closed {
            lane.close();
        }
        let lane = Arc::new(Mutex::new(lane));
        self.lanes.push(Arc::clone(&lane));
        lane
    }

    /// Moves all rows of all lanes into the writer's hand; after the last time, lanes take no more.
    pub(crate) fn collect(&mut self, hand: &mut Vec<u8>, spare: &mut Vec<u8>, last: bool) {
        self.closed |= last;
        for lane in &self.lanes {
            let (lines, rows) = lock(lane).take(std::mem::take(spare), last);
            self.in_hand += rows;
            hand.extend_from_slice(&lines);
            *spare = recycled(lines);
        }
        self.forget_lanes();
    }

    /// Drops lanes that nobody can write to any more; they are empty now.
    fn forget_lanes(&mut self) {
        let past = &mut self.past;
        self.lanes.retain(|lane| {
            let used = Arc::strong_count(lane) > 1;
            let counts = lock(lane).counts();
            if used || counts.waiting > 0 {
                return true;
            }
            add(past, counts);
            false
        });
    }

    /// Rows of the hand that are on their way no more.
    pub(crate) const fn settle(&mut self, written: u64, dropped: Drops) {
        self.in_hand -= written + dropped.total();
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
        let mut all = self.past;
        for lane in &self.lanes {
            add(&mut all, lock(lane).counts());
        }
        Stats {
            accepted: all.accepted,
            written: self.written,
            dropped: sum(all.dropped, self.dropped),
            queued: all.waiting + self.in_hand,
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
