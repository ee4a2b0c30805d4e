//! The deadlines of the tasks that sleep, earliest first.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::task::Waker;

use plimsoll_measure::Moment;

/// Deadlines with the tasks to wake; equal ones in the order in which they were added.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    heap: RefCell<BinaryHeap<Reverse<Deadline>>>,
    next_id: Cell<u64>,
}

#[derive(Debug)]
struct Deadline {
    at: Moment,
    /// Orders equal deadlines.
    id: u64,
    waker: Waker,
}

impl Deadlines {
    /// Adds a deadline.
    pub(crate) fn push(&self, at: Moment, waker: Waker) {
        let id = self.next_id.get();
        self.next_id.set(id + 1);
        self.heap.borrow_mut().push(Reverse(Deadline { at, id, waker }));
    }

    /// The earliest deadline.
    pub(crate) fn earliest(&self) -> Option<Moment> {
        self.heap.borrow().peek().map(|Reverse(deadline)| deadline.at)
    }

    /// Wakes the tasks whose deadline has come.
    pub(crate) fn wake_due(&self, now: Moment) {
        let mut heap = self.heap.borrow_mut();
        while heap.peek().is_some_and(|Reverse(deadline)| deadline.at <= now) {
            if let Some(Reverse(deadline)) = heap.pop() {
                deadline.waker.wake();
            }
        }
    }
}

impl PartialEq for Deadline {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.id) == (other.at, other.id)
    }
}

impl Eq for Deadline {}

impl PartialOrd for Deadline {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Deadline {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.id).cmp(&(other.at, other.id))
    }
}
