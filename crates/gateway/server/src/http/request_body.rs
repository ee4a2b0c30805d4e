//! Bodies of requests from the client to the upstream, bounded in size and time.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::header::{HeaderValue, RETRY_AFTER};
use tokio::time::{Sleep, sleep};

use crate::base::memory::{MemoryBudget, MemoryReservation};
use crate::http::body_filter::BoxError;
use crate::http::error_response::ErrorResponse;
use crate::http::whole_body::{self, Bounds, Unread};

/// Message to a client whose body exceeds its time limit.
pub(crate) const SLOW_BODY: &str = "the body did not arrive in time";

/// Message to a client whose body cannot be read to its end.
pub(crate) const BROKEN_BODY: &str = "the body is malformed or broke off";

/// Bodies up to this size are read before they are forwarded, so that they can be retried.
const MAX_BUFFERED: u64 = 64 << 10;

/// The most buffered bytes of a larger body: one HTTP/2 window.
const STREAMED_BYTES: usize = 128 << 10;

/// The most bytes of a body in memory that are written at once.
const PIECE: usize = 32 << 10;

/// The limits of a body.
#[derive(Clone, Copy)]
pub(crate) struct BodyBounds<'a> {
    pub(crate) limits: Bounds,
    /// The memory budget of all messages.
    pub(crate) memory: &'a Arc<MemoryBudget>,
}

/// The body of a request to an upstream.
#[derive(Debug)]
pub(crate) enum RequestBody {
    /// In memory, so it can be sent again.
    Full(Bytes),
    /// Streamed from the client.
    Stream(Box<ClientStream>),
}

/// A body that is still arriving from the client, bounded in size and time.
#[derive(Debug)]
pub(crate) struct ClientStream {
    incoming: Incoming,
    /// Bytes that may still arrive.
    remaining: u64,
    deadline: Pin<Box<Sleep>>,
    /// Whether the gateway waits for more of it.
    waiting: Rc<Cell<bool>>,
    _held: MemoryReservation,
}

/// Whether the gateway is waiting for more of the client's body; never if it is in memory.
#[derive(Debug)]
pub(crate) struct WaitingForClient(Option<Rc<Cell<bool>>>);

impl WaitingForClient {
    pub(crate) fn is_set(&self) -> bool {
        self.0.as_ref().is_some_and(|waiting| waiting.get())
    }
}

/// Takes the body of a client's request; small bodies are read into memory first.
///
/// # Errors
/// As [`collect`].
pub(crate) async fn take(
    bounds: BodyBounds<'_>,
    body: Incoming,
) -> Result<RequestBody, ErrorResponse> {
    let size = body.size_hint();
    if body.is_end_stream() {
        return Ok(RequestBody::Full(Bytes::new()));
    }
    if size.upper().is_none_or(|upper| upper > MAX_BUFFERED) {
        let held = bounds.memory.hold(STREAMED_BYTES).ok_or_else(no_memory)?;
        return Ok(RequestBody::stream(body, bounds.limits, held));
    }
    collect(bounds, body).await.map(RequestBody::Full)
}

/// Reads a whole body, bounded in size and time.
///
/// # Errors
/// The body is too large, too slow or malformed.
pub(crate) async fn collect(
    bounds: BodyBounds<'_>,
    body: Incoming,
) -> Result<Bytes, ErrorResponse> {
    let limit = bounds.limits.bytes;
    let body = whole_body::read(body, bounds.limits, bounds.memory).await;
    body.map_err(|unread| match unread {
        Unread::TooLarge => {
            ErrorResponse::request_too_large(format!("the body is larger than {limit} bytes"))
        }
        Unread::TooSlow => ErrorResponse::request_timeout(SLOW_BODY),
        Unread::NoMemory => no_memory(),
        Unread::Broken => ErrorResponse::bad_request(BROKEN_BODY),
    })
}

/// The error if the memory budget is exhausted.
pub(crate) fn no_memory() -> ErrorResponse {
    let mut error = ErrorResponse::overloaded("the gateway holds too many messages now");
    error.headers.push((RETRY_AFTER, HeaderValue::from_static("1")));
    error
}

impl RequestBody {
    /// Streams a body within the limits of size and time.
    fn stream(incoming: Incoming, limits: Bounds, held: MemoryReservation) -> Self {
        let deadline = Box::pin(sleep(limits.time));
        let (remaining, waiting) = (limits.bytes as u64, Rc::default());
        Self::Stream(Box::new(ClientStream { incoming, remaining, deadline, waiting, _held: held }))
    }

    /// A flag that is set while the upload waits for the client.
    pub(crate) fn waiting(&self) -> WaitingForClient {
        WaitingForClient(match self {
            Self::Full(_) => None,
            Self::Stream(stream) => Some(Rc::clone(&stream.waiting)),
        })
    }

    /// A copy for another attempt; `None` if the body is streamed.
    pub(crate) fn try_clone(&self) -> Option<Self> {
        match self {
            Self::Full(bytes) => Some(Self::Full(bytes.clone())),
            Self::Stream(..) => None,
        }
    }
}

/// The client sent a body that exceeds the limit.
#[derive(Debug, thiserror::Error)]
#[error("the body is larger than allowed")]
pub(crate) struct BodyTooLarge;

/// The client exceeded the time limit for a body.
#[derive(Debug, thiserror::Error)]
#[error("the body did not arrive in time")]
pub(crate) struct BodyTooSlow;

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.get_mut() {
            Self::Full(bytes) => Poll::Ready(take_piece(bytes).map(Ok)),
            Self::Stream(stream) => stream.poll(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Full(bytes) => bytes.is_empty(),
            Self::Stream(stream) => stream.incoming.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Stream(stream) => stream.incoming.size_hint(),
        }
    }
}

/// All bytes as one frame; `None` if it is empty.
pub(crate) fn take_frame(bytes: &mut Bytes) -> Option<Frame<Bytes>> {
    let bytes = std::mem::take(bytes);
    (!bytes.is_empty()).then(|| Frame::data(bytes))
}

/// A piece of the bytes as a frame: the HTTP library copies each frame into its buffer, so a large
/// body never has a complete second copy.
fn take_piece(bytes: &mut Bytes) -> Option<Frame<Bytes>> {
    let piece = bytes.split_to(bytes.len().min(PIECE));
    (!piece.is_empty()).then(|| Frame::data(piece))
}

impl ClientStream {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = Pin::new(&mut self.incoming).poll_frame(context);
        self.waiting.set(frame.is_pending());
        if frame.is_pending() {
            ready!(self.deadline.as_mut().poll(context));
            return Poll::Ready(Some(Err(BodyTooSlow.into())));
        }
        frame.map(|frame| frame.map(|frame| count(frame?, &mut self.remaining)))
    }
}

fn count(frame: Frame<Bytes>, remaining: &mut u64) -> Result<Frame<Bytes>, BoxError> {
    let size = frame.data_ref().map_or(0, |data| data.len() as u64);
    *remaining = remaining.checked_sub(size).ok_or(BodyTooLarge)?;
    Ok(frame)
}
