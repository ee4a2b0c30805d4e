//! The body of a response: in memory, recorded frame by frame, or streamed from an upstream.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use crate::exchange::proxy_body::ProxyBody;
use crate::http::body_filter::BoxError;
use crate::http::request_body::take_frame;

/// The body of a response to a caller.
pub(crate) enum ResponseBody {
    /// In memory, sent at once.
    Full(Bytes),
    /// In memory, sent frame by frame as it was recorded.
    Frames(VecDeque<Bytes>),
    /// Streamed from an upstream.
    Proxy(Box<ProxyBody>),
}

impl ResponseBody {
    pub(crate) const EMPTY: Self = Self::Full(Bytes::new());

    pub(crate) const fn text(text: &'static str) -> Self {
        Self::Full(Bytes::from_static(text.as_bytes()))
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.get_mut() {
            Self::Full(bytes) => Poll::Ready(take_frame(bytes).map(Ok)),
            Self::Frames(frames) => {
                Poll::Ready(frames.pop_front().map(|frame| Ok(Frame::data(frame))))
            }
            Self::Proxy(proxy) => {
                proxy.poll_chunk(context).map(|chunk| chunk.map(|chunk| chunk.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Full(bytes) => bytes.is_empty(),
            Self::Frames(frames) => frames.is_empty(),
            Self::Proxy(proxy) => proxy.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Frames(_) => SizeHint::default(),
            Self::Proxy(proxy) => proxy.size_hint(),
        }
    }
}
