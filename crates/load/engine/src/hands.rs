//! Tasks of the open model, used again and again.
//!
//! The state of a conversation under way is some kilobytes. A new task for each arrival would copy that much to the heap
//! every time, which took a seventh of the processor at 50,000 arrivals per second.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use plimsoll_schedule::Arrival;
use tokio::task::spawn_local;

use crate::conversation::Start;
use crate::pacer::serve;
use crate::worker::Worker;

/// Tasks that are kept while they have nothing to do: a burst must not be paid for in memory until the end.
const IDLE: usize = 256;

/// What a task is to do.
type Job = (Arrival, Start);

/// The tasks that have nothing to do, the latest at the end.
#[derive(Debug, Default)]
pub(crate) struct Hands(RefCell<Vec<Rc<Hand>>>);

/// Where an idle task finds its next job.
#[derive(Debug, Default)]
struct Hand {
    job: RefCell<Option<Job>>,
    waker: RefCell<Option<Waker>>,
}

impl Hands {
    /// Gives an arrival to an idle task, or to a new one.
    pub(crate) fn serve(worker: &Rc<Worker>, arrival: Arrival, start: Start) {
        let hand = worker.hands.0.borrow_mut().pop();
        let known = hand.is_some();
        let hand = hand.unwrap_or_default();
        hand.job.replace(Some((arrival, start)));
        if known {
            if let Some(waker) = hand.waker.take() {
                waker.wake();
            }
        } else {
            spawn_local(work(Rc::clone(worker), hand));
        }
    }

    /// Takes a task back that has nothing to do; false if there are enough of them.
    fn keep(&self, hand: &Rc<Hand>) -> bool {
        let mut idle = self.0.borrow_mut();
        let room = idle.len() < IDLE;
        if room {
            idle.push(Rc::clone(hand));
        }
        room
    }
}

/// One job after another.
async fn work(worker: Rc<Worker>, hand: Rc<Hand>) {
    loop {
        let (arrival, start) = hand.next().await;
        serve(&worker, arrival, start).await;
        if !worker.hands.keep(&hand) {
            return;
        }
    }
}

impl Hand {
    async fn next(&self) -> Job {
        poll_fn(|context| {
            let job = self.job.take();
            if job.is_none() {
                self.waker.replace(Some(context.waker().clone()));
            }
            job.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}
