//! Sends the requests of a busy worker in small batches
//! (`docs/adr/0089-a-busy-worker-works-in-batches.md`).

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::mem;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};

use plimsoll_measure::{Clock, Moment};
use tokio::net::TcpStream;

use crate::buffers::EncodedRequest;
use crate::http1::OutgoingRequest;
use crate::look_times::LookTimes;
use crate::socket::send_plain;

/// Maximum batch size. Larger batches save little, and each request waits for those before it.
const MOST: usize = 8;
/// Number of requests between two sleeps from which a worker is busy. With fewer, it has time to
/// send each at once.
const BUSY: u32 = 16;

/// Queue for the requests of one worker while it is busy.
///
/// Sending takes most of the time of a request, in kernel code and memory that the processor's
/// caches lose while the worker handles a response. So a busy worker first handles a few responses
/// and then sends their next requests.
#[derive(Debug)]
pub struct SendQueue {
    looks: Arc<LookTimes>,
    state: RefCell<State>,
    /// Whether a task sends the queued requests.
    is_driven: Cell<bool>,
    /// Waker of that task, unless it has been woken.
    sender: RefCell<Option<Waker>>,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<Rc<QueuedRequest>>,
    /// Head and body of a small request, joined for one write.
    joined: Vec<u8>,
    /// Buffers of sent requests.
    spent: Vec<EncodedRequest>,
    /// Time at which the worker last woke.
    woke: Moment,
    /// Number of requests since then, and between that sleep and the previous one.
    requests: u32,
    requests_before: u32,
}

impl SendQueue {
    /// Creates an empty queue for a worker with these poll times. Requests are queued only while
    /// [`SendQueue::drive`] runs.
    pub fn new(looks: Arc<LookTimes>) -> Self {
        let (state, is_driven, sender) = Default::default();
        Self { looks, state, is_driven, sender }
    }

    /// Sends queued requests as soon as the worker's other tasks have had their turn. Never ends.
    pub async fn drive<C: Clock>(&self, clock: &C) -> Infallible {
        self.is_driven.set(true);
        poll_fn(|context| {
            self.state.borrow_mut().send(clock);
            self.sender.replace(Some(context.waker().clone()));
            Poll::Pending
        })
        .await
    }

    /// Passes the buffers of sent requests to `take`.
    pub fn take_spent(&self, take: impl FnMut(EncodedRequest)) {
        let spent = &mut self.state.borrow_mut().spent;
        if !spent.is_empty() {
            spent.drain(..).for_each(take);
        }
    }

    /// Counts a request that is about to be sent. Returns whether it should wait because the worker
    /// is busy.
    fn count_request(&self) -> bool {
        let woke = self.looks.woke();
        {
            let state = &mut *self.state.borrow_mut();
            if state.woke != woke {
                state.woke = woke;
                state.requests_before = mem::take(&mut state.requests);
            }
            state.requests = state.requests.saturating_add(1);
        }
        self.is_busy()
    }

    /// Whether the worker is busy, and a task sends queued requests.
    fn is_busy(&self) -> bool {
        let State { requests, requests_before, .. } = &*self.state.borrow();
        self.is_driven.get() && *requests.max(requests_before) >= BUSY
    }

    fn push<C: Clock>(&self, request: Rc<QueuedRequest>, clock: &C) {
        if let Some(sender) = self.sender.take() {
            sender.wake();
        }
        let mut state = self.state.borrow_mut();
        state.waiting.push(request);
        if state.waiting.len() >= MOST {
            state.send(clock);
        }
    }
}

impl State {
    fn send<C: Clock>(&mut self, clock: &C) {
        let Self { waiting, joined, spent, .. } = self;
        for request in waiting.drain(..) {
            spent.extend(request.send(clock, joined));
        }
    }
}

/// The place of one connection in its worker's queue. A pointer, because every waiting connection
/// stores it.
#[derive(Debug)]
pub(crate) struct SendPlace(Rc<QueuedRequest>);

impl SendPlace {
    /// Creates the place of this connection.
    pub(crate) fn new(queue: Rc<SendQueue>, tcp: Rc<TcpStream>) -> Self {
        Self(Rc::new(QueuedRequest { queue, tcp, state: RefCell::default() }))
    }

    /// Whether the worker is busy.
    pub(crate) fn is_busy(&self) -> bool {
        self.0.queue.is_busy()
    }

    /// Counts a request that is about to be sent. If the worker is busy, queues it, and wakes the
    /// task if it cannot be sent completely.
    pub(crate) fn hold<C: Clock>(
        &self,
        outgoing: &mut OutgoingRequest,
        waker: &Waker,
        clock: &C,
    ) -> bool {
        let is_held = self.0.queue.count_request();
        if is_held {
            self.0.state.replace(Held::Waits(mem::take(outgoing), waker.clone()));
            self.0.queue.push(Rc::clone(&self.0), clock);
        }
        is_held
    }

    /// Returns the queued request or its rest, and the time at which its sent part was sent; `None`
    /// if no part was sent.
    pub(crate) fn take_back(&self, outgoing: &mut OutgoingRequest) -> io::Result<Option<Moment>> {
        let (left, tried) = match self.0.state.take() {
            Held::Nothing => return Ok(None),
            Held::Waits(left, _) => (left, Ok(None)),
            Held::Tried(left, tried) => (left, tried.map(Some)),
        };
        *outgoing = left;
        tried
    }
}

/// The request of one connection, from queueing until it is taken back.
#[derive(Debug)]
struct QueuedRequest {
    queue: Rc<SendQueue>,
    tcp: Rc<TcpStream>,
    state: RefCell<Held>,
}

#[derive(Debug, Default)]
enum Held {
    #[default]
    Nothing,
    /// A queued request, and the task that waits for its response.
    Waits(OutgoingRequest, Waker),
    /// The rest of a request after the socket accepted as much as it could, and the time of that.
    Tried(OutgoingRequest, io::Result<Moment>),
}

impl QueuedRequest {
    /// Sends as much as the socket accepts, unless the request was taken back. Returns its buffers
    /// once it is sent, and wakes its task if some of it is left.
    fn send<C: Clock>(&self, clock: &C, joined: &mut Vec<u8>) -> Option<EncodedRequest> {
        let state = &mut *self.state.borrow_mut();
        let Held::Waits(mut outgoing, waker) = mem::take(state) else { return None };
        let sent = send_plain(&self.tcp, joined, &mut outgoing);
        let tried = match sent {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(clock.now()),
        };
        let spent = outgoing.is_done().then(|| outgoing.take());
        *state = Held::Tried(outgoing, tried);
        if spent.is_none() {
            waker.wake();
        }
        spent
    }
}

#[cfg(test)]
mod tests;
