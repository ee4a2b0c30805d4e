//! One request and its response.

use std::future::poll_fn;
use std::ops::ControlFlow;
use std::task::{Context, Poll, ready};

use plimsoll_measure::{Clock, Moment};

use super::fields::Own;
use super::link::{Link, Sent, StreamSlot};
use super::mail::Mail;
use super::session::Ask;
use super::streams::Key;
use crate::connection::{Request, ResponseHandler};
use crate::failure::Failure;
use crate::stamp::RxClock;

impl StreamSlot {
    /// Sends a request and reads its response to the end. It counts as sent when its last byte was handed to the
    /// kernel, which the target's flow control can delay.
    ///
    /// # Cancel safety
    /// A dropped exchange resets its stream; the connection can be used on.
    pub(crate) async fn exchange<C: Clock, R: ResponseHandler>(
        &mut self,
        stamper: &RxClock<C>,
        request: Request<'_>,
        receiver: &mut R,
    ) -> Result<(), Failure> {
        let (link, mail) = self.parts();
        let mut exchange = Exchange {
            link,
            clock: stamper.clock(),
            request,
            receiver,
            mail,
            stage: Stage::Waiting { ticket: None },
            queued: 0,
            told: false,
            stall: None,
        };
        poll_fn(|context| exchange.poll(context)).await
    }
}

/// How far an exchange is.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// It has no stream yet.
    Waiting {
        /// Its number in the queue for one.
        ticket: Option<u64>,
    },
    /// It has one.
    Open(Key),
}

struct Exchange<'a, C: Clock, R: ResponseHandler> {
    link: &'a Link,
    clock: &'a C,
    request: Request<'a>,
    receiver: &'a mut R,
    /// What was taken out of the mailbox; empty between two polls.
    mail: &'a mut Mail,
    stage: Stage,
    /// Bytes of the body that are queued, or that nobody wants any more.
    queued: usize,
    /// Was the receiver told that the request is sent?
    told: bool,
    /// Since when the request has been held up.
    stall: Option<Moment>,
}

impl<C: Clock, R: ResponseHandler> Exchange<'_, C, R> {
    fn poll(&mut self, context: &Context<'_>) -> Poll<Result<(), Failure>> {
        let key = match self.stage {
            Stage::Open(key) => key,
            Stage::Waiting { ticket } => match ready!(self.open(ticket, context)) {
                Ok(key) => key,
                Err(failure) => return Poll::Ready(Err(failure)),
            },
        };
        if !self.is_queued() {
            self.upload(key);
        }
        self.hear(key, context)
    }

    /// Opens a stream as soon as the target allows one more.
    fn open(
        &mut self,
        mut ticket: Option<u64>,
        context: &Context<'_>,
    ) -> Poll<Result<Key, Failure>> {
        let mut state = self.link.state.borrow_mut();
        if let Some(failure) = state.refusal() {
            return Poll::Ready(Err(failure));
        }
        let Request { shape, id, ref wire } = self.request;
        let own = Own { id, length: shape.content_length(wire.body.len()) };
        let (to_head, ends) = (shape.is_head(), wire.body.is_empty());
        let ask = Ask { fields: shape.fields(), own, to_head, ends };
        let turn = state.is_first(ticket);
        let opened = turn.then(|| state.session.open(ask)).flatten();
        let Some(key) = opened else {
            state.wait(&mut ticket, context);
            self.stage = Stage::Waiting { ticket };
            self.stall = self.stall.or_else(|| Some(self.clock.now()));
            return Poll::Pending;
        };
        self.stage = Stage::Open(key);
        state.stop_waiting(ticket);
        state.rent(key);
        if ends {
            state.note_queued(key, Sent::Quietly);
        }
        state.ask_for_flush();
        drop(state);
        if ends {
            self.end_stall();
        }
        Poll::Ready(Ok(key))
    }

    /// Queues what the target's windows have room for.
    fn upload(&mut self, key: Key) {
        let mut state = self.link.state.borrow_mut();
        let taken = state.session.send(key, &self.request.wire.body[self.queued..]);
        self.queued += taken;
        if taken > 0 {
            state.ask_for_flush();
        }
        if self.is_queued() {
            state.note_queued(key, Sent::Loudly);
        } else if state.session.is_sent(key) {
            // The stream is over, so that the rest never gets out; its mail says why.
            self.queued = self.request.wire.body.len();
        }
        drop(state);
        if self.is_queued() {
            self.end_stall();
        } else {
            self.stall = self.stall.or_else(|| Some(self.clock.now()));
        }
    }

    fn is_queued(&self) -> bool {
        self.queued >= self.request.wire.body.len()
    }

    /// Tells the receiver what came.
    fn hear(&mut self, key: Key, context: &Context<'_>) -> Poll<Result<(), Failure>> {
        if !self.link.state.borrow_mut().collect(key, self.mail, context) {
            return Poll::Pending;
        }
        // An answer to a request that is queued to its end can be here before that end is known to be written.
        let answered = self.mail.head_at().filter(|_| self.is_queued());
        self.tell_sent(self.mail.sent_at.or(answered));
        let delivered = self.mail.deliver(self.receiver);
        let end = self.mail.end.take();
        self.mail.clear();
        if delivered.bytes > 0 {
            self.link.state.borrow_mut().consume(key, delivered.bytes);
        }
        match end {
            _ if delivered.flow == ControlFlow::Break(()) => Poll::Ready(Ok(())),
            None => Poll::Pending,
            Some(end) => {
                if end.is_ok() && !self.told {
                    // Answered before all of it was out: what is left is not wanted.
                    self.tell_sent(Some(self.clock.now()));
                }
                Poll::Ready(end)
            }
        }
    }

    fn tell_sent(&mut self, at: Option<Moment>) {
        if let Some(at) = at.filter(|_| !self.told) {
            self.told = true;
            self.receiver.sent(at, std::mem::take(&mut self.request.wire));
        }
    }

    fn end_stall(&mut self) {
        if let Some(began) = self.stall.take() {
            self.receiver.send_stalled(self.clock.now().since(began));
        }
    }
}

/// Whether it is over or given up: nobody waits for its stream any more.
impl<C: Clock, R: ResponseHandler> Drop for Exchange<'_, C, R> {
    fn drop(&mut self) {
        self.end_stall();
        let sent = {
            let mut state = self.link.state.borrow_mut();
            match self.stage {
                Stage::Waiting { ticket } => {
                    state.stop_waiting(ticket);
                    None
                }
                Stage::Open(key) => {
                    let sent = state.take_sent(key);
                    state.close(key);
                    sent
                }
            }
        };
        self.tell_sent(sent);
    }
}
