//! Fairness between large bodies and all else on a worker.
//!
//! Thousands of downloads that are ready at the same time would each get a turn before a new request
//! gets one, which takes seconds. So only some of them get a turn before the worker looks at its
//! sockets and its other tasks again; the rest wait in line.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use tokio::sync::Notify;
use tokio::task::yield_now;

/// Chunks from this size on are counted.
pub(crate) const BULK: usize = 4 << 10;

/// Large chunks that pass before all else gets a turn: about a millisecond of work.
const CHUNKS_PER_TURN: usize = 64;

/// The line of large bodies of one worker.
#[derive(Debug, Default)]
pub(crate) struct BulkGate {
    passed: Cell<usize>,
    waiting: RefCell<VecDeque<Waker>>,
    turn_is_over: Notify,
}

impl BulkGate {
    /// Ready when a large chunk may pass in this turn.
    pub(crate) fn poll_pass(&self, context: &Context<'_>) -> Poll<()> {
        let passed = self.passed.get();
        if passed < CHUNKS_PER_TURN {
            if passed == 0 {
                self.turn_is_over.notify_one();
            }
            self.passed.set(passed + 1);
            return Poll::Ready(());
        }
        self.waiting.borrow_mut().push_back(context.waker().clone());
        Poll::Pending
    }

    /// Begins a new turn whenever one is over and all else had its own.
    #[expect(clippy::infinite_loop, reason = "the worker's runtime ends it")]
    pub(crate) async fn run(self: Rc<Self>) {
        loop {
            self.turn_is_over.notified().await;
            yield_now().await;
            self.passed.set(0);
            let mut waiting = self.waiting.borrow_mut();
            let next = waiting.len().min(CHUNKS_PER_TURN);
            waiting.drain(..next).for_each(Waker::wake);
            if !waiting.is_empty() {
                // Those that were woken may be gone, and then begin no turn.
                self.turn_is_over.notify_one();
            }
            if waiting.capacity() > 2 * waiting.len().max(CHUNKS_PER_TURN) {
                waiting.shrink_to_fit();
            }
        }
    }
}
