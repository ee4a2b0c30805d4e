//! Producers: one for each worker thread.

use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use crate::accounting::lock;
use crate::capacity::WaiterTicket;
use crate::producer_buffer::ProducerBuffer;
use crate::queue::Queue;
use crate::row::Row;

/// Whether a row was queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a row may have been dropped, although it is counted then"]
pub enum Offered {
    /// It waits for the writer.
    Queued,
    /// The queue is full, or the audit is closed; the loss is counted.
    Dropped,
}

/// Takes rows. Each worker thread should have its own: two threads that share one wait for each
/// other, for the time of one line.
#[derive(Debug)]
pub struct Producer {
    queue: Arc<Queue>,
    producer_buffer: Arc<Mutex<ProducerBuffer>>,
}

impl Producer {
    pub(crate) fn new(queue: &Arc<Queue>) -> Self {
        let producer_buffer = lock(&queue.accounting).add_buffer();
        Self { queue: Arc::clone(queue), producer_buffer }
    }

    /// Takes a row when there is room; never waits. What is dropped is counted.
    pub fn offer(&self, row: &Row<'_>) -> Offered {
        self.try_offer(row).unwrap_or_else(|| {
            lock(&self.producer_buffer).reject();
            Offered::Dropped
        })
    }

    /// Takes a row as soon as there is room; drops it only when the audit is closed.
    ///
    /// # Cancel safety
    /// A row whose future is dropped before it was ready was not taken, and is not counted.
    pub const fn offer_or_wait<'a>(&'a self, row: &'a Row<'a>) -> OfferOrWait<'a> {
        OfferOrWait { producer: self, row, ticket: None }
    }

    /// The same, and blocks the thread meanwhile: not for threads that run an async runtime.
    pub fn offer_blocking(&self, row: &Row<'_>) -> Offered {
        let mut offer = pin!(self.offer_or_wait(row));
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut context = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(offered) = offer.as_mut().poll(&mut context) {
                return offered;
            }
            std::thread::park();
        }
    }

    /// Nothing when there is no room.
    fn try_offer(&self, row: &Row<'_>) -> Option<Offered> {
        let before = self.queue.capacity.reserve()?;
        {
            // Counted before the writer can take the row, so that it is never given back first.
            let mut producer_buffer = lock(&self.producer_buffer);
            let Some(bytes) = producer_buffer.push(row) else {
                self.queue.capacity.release(1, 0);
                return Some(Offered::Dropped);
            };
            self.queue.capacity.add_bytes(bytes);
        }
        if before + 1 == self.queue.batch {
            self.queue.wake_writer();
        }
        Some(Offered::Queued)
    }

    /// A full queue of a closed audit never gets room.
    fn reject_when_closed(&self) -> Option<Offered> {
        let mut producer_buffer = lock(&self.producer_buffer);
        producer_buffer.is_closed().then(|| {
            producer_buffer.reject();
            Offered::Dropped
        })
    }
}

/// Waits until there is room for a row, see [`Producer::offer_or_wait`].
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct OfferOrWait<'a> {
    producer: &'a Producer,
    row: &'a Row<'a>,
    ticket: Option<WaiterTicket>,
}

impl Future for OfferOrWait<'_> {
    type Output = Offered;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Offered> {
        let this = &mut *self;
        let producer = this.producer;
        if let Some(offered) = producer.try_offer(this.row) {
            return Poll::Ready(offered);
        }
        producer.queue.capacity.register(&mut this.ticket, context.waker());
        match producer.try_offer(this.row).or_else(|| producer.reject_when_closed()) {
            Some(offered) => Poll::Ready(offered),
            None => Poll::Pending,
        }
    }
}

/// Wakes a thread that is parked.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
