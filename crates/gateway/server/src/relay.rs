//! An answer on its way from an upstream to the client: piece by piece, never buffered whole, at the
//! client's pace.

use std::mem;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body as _, Incoming, SizeHint};
use tokio::time::{Instant, Sleep, sleep};

use crate::body::Broken;
use crate::exchange::Exchange;
use crate::upstream::{Active, Link};
use crate::worker::Worker;

/// Sees an answer's body pass, and may change it.
pub(crate) trait Tap {
    /// A piece of the body; what it returns goes on. Nothing is sent for an empty one.
    ///
    /// # Errors
    /// The answer cannot go on, and is broken off.
    fn piece(&mut self, piece: Bytes) -> Result<Bytes, Broken>;

    /// The body is complete. What is still held back goes on.
    ///
    /// # Errors
    /// The answer was not whole after all, and is broken off instead of ended.
    fn end(&mut self) -> Result<Bytes, Broken> {
        Ok(Bytes::new())
    }

    /// Does the body stay as it is, so that its length is known?
    fn is_silent(&self) -> bool {
        false
    }
}

/// Why an answer broke off.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Cut {
    #[error("the upstream sent nothing more for too long")]
    Idle,
    #[error("a planted fault")]
    Planted,
}

/// What is still to come of an answer.
#[derive(Debug, PartialEq, Eq)]
enum Rest {
    /// Pieces from the upstream.
    Pieces,
    /// What taps held back was sent; nothing.
    Nothing,
}

/// An answer on its way. Dropped before its end, it takes the upstream's connection down with it, and
/// thereby tells the upstream.
pub(crate) struct Relay {
    incoming: Incoming,
    rest: Rest,
    taps: Vec<Box<dyn Tap>>,
    link: Option<(Rc<Worker>, Link)>,
    active: Active,
    exchange: Option<Exchange>,
    idle: Idle,
    play: Play,
    broken: Option<Broken>,
}

/// Faults planted in this answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Planted {
    /// Stop so long after the first piece.
    pub(crate) stall: Option<Duration>,
    /// Break off after the first piece, or within the only one.
    pub(crate) reset: bool,
    /// Hold everything back until it is complete.
    pub(crate) buffer: bool,
}

/// How far the planted faults have come.
#[derive(Default)]
struct Play {
    planted: Planted,
    stalling: Option<Pin<Box<Sleep>>>,
    started: bool,
    held: Vec<u8>,
}

