//! The queue for connections, first come, first served.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use plimsoll_measure::{ConnectPhases, Moment};

use super::demand::Demand;
use super::pooled::Pooled;
use crate::failure::Failure;

/// The end of a wait.
#[derive(Debug)]
pub(super) struct Delivery<C> {
    /// Durations of the handshake that ended the wait.
    pub(super) phases: ConnectPhases,
    /// Start of the handshake; `None` for a freed connection.
    pub(super) started: Option<Moment>,
    /// The connection.
    pub(super) connection: Result<Pooled<C>, Failure>,
}

/// A demand in the queue.
#[derive(Debug)]
pub(super) struct Waiter<C> {
    pub(super) demand: Demand,
    /// Whether it was released late, or waits behind one that was: the generator's part.
    pub(super) is_ours: bool,
    delivery: RefCell<Option<Delivery<C>>>,
    waker: RefCell<Option<Waker>>,
}

impl<C> Waiter<C> {
    /// Ends the wait.
    pub(super) fn deliver(&self, delivery: Delivery<C>) {
        self.delivery.replace(Some(delivery));
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Takes the delivery, if there is one.
    pub(super) fn take_delivery(&self) -> Option<Delivery<C>> {
        self.delivery.take()
    }

    pub(super) fn poll(&self, context: &Context<'_>) -> Poll<Delivery<C>> {
        if let Some(delivery) = self.take_delivery() {
            return Poll::Ready(delivery);
        }
        self.waker.replace(Some(context.waker().clone()));
        Poll::Pending
    }
}

/// The queue.
#[derive(Debug)]
pub(super) struct WaitQueue<C> {
    waiting: RefCell<VecDeque<Rc<Waiter<C>>>>,
    /// Number of demands that were not late.
    eager: Cell<usize>,
}

impl<C> Default for WaitQueue<C> {
    fn default() -> Self {
        Self { waiting: RefCell::default(), eager: Cell::new(0) }
    }
}

impl<C> WaitQueue<C> {
    pub(super) fn len(&self) -> usize {
        self.waiting.borrow().len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.borrow().is_empty()
    }

    /// Number of demands for which connections may be added.
    pub(super) const fn eager(&self) -> usize {
        self.eager.get()
    }

    /// Time since which the first one has waited.
    pub(super) fn first_since(&self) -> Option<Moment> {
        self.waiting.borrow().front().map(|waiter| waiter.demand.now)
    }

    /// Appends a demand.
    pub(super) fn push(&self, demand: Demand) -> Rc<Waiter<C>> {
        let waiter = Rc::new(Waiter {
            demand,
            is_ours: demand.is_late() || self.eager.get() < self.len(),
            delivery: RefCell::default(),
            waker: RefCell::default(),
        });
        self.eager.set(self.eager.get() + usize::from(!demand.is_late()));
        self.waiting.borrow_mut().push_back(Rc::clone(&waiter));
        waiter
    }

    /// Takes the first demand, or with `used` the first that accepts a used connection.
    pub(super) fn pop(&self, used: bool) -> Option<Rc<Waiter<C>>> {
        let mut waiting = self.waiting.borrow_mut();
        let index = waiting.iter().position(|waiter| !(used && waiter.demand.unused))?;
        let waiter = waiting.remove(index)?;
        self.eager.set(self.eager.get() - usize::from(!waiter.demand.is_late()));
        Some(waiter)
    }

    /// Removes a cancelled demand.
    pub(super) fn remove(&self, given_up: &Rc<Waiter<C>>) {
        let mut waiting = self.waiting.borrow_mut();
        if let Some(index) = waiting.iter().position(|waiter| Rc::ptr_eq(waiter, given_up)) {
            waiting.remove(index);
            self.eager.set(self.eager.get() - usize::from(!given_up.demand.is_late()));
        }
    }
}
