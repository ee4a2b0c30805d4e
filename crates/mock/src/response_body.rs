//! The response bodies that hyper sends: full, truncated and streaming.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::Response;
use hyper::body::{Body, Frame, SizeHint};

use crate::exchange::Exchange;
use crate::log::RpcRecord;
use crate::timed_io::ConnectionTimes;
use crate::timed_plan::TimedPlan;
use crate::timer::Alarm;
use crate::worker::Worker;

/// The connection must be closed without a (complete) response. hyper closes it on this error.
#[derive(Debug, thiserror::Error)]
#[error("the connection was aborted")]
pub(crate) struct Aborted;

/// The service's result for hyper.
pub(crate) type ServiceResult = Result<Response<ResponseBody>, Aborted>;

/// A response body.
#[derive(Debug)]
pub(crate) enum ResponseBody {
    /// The whole body at once.
    Full(Option<Bytes>),
    /// The first part of a body whose `content-length` is longer.
    Truncated(TruncatedBody),
    /// A stream of a model's events or of JSON-RPC messages.
    Streaming(Box<StreamingBody>),
}

type PolledFrame = Poll<Option<Result<Frame<Bytes>, Aborted>>>;

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Aborted;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> PolledFrame {
        match self.get_mut() {
            Self::Full(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Truncated(body) => body.poll(cx),
            Self::Streaming(body) => body.poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Full(bytes) => bytes.is_none(),
            Self::Truncated(_) => false,
            Self::Streaming(body) => body.exchange.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Self::Truncated(body) => SizeHint::with_exact(body.announced),
            Self::Streaming(_) => SizeHint::default(),
        }
    }
}

/// Aborts an exchange in its body, with a TCP reset if `reset`.
fn abort(times: &ConnectionTimes, exchange: Option<Exchange>, reset: bool) -> PolledFrame {
    if reset {
        times.reset_on_close();
    }
    if let Some(exchange) = exchange {
        exchange.abort();
    }
    Poll::Ready(Some(Err(Aborted)))
}

/// The first part of a body, followed by the end of the connection.
#[derive(Debug)]
pub(crate) struct TruncatedBody {
    times: Rc<ConnectionTimes>,
    exchange: Option<Exchange>,
    part: Option<Bytes>,
    announced: u64,
    reset: bool,
    /// See [`ConnectionTimes::poll_written`].
    flush_mark: u64,
}

impl TruncatedBody {
    /// `part` must be shorter than `announced`, and not empty.
    pub(crate) const fn new(
        times: Rc<ConnectionTimes>,
        exchange: Exchange,
        part: Bytes,
        announced: u64,
        reset: bool,
    ) -> Self {
        Self { times, exchange: Some(exchange), part: Some(part), announced, reset, flush_mark: 0 }
    }

    fn poll(&mut self, cx: &Context<'_>) -> PolledFrame {
        if let Some(part) = self.part.take() {
            self.flush_mark = self.times.flush_mark();
            return Poll::Ready(Some(Ok(Frame::data(part))));
        }
        ready!(self.times.poll_written(cx, self.flush_mark));
        if let Some(exchange) = &mut self.exchange {
            exchange.chunk_written(self.times.last_write());
        }
        abort(&self.times, self.exchange.take(), self.reset)
    }
}

/// A stream: each step of its plan is sent at its due time, in its own write.
#[derive(Debug)]
pub(crate) struct StreamingBody {
    worker: Rc<Worker>,
    times: Rc<ConnectionTimes>,
    plan: Box<dyn TimedPlan>,
    alarm: Alarm,
    /// `None` after the last chunk was passed on.
    exchange: Option<Exchange>,
    /// When the request was complete. All due times are relative to it.
    start: u64,
    /// The flush mark of the last chunk, until it was written.
    flush_mark: Option<u64>,
}

impl StreamingBody {
    pub(crate) fn new(
        worker: Rc<Worker>,
        times: Rc<ConnectionTimes>,
        plan: Box<dyn TimedPlan>,
        exchange: Exchange,
    ) -> Self {
        let alarm = Alarm::new(Rc::clone(&worker.timer));
        let start = exchange.complete_at;
        Self { worker, times, plan, alarm, exchange: Some(exchange), start, flush_mark: None }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> PolledFrame {
        if self.exchange.is_none() {
            return Poll::Ready(None);
        }
        if self.plan.poll_stopped(cx) {
            ready!(self.poll_written(cx));
            return self.stop();
        }
        let Some(due) = self.plan.due().map(|offset| self.start.saturating_add(offset)) else {
            return Poll::Ready(None);
        };
        ready!(self.alarm.poll_at(cx, due));
        ready!(self.poll_written(cx));
        if self.plan.disconnects() {
            let reset = self.plan.disconnect();
            return abort(&self.times, self.exchange.take(), reset);
        }
        self.next_chunk(due)
    }

    /// Ends the stream without its remaining steps.
    fn stop(&mut self) -> PolledFrame {
        let Some(mut exchange) = self.exchange.take() else { return Poll::Ready(None) };
        exchange.rpc(RpcRecord::cancelled);
        let farewell = self.plan.farewell();
        if !farewell.is_empty() {
            exchange.chunk_handed(self.worker.state.clock.now(), farewell.len(), 0);
        }
        self.times.complete_when_written(exchange);
        Poll::Ready((!farewell.is_empty()).then(|| Ok(Frame::data(farewell.into()))))
    }

    /// Waits until the previous chunk was written. Otherwise hyper would join chunks if the mock is
    /// late or the client is slow, and their write times would be unknown.
    fn poll_written(&mut self, cx: &Context<'_>) -> Poll<()> {
        if let Some(mark) = self.flush_mark {
            ready!(self.times.poll_written(cx, mark));
            self.flush_mark = None;
            if let Some(exchange) = &mut self.exchange {
                exchange.chunk_written(self.times.last_write());
            }
        }
        Poll::Ready(())
    }

    fn next_chunk(&mut self, due: u64) -> PolledFrame {
        let in_flight = self.worker.state.counters.api_in_flight.get();
        let (out, tokens, _) = self.plan.advance_together(in_flight);
        let Some(mut exchange) = self.exchange.take() else { return Poll::Ready(None) };
        if !out.is_empty() {
            exchange.chunk_handed(due, out.len(), tokens);
        }
        if self.plan.due().is_none() {
            self.times.complete_when_written(exchange);
        } else {
            self.flush_mark = Some(self.times.flush_mark());
            self.exchange = Some(exchange);
        }
        Poll::Ready((!out.is_empty()).then(|| Ok(Frame::data(out.into()))))
    }
}

/// If a stream ends early, its last chunk may still have been written.
impl Drop for StreamingBody {
    fn drop(&mut self) {
        if let (Some(mark), Some(exchange)) = (self.flush_mark, &mut self.exchange)
            && self.times.flush_mark() > mark
        {
            exchange.chunk_written(self.times.last_write());
        }
    }
}