/// The most time between two pieces. Its timer is made when a piece is first waited for, and set again
/// only when it goes off: that costs a long stream nothing for each piece.
struct Idle {
    limit: Duration,
    seen: Instant,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Relay {
    pub(crate) fn new(
        incoming: Incoming,
        (worker, link): (Rc<Worker>, Link),
        active: Active,
        limit: Duration,
    ) -> Self {
        Self {
            incoming,
            rest: Rest::Pieces,
            taps: Vec::new(),
            link: Some((worker, link)),
            active,
            exchange: None,
            idle: Idle { limit, seen: Instant::now(), timer: None },
            play: Play::default(),
            broken: None,
        }
    }

    /// Adds a tap behind the ones that are there.
    pub(crate) fn tap(&mut self, tap: Box<dyn Tap>) {
        self.taps.push(tap);
    }

    pub(crate) fn plant(&mut self, planted: Planted) {
        self.play.planted = planted;
    }

    /// What is accounted for when the answer is over.
    pub(crate) fn account_to(&mut self, exchange: Exchange) {
        self.exchange = Some(exchange);
    }

    /// Is the body's length unknown, although the upstream said it?
    pub(crate) fn is_changed(&self) -> bool {
        self.play.planted.buffer || self.taps.iter().any(|tap| !tap.is_silent())
    }

    pub(crate) fn is_over(&self) -> bool {
        match self.rest {
            // What is to break off must not end.
            _ if self.play.planted.reset => false,
            Rest::Nothing => true,
            Rest::Pieces => !self.is_changed() && self.incoming.is_end_stream(),
        }
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        if self.is_changed() { SizeHint::default() } else { self.incoming.size_hint() }
    }

    /// The next piece for the client.
    ///
    /// # Errors
    /// The answer broke off. hyper then closes the connection without sending what it holds: it is told a turn later, when
    /// all that came before is on its way.
    pub(crate) fn poll_piece(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Broken>>> {
        if let Some(broken) = self.broken.take() {
            return Poll::Ready(Some(Err(broken)));
        }
        let piece = ready!(self.poll_next(context));
        if let Some(Err(broken)) = piece {
            self.broken = Some(broken);
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(piece)
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        loop {
            if self.play.planted.reset && self.play.started {
                return Poll::Ready(Some(Err(Cut::Planted.into())));
            }
            if self.rest == Rest::Nothing {
                return Poll::Ready(None);
            }
            ready!(self.play.poll_stall(context));
            let piece = match ready!(self.poll_incoming(context)) {
                Some(piece) => piece.and_then(|piece| self.pass(piece)),
                None => self.end(),
            };
            let piece = match piece {
                Ok(piece) => self.cut(piece),
                Err(error) => return Poll::Ready(Some(Err(error))),
            };
            if !piece.is_empty() {
                self.count(&piece);
                return Poll::Ready(Some(Ok(piece)));
            }
        }
    }

    /// The next piece of the upstream's; trailers are left out.
    fn poll_incoming(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        let Poll::Ready(frame) = Pin::new(&mut self.incoming).poll_frame(context) else {
            return self.idle.poll(context).map(|()| Some(Err(Cut::Idle.into())));
        };
        self.idle.reset();
        Poll::Ready(frame.map(|frame| match frame {
            Ok(frame) => Ok(frame.into_data().unwrap_or_default()),
            Err(error) => Err(error.into()),
        }))
    }

    fn pass(&mut self, piece: Bytes) -> Result<Bytes, Broken> {
        let piece = through(&mut self.taps, piece)?;
        Ok(self.play.pass(piece))
    }

    /// What is held back by a tap passes all taps behind it.
    fn end(&mut self) -> Result<Bytes, Broken> {
        let mut out = Vec::new();
        for index in 0..self.taps.len() {
            let held = self.taps[index].end()?;
            out.extend_from_slice(&through(&mut self.taps[index + 1..], held)?);
        }
        self.rest = Rest::Nothing;
        self.release();
        if self.play.planted.buffer {
            self.play.held.extend_from_slice(&out);
            out = mem::take(&mut self.play.held);
        }
        Ok(Bytes::from(out))
    }

    /// Of an answer that is to break off and came in one piece, only a half goes out.
    fn cut(&mut self, mut piece: Bytes) -> Bytes {
        let last = self.rest == Rest::Nothing || self.incoming.is_end_stream();
        if self.play.planted.reset && last {
            piece.truncate(piece.len() / 2);
            self.play.start();
        }
        piece
    }

    fn count(&mut self, piece: &Bytes) {
        self.play.start();
        if let Some(exchange) = &mut self.exchange {
            exchange.sent(piece.len());
        }
    }

    /// Gives the connection back, if its answer is complete.
    fn release(&mut self) {
        if let Some((worker, link)) = self.link.take() {
            worker.pool().put(self.active.endpoint(), link);
        }
    }
}

/// A piece on its way through taps. An empty one has nothing to pass.
fn through(taps: &mut [Box<dyn Tap>], piece: Bytes) -> Result<Bytes, Broken> {
    taps.iter_mut().try_fold(
        piece,
        |piece, tap| {
            if piece.is_empty() { Ok(piece) } else { tap.piece(piece) }
        },
    )
}

impl Drop for Relay {
    fn drop(&mut self) {
        if self.incoming.is_end_stream() {
            self.release();
            // A body of known length is not polled for its end.
            if self.rest == Rest::Pieces {
                self.taps.iter_mut().for_each(|tap| drop(tap.end()));
            }
            self.rest = Rest::Nothing;
        }
        // They enter what they counted, before the books are closed.
        self.taps.clear();
        if let Some(exchange) = &mut self.exchange {
            exchange.finish(self.rest == Rest::Nothing && !self.play.planted.reset);
        }
    }
}

impl Idle {
    fn reset(&mut self) {
        if self.timer.is_some() {
            self.seen = Instant::now();
        }
    }

    /// Ready when there was nothing for too long.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let limit = self.limit;
        let timer = self.timer.get_or_insert_with(|| {
            self.seen = Instant::now();
            Box::pin(sleep(limit))
        });
        loop {
            ready!(timer.as_mut().poll(context));
            let due = self.seen + limit;
            if due <= Instant::now() {
                return Poll::Ready(());
            }
            timer.as_mut().reset(due);
        }
    }
}

impl Play {
    fn start(&mut self) {
        if !mem::replace(&mut self.started, true) {
            self.stalling = self.planted.stall.map(|stall| Box::pin(sleep(stall)));
        }
    }

    fn poll_stall(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let Some(stalling) = &mut self.stalling {
            ready!(stalling.as_mut().poll(context));
            self.stalling = None;
        }
        Poll::Ready(())
    }

    fn pass(&mut self, piece: Bytes) -> Bytes {
        if self.planted.buffer {
            self.held.extend_from_slice(&piece);
            return Bytes::new();
        }
        piece
    }
}
