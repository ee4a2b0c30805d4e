//! The body of a proxied response: streamed from the upstream to the client chunk by chunk, at the
//! client's pace, never buffered as a whole.

use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body as _, Incoming, SizeHint};
use plimsoll_gateway_dialect::{DialectError, Endpoint, error_event};
use tokio::time::{Instant, Sleep, sleep};

use crate::base::memory::{MemoryBudget, MemoryReservation, UNCOUNTED};
use crate::exchange::request_context::RequestContext;
use crate::exchange::worker::Worker;
use crate::http::body_filter::{BodyFilter, BoxError, LastWords};
use crate::http::decode::DecodeError;
use crate::upstream::fair_queue::{BULK, FairQueue};
use crate::upstream::{InFlightGuard, Pool, UpstreamConn};

/// Why a proxied response was aborted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("the upstream sent nothing for too long")]
    IdleTimeout,
    #[error("the gateway holds too many messages")]
    NoMemory,
}

/// The state of a body.
#[derive(Debug, PartialEq, Eq)]
enum BodyState {
    Streaming,
    /// The upstream's body and the remaining output of all filters were sent.
    Ended,
}

/// The body of a proxied response. Dropping it early closes the upstream's connection, which tells
/// the upstream.
pub(crate) struct ProxyBody {
    source: Source,
    state: BodyState,
    filters: Vec<Box<dyn BodyFilter>>,
    memory: Arc<MemoryBudget>,
    fair_queue: Rc<FairQueue>,
    /// Whether the last chunk was large: then other tasks run before the next.
    is_bulk: bool,
    /// Memory reserved for bytes in the filters.
    held: Option<MemoryReservation>,
    context: Option<Box<RequestContext>>,
    idle: IdleTimeout,
    error: Option<BoxError>,
    /// Whether the last chunk was the error event.
    has_last_words: bool,
    events: Option<Events>,
}

/// A stream of events, which can report why it ends early.
struct Events {
    endpoint: Endpoint,
    /// Whether the sent bytes end with a complete event.
    is_between: bool,
}

/// The source of a body.
pub(crate) struct Source {
    pub(crate) incoming: Incoming,
    /// Returned to the pool at the end of the body.
    pub(crate) connection: Option<(Rc<Pool>, UpstreamConn)>,
    pub(crate) in_flight: InFlightGuard,
}

/// The longest pause between two chunks. The timer is created at the first wait for a chunk, and
/// reset only when it fires, so that it costs a long stream nothing per chunk.
struct IdleTimeout {
    limit: Duration,
    timer: Option<IdleTimer>,
}

struct IdleTimer {
    last_chunk: Instant,
    sleep: Pin<Box<Sleep>>,
}

impl ProxyBody {
    pub(crate) fn new(source: Source, worker: &Worker, idle_limit: Duration) -> Self {
        Self {
            source,
            state: BodyState::Streaming,
            filters: Vec::new(),
            memory: Arc::clone(&worker.state.memory),
            fair_queue: Rc::clone(&worker.fair_queue),
            is_bulk: false,
            held: None,
            context: None,
            idle: IdleTimeout { limit: idle_limit, timer: None },
            error: None,
            has_last_words: false,
            events: None,
        }
    }

    /// Marks the body as a stream of events of this endpoint, so that an error event reports an
    /// early end.
    pub(crate) fn tell_why(&mut self, endpoint: Endpoint) {
        self.events = Some(Events { endpoint, is_between: true });
    }

    /// Adds a filter after the present ones.
    pub(crate) fn add_filter(&mut self, filter: Box<dyn BodyFilter>) {
        self.filters.push(filter);
    }

    /// Sets the context that finishes together with the body.
    pub(crate) fn set_context(&mut self, context: Box<RequestContext>) {
        self.context = Some(context);
    }

    /// Whether the length announced by the upstream is invalid.
    pub(crate) fn changes_length(&self) -> bool {
        self.filters.iter().any(|filter| !filter.is_transparent())
    }

    pub(crate) fn is_end_stream(&self) -> bool {
        match self.state {
            BodyState::Ended => true,
            BodyState::Streaming => !self.changes_length() && self.source.incoming.is_end_stream(),
        }
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        if self.changes_length() { SizeHint::default() } else { self.source.incoming.size_hint() }
    }

