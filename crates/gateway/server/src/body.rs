//! Bodies of answers and of requests to upstreams.

use std::cell::Cell;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::error::Error;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use tokio::time::{Sleep, sleep};

use crate::relay::Relay;

/// An error that ends a body early.
pub(crate) type Broken = Box<dyn Error + Send + Sync>;

/// The body of an answer.
pub(crate) enum Body {
    /// All at once.
    Full(Bytes),
    /// Piece by piece, as recorded.
    Pieces(VecDeque<Bytes>),
    /// As it comes from an upstream.
    Relay(Box<Relay>),
}

impl Body {
    pub(crate) const EMPTY: Self = Self::Full(Bytes::new());

    pub(crate) const fn text(text: &'static str) -> Self {
        Self::Full(Bytes::from_static(text.as_bytes()))
    }
}

fn whole(bytes: &mut Bytes) -> Option<Frame<Bytes>> {
    let bytes = std::mem::take(bytes);
    (!bytes.is_empty()).then(|| Frame::data(bytes))
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match self.get_mut() {
            Self::Full(bytes) => Poll::Ready(whole(bytes).map(Ok)),
            Self::Pieces(pieces) => {
                Poll::Ready(pieces.pop_front().map(|piece| Ok(Frame::data(piece))))
            }
            Self::Relay(relay) => {
                relay.poll_piece(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Full(bytes) => bytes.is_empty(),
            Self::Pieces(pieces) => pieces.is_empty(),
            Self::Relay(relay) => relay.is_over(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Pieces(_) => SizeHint::default(),
            Self::Relay(relay) => relay.size_hint(),
        }
    }
}

/// The body of a request to an upstream.
#[derive(Debug)]
pub(crate) enum Upload {
    /// In memory: it can be sent again.
    Full(Bytes),
    /// As it comes from the client.
    Stream(Box<Streaming>),
}

/// A body on its way from the client, bounded in size and time.
#[derive(Debug)]
pub(crate) struct Streaming {
    incoming: Incoming,
    /// Bytes that may still come.
    left: u64,
    deadline: Pin<Box<Sleep>>,
    waiting: Waiting,
}

/// Is the client waited for?
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting(Rc<Cell<bool>>);

impl Waiting {
    pub(crate) fn is_on(&self) -> bool {
        self.0.get()
    }
}

impl Upload {
    /// At most so many bytes, in at most so much time.
    pub(crate) fn stream(incoming: Incoming, left: u64, limit: Duration) -> Self {
        let (deadline, waiting) = (Box::pin(sleep(limit)), Waiting::default());
        Self::Stream(Box::new(Streaming { incoming, left, deadline, waiting }))
    }

    /// Tells, while it is sent, whether the client is waited for.
    pub(crate) fn waiting(&self) -> Waiting {
        match self {
            Self::Full(_) => Waiting::default(),
            Self::Stream(streaming) => streaming.waiting.clone(),
        }
    }

    /// The same body for one more attempt; `None` if it is gone.
    pub(crate) fn again(&self) -> Option<Self> {
        match self {
            Self::Full(bytes) => Some(Self::Full(bytes.clone())),
            Self::Stream(..) => None,
        }
    }
}

/// A body that a client sent is larger than allowed.
#[derive(Debug, thiserror::Error)]
#[error("the body is larger than allowed")]
pub(crate) struct TooLarge;

/// A body that a client sends takes longer than allowed.
#[derive(Debug, thiserror::Error)]
#[error("the body did not arrive in time")]
pub(crate) struct TooSlow;

impl HttpBody for Upload {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match self.get_mut() {
            Self::Full(bytes) => Poll::Ready(whole(bytes).map(Ok)),
            Self::Stream(streaming) => streaming.poll(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Full(bytes) => bytes.is_empty(),
            Self::Stream(streaming) => streaming.incoming.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Stream(streaming) => streaming.incoming.size_hint(),
        }
    }
}

impl Streaming {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let frame = Pin::new(&mut self.incoming).poll_frame(context);
        self.waiting.0.set(frame.is_pending());
        if frame.is_pending() {
            ready!(self.deadline.as_mut().poll(context));
            return Poll::Ready(Some(Err(TooSlow.into())));
        }
        frame.map(|frame| frame.map(|frame| count(frame?, &mut self.left)))
    }
}

fn count(frame: Frame<Bytes>, left: &mut u64) -> Result<Frame<Bytes>, Broken> {
    let size = frame.data_ref().map_or(0, |data| data.len() as u64);
    *left = left.checked_sub(size).ok_or(TooLarge)?;
    Ok(frame)
}

/// What `service_fn` must say of errors: there are none.
pub(crate) type Never = Infallible;
