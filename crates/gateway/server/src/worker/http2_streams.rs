//! The streams of one HTTP/2 connection, each with a write timeout.
//!
//! A client may keep the window of a stream at zero and answer every PING. hyper waits for such a
//! client forever, so each stream is watched here: a piece of a response that is not written within
//! the limit resets its stream. The next piece is passed to hyper after the previous one was
//! written, so a stream holds one piece at most.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::rt::Executor;
use parking_lot::Mutex;
use tokio::task::spawn_local;
use tokio::time::{Instant, Sleep, sleep};

use crate::base::memory::{MemoryBudget, MemoryReservation, SHORT_PATIENCE};
use crate::exchange::proxy_body::BodyError;
use crate::exchange::response_body::ResponseBody;
use crate::http::body_filter::BoxError;

/// The cost of one stream beside its bytes: its task, its context, its head.
const STREAM_BYTES: usize = 8 << 10;

tokio::task_local! {
    /// The watch of the stream whose task runs.
    static STREAM: Rc<StreamWatch>;
}

/// The open streams of a connection. As hyper's executor it runs their tasks on the worker's
/// thread.
#[derive(Clone, Debug)]
pub(crate) struct Streams {
    open: Rc<OpenStreams>,
    /// Time for a client to read a piece.
    limit: Duration,
    memory: Arc<MemoryBudget>,
}

#[derive(Debug)]
struct OpenStreams {
    count: Cell<usize>,
    /// When the last stream began or ended.
    changed: Cell<Instant>,
}

/// Counts a stream as open until it is dropped.
struct OpenStream(
    Rc<OpenStreams>,
    #[expect(dead_code, reason = "held until it is dropped")] MemoryReservation,
);

impl Streams {
    pub(crate) fn new(limit: Duration, memory: &Arc<MemoryBudget>) -> Self {
        let open = OpenStreams { count: Cell::new(0), changed: Cell::new(Instant::now()) };
        Self { open: Rc::new(open), limit, memory: Arc::clone(memory) }
    }

    /// Waits until no stream was open for this long.
    pub(crate) async fn idle(&self, limit: Duration) {
        loop {
            let open = self.open.count.get() > 0;
            let since = if open { Instant::now() } else { self.open.changed.get() };
            let due = since + limit;
            if due <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(due).await;
        }
    }

    fn open(&self) -> Option<OpenStream> {
        let held = self.memory.hold(STREAM_BYTES)?;
        self.open.count.set(self.open.count.get() + 1);
        self.open.changed.set(Instant::now());
        Some(OpenStream(Rc::clone(&self.open), held))
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.count.set(self.0.count.get() - 1);
        self.0.changed.set(Instant::now());
    }
}

impl<F: Future<Output = ()> + 'static> Executor<F> for Streams {
    fn execute(&self, task: F) {
        // A stream whose task is dropped is reset.
        let Some(open) = self.open() else { return };
        let watch = Rc::new(StreamWatch::new(self.limit, &self.memory));
        spawn_local(async move {
            let _open = open;
            let mut task = pin!(STREAM.scope(Rc::clone(&watch), task));
            poll_fn(|context| match task.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(()),
                Poll::Pending => watch.poll_stalled(context),
            })
            .await;
        });
    }
}

/// The write state of a stream.
#[derive(Debug)]
struct StreamWatch {
    limit: Duration,
    memory: Arc<MemoryBudget>,
    delivery: Arc<Delivery>,
    /// The time at which the last piece was passed to hyper.
    since: Cell<Instant>,
    timer: RefCell<Option<Pin<Box<Sleep>>>>,
}

/// Whether a piece is being written, and the task that waits for it.
#[derive(Debug, Default)]
struct Delivery {
    pending: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl StreamWatch {
    fn new(limit: Duration, memory: &Arc<MemoryBudget>) -> Self {
        Self {
            limit,
            memory: Arc::clone(memory),
            delivery: Arc::default(),
            since: Cell::new(Instant::now()),
            timer: RefCell::new(None),
        }
    }

    /// Ready when the client did not read a piece in time.
    fn poll_stalled(&self, context: &mut Context<'_>) -> Poll<()> {
        if !self.delivery.is_pending() {
            return Poll::Pending;
        }
        let step = self.limit.min(SHORT_PATIENCE);
        let mut timer = self.timer.borrow_mut();
        let timer = timer.get_or_insert_with(|| Box::pin(sleep(step)));
        loop {
            ready!(timer.as_mut().poll(context));
            let waited = self.since.get().elapsed();
            if waited >= self.limit || (waited >= step && self.memory.is_short()) {
                return Poll::Ready(());
            }
            timer.as_mut().reset(Instant::now() + step);
        }
    }

    /// Passes a piece to hyper.
    fn hand_out(&self, bytes: Bytes) -> Result<Bytes, BoxError> {
        let held = self.memory.hold(bytes.len()).ok_or(BodyError::NoMemory)?;
        self.since.set(Instant::now());
        self.delivery.pending.store(true, Ordering::Relaxed);
        Ok(held.attach(Piece { bytes, delivery: Arc::clone(&self.delivery) }))
    }
}

impl Delivery {
    fn is_pending(&self) -> bool {
        self.pending.load(Ordering::Relaxed)
    }

    /// Ready when the last piece was written.
    fn poll_written(&self, context: &Context<'_>) -> Poll<()> {
        if !self.is_pending() {
            return Poll::Ready(());
        }
        *self.waker.lock() = Some(context.waker().clone());
        Poll::Pending
    }
}

/// A piece of a response, until it is written.
struct Piece {
    bytes: Bytes,
    delivery: Arc<Delivery>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.delivery.pending.store(false, Ordering::Relaxed);
        let waker = self.delivery.waker.lock().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The body of a response on a stream of HTTP/2.
pub(crate) struct WatchedBody {
    body: ResponseBody,
    /// `None` outside of a stream, which hyper never does.
    watch: Option<Rc<StreamWatch>>,
}

impl WatchedBody {
    /// Must be called in the task of the stream.
    pub(crate) fn new(body: ResponseBody) -> Self {
        Self { body, watch: STREAM.try_with(Rc::clone).ok() }
    }
}

impl Body for WatchedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        let Some(watch) = &this.watch else {
            return Pin::new(&mut this.body).poll_frame(context);
        };
        ready!(watch.delivery.poll_written(context));
        let frame = ready!(Pin::new(&mut this.body).poll_frame(context));
        let Some(Ok(frame)) = frame else { return Poll::Ready(frame) };
        Poll::Ready(Some(match frame.into_data() {
            Ok(bytes) if bytes.is_empty() => Ok(Frame::data(bytes)),
            Ok(bytes) => watch.hand_out(bytes).map(Frame::data),
            Err(other) => Ok(other),
        }))
    }

    /// Reports the end only after all bytes are written, so that the stream is watched until then.
    fn is_end_stream(&self) -> bool {
        let is_pending = self.watch.as_ref().is_some_and(|watch| watch.delivery.is_pending());
        !is_pending && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