    /// The next chunk for the client.
    ///
    /// # Errors
    /// The response was aborted. hyper then closes the connection without flushing its buffer, so
    /// the error is returned one poll later, when all earlier chunks are on their way.
    pub(crate) fn poll_chunk(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, BoxError>>> {
        if let Some(error) = self.error.take() {
            if std::mem::take(&mut self.has_last_words) {
                return self.abort_soon(context, error);
            }
            return Poll::Ready(Some(Err(error)));
        }
        let chunk = ready!(self.poll_next(context));
        if let Some(Err(error)) = chunk {
            if let Some(context) = &self.context {
                context.ended_early.set(Some(reason(&error)));
            }
            let last_words = self.last_words(&error);
            if last_words.is_empty() {
                return self.abort_soon(context, error);
            }
            (self.error, self.has_last_words) = (Some(error), true);
            return Poll::Ready(Some(Ok(last_words)));
        }
        if let (Some(events), Some(Ok(chunk))) = (&mut self.events, &chunk) {
            events.is_between = ends_event(chunk);
        }
        Poll::Ready(chunk)
    }

    /// Aborts at the next poll.
    fn abort_soon<T>(&mut self, context: &Context<'_>, error: BoxError) -> Poll<T> {
        self.error = Some(error);
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// The error event before the body is aborted. Nothing can be sent in the middle of an event.
    fn last_words(&mut self, error: &BoxError) -> Bytes {
        if let Some(words) = error.downcast_ref::<LastWords>() {
            return words.bytes.clone();
        }
        let Some(events) = self.events.as_ref().filter(|events| events.is_between) else {
            return Bytes::new();
        };
        let message = match error.downcast_ref::<hyper::Error>() {
            Some(_) => "the upstream broke off in the middle of its answer".to_owned(),
            None => error.to_string(),
        };
        Bytes::from(error_event(events.endpoint, &message))
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, BoxError>>> {
        loop {
            if self.state == BodyState::Ended {
                return Poll::Ready(None);
            }
            if self.is_bulk {
                ready!(self.fair_queue.poll_step(context));
                self.is_bulk = false;
            }
            let chunk = match ready!(self.poll_incoming(context)) {
                Some(chunk) => chunk.and_then(|chunk| self.filter(chunk)),
                None => self.end(),
            };
            let chunk = match chunk {
                Ok(chunk) => chunk,
                Err(error) => return Poll::Ready(Some(Err(error))),
            };
            self.is_bulk = chunk.len() >= BULK;
            if !chunk.is_empty() {
                self.context.iter_mut().for_each(|context| context.count_sent(chunk.len()));
                return Poll::Ready(Some(Ok(chunk)));
            }
        }
    }

    /// The upstream's next chunk; trailers are dropped.
    fn poll_incoming(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, BoxError>>> {
        let Poll::Ready(frame) = Pin::new(&mut self.source.incoming).poll_frame(context) else {
            return self.idle.poll(context).map(|()| Some(Err(BodyError::IdleTimeout.into())));
        };
        self.idle.reset();
        if let Some(context) = &self.context {
            context.note_upstream_read();
        }
        Poll::Ready(frame.map(|frame| match frame {
            Ok(frame) => Ok(frame.into_data().unwrap_or_default()),
            Err(error) => Err(error.into()),
        }))
    }

    fn filter(&mut self, chunk: Bytes) -> Result<Bytes, BoxError> {
        let chunk = run_filters(&mut self.filters, chunk)?;
        self.count_held()?;
        Ok(chunk)
    }

    /// Counts the bytes held by filters.
    fn count_held(&mut self) -> Result<(), BoxError> {
        let bytes: usize = self.filters.iter().map(|filter| filter.buffered_bytes()).sum();
        let is_small = self.held.is_none() && bytes <= UNCOUNTED;
        if is_small || self.memory.hold_in(&mut self.held, bytes) {
            return Ok(());
        }
        Err(BodyError::NoMemory.into())
    }

    /// Ends all filters; the rest of each passes the later filters.
    fn end(&mut self) -> Result<Bytes, BoxError> {
        let mut rest = Vec::new();
        for index in 0..self.filters.len() {
            let held = self.filters[index].end();
            let held =
                held.map_err(|error| pass_last_words(error, &mut self.filters[index + 1..]))?;
            rest.extend_from_slice(&run_filters(&mut self.filters[index + 1..], held)?);
        }
        self.state = BodyState::Ended;
        self.release();
        Ok(Bytes::from(rest))
    }

    /// Returns the connection to the pool.
    fn release(&mut self) {
        if let Some((pool, connection)) = self.source.connection.take() {
            pool.release(&self.source.in_flight.endpoint, connection);
        }
    }
}

/// Passes a chunk through filters, until one of them returns no bytes.
fn run_filters(filters: &mut [Box<dyn BodyFilter>], chunk: Bytes) -> Result<Bytes, BoxError> {
    let mut chunk = chunk;
    for index in 0..filters.len() {
        if chunk.is_empty() {
            break;
        }
        match filters[index].chunk(chunk) {
            Ok(next) => chunk = next,
            Err(error) => return Err(pass_last_words(error, &mut filters[index + 1..])),
        }
    }
    Ok(chunk)
}

/// The last bytes of a filter pass the later filters, with the bytes held by these.
fn pass_last_words(error: BoxError, behind: &mut [Box<dyn BodyFilter>]) -> BoxError {
    let LastWords { bytes, source } = match error.downcast::<LastWords>() {
        Ok(words) => *words,
        Err(other) => return other,
    };
    let Ok(passed) = run_filters(behind, bytes) else { return source };
    let mut bytes = passed.to_vec();
    for index in 0..behind.len() {
        if let Ok(rest) =
            behind[index].end().and_then(|rest| run_filters(&mut behind[index + 1..], rest))
        {
            bytes.extend_from_slice(&rest);
        }
    }
    LastWords { bytes: Bytes::from(bytes), source }.into()
}

/// Whether bytes end with the empty line of an event.
fn ends_event(bytes: &[u8]) -> bool {
    [&b"\n\n"[..], b"\r\n\r\n", b"\r\r", b"\n\r\n"].iter().any(|end| bytes.ends_with(end))
}

/// The reason of an early end, for log rows.
fn reason(error: &BoxError) -> &'static str {
    let error = error.downcast_ref::<LastWords>().map_or(error, |words| &words.source);
    match (error.downcast_ref(), error.downcast_ref()) {
        (Some(BodyError::IdleTimeout), _) => "upstream_idle",
        (Some(BodyError::NoMemory), _) => "no_memory",
        (None, Some(DialectError::Truncated)) => "upstream_truncated",
        (None, Some(_)) => "not_translated",
        (None, None) if error.is::<hyper::Error>() => "upstream_broke_off",
        (None, None) if error.is::<DecodeError>() => "not_decoded",
        (None, None) => "not_readable",
    }
}

impl Drop for ProxyBody {
    fn drop(&mut self) {
        if self.source.incoming.is_end_stream() {
            self.release();
            // hyper does not poll a body of known length for its end.
            if self.state == BodyState::Streaming {
                self.filters.iter_mut().for_each(|filter| drop(filter.end()));
            }
            self.state = BodyState::Ended;
        }
        // Filters report what they observed when they are dropped: before the context is finished.
        self.filters.clear();
        let complete = self.state == BodyState::Ended;
        if let Some(context) = &mut self.context {
            let known = context.ended_early.get();
            context.ended_early.set(known.or_else(|| (!complete).then_some("client_gone")));
            context.finish(complete);
        }
    }
}

impl IdleTimeout {
    fn reset(&mut self) {
        if let Some(timer) = &mut self.timer {
            timer.last_chunk = Instant::now();
        }
    }

    /// Ready when nothing arrived for too long.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let limit = self.limit;
        let IdleTimer { last_chunk, sleep } = self.timer.get_or_insert_with(|| {
            let sleep = Box::pin(sleep(limit));
            IdleTimer { last_chunk: Instant::now(), sleep }
        });
        loop {
            ready!(sleep.as_mut().poll(context));
            let due = *last_chunk + limit;
            if due <= Instant::now() {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(due);
        }
    }
}
