//! Keeps bulk work from starving other requests of the same worker.
//!
//! If thousands of downloads or new requests become ready at the same time, serving all of them
//! first would delay other requests by seconds. So the worker serves only some of them before it
//! polls its sockets and other tasks again; the rest waits in line. Built-in responses, such as
//! health, never wait here.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use tokio::sync::Notify;
use tokio::task::yield_now;

use crate::base::clock;

/// Chunks of a body from this size on take turns.
pub(crate) const BULK: usize = 4 << 10;

/// Steps in one turn: large chunks, and requests that begin.
const STEPS: usize = 32;

/// The shortest turn in nanoseconds, if the line is empty. A worker with fewer steps in this time
/// never builds a line.
const TURN: u64 = 500_000;

/// The turns of one worker.
#[derive(Debug, Default)]
pub(crate) struct FairQueue {
    /// Monotonic nanoseconds at which this turn began.
    begin: Cell<u64>,
    steps: Cell<usize>,
    line: RefCell<VecDeque<Waker>>,
    has_line: Notify,
}

impl FairQueue {
    /// Waits until a step is possible.
    pub(crate) async fn step(&self) {
        poll_fn(|context| self.poll_step(context)).await;
    }

    /// Ready when a step is possible in this turn.
    pub(crate) fn poll_step(&self, context: &Context<'_>) -> Poll<()> {
        if self.steps.get() >= STEPS && !self.begin_if_over() {
            self.line.borrow_mut().push_back(context.waker().clone());
            self.has_line.notify_one();
            return Poll::Pending;
        }
        self.steps.set(self.steps.get() + 1);
        Poll::Ready(())
    }

    /// Begins a new turn if the line is empty and this turn was long enough.
    fn begin_if_over(&self) -> bool {
        let now = clock::now();
        let over = self.line.borrow().is_empty() && now - self.begin.get() >= TURN;
        if over {
            self.begin.set(now);
            self.steps.set(0);
        }
        over
    }

    /// Begins turns while the line is not empty, each after all other tasks have run.
    #[expect(clippy::infinite_loop, reason = "the worker's runtime ends it")]
    pub(crate) async fn run(self: Rc<Self>) {
        loop {
            self.has_line.notified().await;
            yield_now().await;
            self.begin.set(clock::now());
            self.steps.set(0);
            let mut line = self.line.borrow_mut();
            let next = line.len().min(STEPS);
            line.drain(..next).for_each(Waker::wake);
            if !line.is_empty() {
                // Woken tasks may have been dropped and then make no step.
                self.has_line.notify_one();
            }
            if line.capacity() > 2 * line.len().max(STEPS) {
                line.shrink_to_fit();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn step(fair_queue: Rc<FairQueue>, made: Rc<Cell<usize>>) {
        fair_queue.step().await;
        made.set(made.get() + 1);
    }

    #[test]
    fn a_crowd_waits_in_line_and_all_of_it_gets_its_turn() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build_local(tokio::runtime::LocalOptions::default())
            .unwrap();
        let made = Rc::new(Cell::new(0));
        runtime.block_on(async {
            let fair_queue = Rc::<FairQueue>::default();
            tokio::task::spawn_local(Rc::clone(&fair_queue).run());
            let tasks: Vec<_> = (0..1_000)
                .map(|_| tokio::task::spawn_local(step(Rc::clone(&fair_queue), Rc::clone(&made))))
                .collect();
            // Some give up while they wait.
            tasks.iter().skip(100).step_by(2).for_each(tokio::task::JoinHandle::abort);
            yield_now().await;
            yield_now().await;
            assert!(made.get() < 500, "all at once: {}", made.get());
            for task in tasks {
                let _ = task.await;
            }
        });
        assert_eq!(made.get(), 550);
    }
}
