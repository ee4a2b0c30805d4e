//! Response bodies.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use crate::exchange::Exchange;
use crate::script::{Ending, Script};
use crate::tap::Tap;
use crate::timer::Alarm;
use crate::worker::Worker;

/// The mock breaks the connection on purpose; hyper then closes it where it stands.
#[derive(Debug, thiserror::Error)]
#[error("the mock broke off on purpose")]
pub(crate) struct BrokenOff;

/// A response body.
#[derive(Debug)]
pub(crate) enum Reply {
    /// All at once.
    Whole(Option<Bytes>),
    /// The beginning of a body that was announced as longer.
    Torn(Torn),
    /// A stream.
    Paced(Box<Paced>),
}

type Polled = Poll<Option<Result<Frame<Bytes>, BrokenOff>>>;

impl Body for Reply {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Torn(torn) => torn.poll(cx),
            Self::Paced(paced) => paced.poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Torn(_) => false,
            Self::Paced(paced) => paced.exchange.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Self::Torn(torn) => SizeHint::with_exact(torn.announced),
            Self::Paced(_) => SizeHint::default(),
        }
    }
}

/// How a connection is broken while an answer is under way.
#[derive(Debug)]
struct Breaking {
    tap: Rc<Tap>,
    exchange: Option<Exchange>,
}

impl Breaking {
    fn break_off(&mut self, reset: bool) -> Polled {
        if reset {
            self.tap.reset_on_close();
        }
        if let Some(exchange) = self.exchange.take() {
            exchange.abort();
        }
        Poll::Ready(Some(Err(BrokenOff)))
    }
}

/// The beginning of a body, and then the end of the connection.
#[derive(Debug)]
pub(crate) struct Torn {
    breaking: Breaking,
    part: Option<Bytes>,
    announced: u64,
    reset: bool,
    mark: u64,
}

impl Torn {
    /// `part` must not be empty and be shorter than what is announced.
    pub(crate) fn new(
        tap: Rc<Tap>,
        exchange: Exchange,
        part: Bytes,
        announced: u64,
        reset: bool,
    ) -> Self {
        let breaking = Breaking { tap, exchange: Some(exchange) };
        Self { breaking, part: Some(part), announced, reset, mark: 0 }
    }

    fn poll(&mut self, cx: &Context<'_>) -> Polled {
        let tap = Rc::clone(&self.breaking.tap);
        if let Some(part) = self.part.take() {
            self.mark = tap.mark();
            return Poll::Ready(Some(Ok(Frame::data(part))));
        }
        ready!(tap.poll_written(cx, self.mark));
        if let Some(exchange) = &mut self.breaking.exchange {
            exchange.written(tap.last_write());
        }
        self.breaking.break_off(self.reset)
    }
}

/// Beats that are due at the same nanosecond share a write, up to about this many bytes.
const LARGEST_WRITE: usize = 64 * 1024;

/// A stream: each beat of its script is written at its time, in a write of its own.
#[derive(Debug)]
pub(crate) struct Paced {
    worker: Rc<Worker>,
    tap: Rc<Tap>,
    script: Script,
    alarm: Alarm,
    /// `None` when all has been handed over.
    exchange: Option<Exchange>,
    start: u64,
    /// The mark of the last piece, until it has been written.
    mark: Option<u64>,
}

impl Paced {
    pub(crate) fn new(
        worker: Rc<Worker>,
        tap: Rc<Tap>,
        script: Script,
        exchange: Exchange,
    ) -> Self {
        let alarm = Alarm::new(worker.timer());
        let start = exchange.complete_at();
        Self { worker, tap, script, alarm, exchange: Some(exchange), start, mark: None }
    }

    fn poll(&mut self, cx: &Context<'_>) -> Polled {
        let Some(due) = self.script.due().map(|offset| self.start.saturating_add(offset)) else {
            return Poll::Ready(None);
        };
        ready!(self.alarm.poll_at(cx, due));
        ready!(self.poll_written(cx));
        if self.script.breaks() {
            return self.break_off();
        }
        self.say(due)
    }

    /// One piece is handed over only when the one before has been written: hyper would otherwise join
    /// them when we are late or the client is slow, and its log entry could not tell when it left.
    fn poll_written(&mut self, cx: &Context<'_>) -> Poll<()> {
        if let Some(mark) = self.mark {
            ready!(self.tap.poll_written(cx, mark));
            self.mark = None;
            if let Some(exchange) = &mut self.exchange {
                exchange.written(self.tap.last_write());
            }
        }
        Poll::Ready(())
    }

    fn break_off(&mut self) -> Polled {
        let ending = self.script.play(0, &mut Vec::new());
        let reset = ending == Some(Ending::Broken { reset: true });
        let mut breaking = Breaking { tap: Rc::clone(&self.tap), exchange: self.exchange.take() };
        breaking.break_off(reset)
    }

    fn say(&mut self, due: u64) -> Polled {
        let in_flight = self.worker.shared().counters.api_in_flight.read();
        let (now, before) = (self.script.due(), self.script.said());
        let mut out = Vec::with_capacity(256);
        while self.script.due() == now && !self.script.breaks() && out.len() < LARGEST_WRITE {
            self.script.play(in_flight, &mut out);
        }
        let Some(mut exchange) = self.exchange.take() else { return Poll::Ready(None) };
        let over = self.script.due().is_none();
        if !out.is_empty() {
            exchange.hand_over(due, out.len(), self.script.said() - before);
        }
        if over {
            self.tap.complete_when_written(exchange);
        } else {
            self.mark = Some(self.tap.mark());
            self.exchange = Some(exchange);
        }
        Poll::Ready((!out.is_empty()).then(|| Ok(Frame::data(out.into()))))
    }
}

/// A stream that ends early has its last piece written all the same, if there was time for it.
impl Drop for Paced {
    fn drop(&mut self) {
        if let (Some(mark), Some(exchange)) = (self.mark, &mut self.exchange)
            && self.tap.mark() > mark
        {
            exchange.written(self.tap.last_write());
        }
    }
}
