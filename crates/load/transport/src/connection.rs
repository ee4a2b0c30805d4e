//! One connection and the exchanges on it.

use std::cell::RefCell;
use std::ops::ControlFlow;

use nix::cmsg_space;
use nix::sys::time::TimeSpec;
use plimsoll_measure::{Clock, Moment, Nanos};

use crate::failure::Failure;
use crate::http1::{Part, Progress, RequestHead, ResponseHead, ResponseParser};
use crate::http2::StreamSlot;
use crate::socket::{Outgoing, Read, Socket};
use crate::stamp::{RxClock, RxTime};

/// Bytes read at once. One read takes whatever a loopback or 100 Gbit/s link delivers between two
/// wake-ups of a busy worker.
const READ_SIZE: usize = 64 * 1024;

/// The read buffers of a worker, shared by all its connections: one that waits holds none.
#[derive(Debug)]
pub struct ReadBuffers {
    pub(crate) wire: Vec<u8>,
    pub(crate) plain: Vec<u8>,
    /// Room for the kernel's note about a read.
    pub(crate) note: Vec<u8>,
    /// Room for a small request, head and body behind each other.
    pub(crate) whole: Vec<u8>,
}

impl Default for ReadBuffers {
    fn default() -> Self {
        Self {
            wire: vec![0; READ_SIZE],
            plain: vec![0; READ_SIZE],
            note: note_buffer(),
            whole: Vec::new(),
        }
    }
}

/// Room for the kernel's note about a read.
fn note_buffer() -> Vec<u8> {
    cmsg_space!(TimeSpec)
}

/// One request.
#[derive(Debug)]
pub struct Request<'a> {
    /// What its head says.
    pub shape: &'a RequestHead,
    /// Its `x-request-id`.
    pub id: Option<&'a str>,
    /// Its bytes.
    pub wire: EncodedRequest,
}

/// The bytes of a request.
#[derive(Debug, Default)]
pub struct EncodedRequest {
    /// The head in the wire format of HTTP/1.1: [`RequestHead::render`].
    pub head: Vec<u8>,
    /// The body.
    pub body: Vec<u8>,
}

impl EncodedRequest {
    /// Length of head and body in bytes.
    pub const fn len(&self) -> usize {
        self.head.len() + self.body.len()
    }

    /// Is there nothing in it?
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Is told what happens in an exchange, as it happens.
pub trait ResponseHandler {
    /// The last byte of the request was handed to the kernel. Its buffers come back: the next request may use them, while
    /// this one waits for its response.
    fn sent(&mut self, at: Moment, wire: EncodedRequest);
    /// A read brought `bytes` bytes (of plaintext) of the response.
    fn received(&mut self, bytes: usize, arrival: RxTime);
    /// The final head of the response.
    fn head(&mut self, head: &ResponseHead<'_>);
    /// Bytes of the body. `Break` says that what was received cannot be used, so the rest is not read.
    fn body(&mut self, bytes: &[u8], at: Moment) -> ControlFlow<()>;
    /// HTTP/2: the request waited so long for the target's flow-control windows or its limit of streams.
    fn send_stalled(&mut self, _waited: Nanos) {}
    /// HTTP/2: so much of the response was unread that our own window may have held the target up.
    fn receive_stalled(&mut self) {}
}

/// An open connection, or a place on one that is shared.
#[derive(Debug)]
pub struct Connection(Carrier);

#[derive(Debug)]
enum Carrier {
    Http1(Http1),
    Http2(StreamSlot),
}

impl Connection {
    /// A connection of HTTP/1.1 that is closed after `lifetime` requests.
    pub(crate) const fn http1(socket: Socket, lifetime: u32) -> Self {
        Self(Carrier::Http1(Http1 { socket, parser: ResponseParser::new(), used: false, lifetime }))
    }

    pub(crate) const fn http2(lease: StreamSlot) -> Self {
        Self(Carrier::Http2(lease))
    }

    /// Has it carried a request before?
    pub fn was_used(&self) -> bool {
        match &self.0 {
            Carrier::Http1(connection) => connection.used,
            Carrier::Http2(lease) => lease.was_used(),
        }
    }

    /// Is it open, with nothing unasked for on it?
    pub fn is_idle(&mut self) -> bool {
        match &mut self.0 {
            Carrier::Http1(connection) => connection.socket.is_silent(),
            Carrier::Http2(lease) => !lease.is_closed(),
        }
    }

    /// Sends a request and reads its response to the end; true if the connection may be used again.
    ///
    /// The response is read while the request is still being written, so that a target that answers
    /// early (413, 429) is heard, and neither side waits for the other for ever.
    ///
    /// # Errors
    /// A [`Failure`] of the network or the target; the connection must then be dropped.
    ///
    /// # Cancel safety
    /// A dropped exchange leaves the connection unusable: drop it as well. In HTTP/2 that concerns its place on the
    /// connection alone.
    pub async fn exchange<C: Clock, R: ResponseHandler>(
        &mut self,
        stamper: &RxClock<C>,
        scratch: &RefCell<ReadBuffers>,
        request: Request<'_>,
        receiver: &mut R,
    ) -> Result<bool, Failure> {
        match &mut self.0 {
            Carrier::Http1(connection) => {
                connection.exchange(stamper, scratch, request, receiver).await
            }
            Carrier::Http2(lease) => {
                lease.exchange(stamper, request, receiver).await.map(|()| true)
            }
        }
    }
}

/// A connection of HTTP/1.1: one exchange after another.
#[derive(Debug)]
struct Http1 {
    socket: Socket,
    parser: ResponseParser,
    used: bool,
    /// Requests that it may still carry.
    lifetime: u32,
}

impl Http1 {
    async fn exchange<C: Clock, R: ResponseHandler>(
        &mut self,
        stamper: &RxClock<C>,
        scratch: &RefCell<ReadBuffers>,
        request: Request<'_>,
        receiver: &mut R,
    ) -> Result<bool, Failure> {
        self.used = true;
        self.lifetime = self.lifetime.saturating_sub(1);
        self.parser.start(request.shape.is_head());
        let mut outgoing = Outgoing::new(request.wire);
        loop {
            let broken = self.push(stamper.clock(), scratch, &mut outgoing, receiver).err();
            if let Some(reusable) = self.pull(stamper, scratch, receiver)? {
                return Ok(reusable && outgoing.is_done() && self.lifetime > 0);
            }
            if let Some(failure) = broken {
                return Err(failure);
            }
            let ready = self.socket.ready(!outgoing.is_done()).await;
            ready.map_err(|error| Failure::on_connection(&error))?;
        }
    }

    fn push<C: Clock, R: ResponseHandler>(
        &mut self,
        clock: &C,
        scratch: &RefCell<ReadBuffers>,
        outgoing: &mut Outgoing,
        receiver: &mut R,
    ) -> Result<(), Failure> {
        if outgoing.is_done() {
            return Ok(());
        }
        let sent = self.socket.send(&mut scratch.borrow_mut().whole, outgoing);
        sent.map_err(|error| Failure::on_connection(&error))?;
        if outgoing.is_done() {
            receiver.sent(clock.now(), outgoing.take());
        }
        Ok(())
    }

    /// Reads until nothing is left; `Some` when the response is over.
    fn pull<C: Clock, R: ResponseHandler>(
        &mut self,
        stamper: &RxClock<C>,
        scratch: &RefCell<ReadBuffers>,
        receiver: &mut R,
    ) -> Result<Option<bool>, Failure> {
        let mut scratch = scratch.borrow_mut();
        let Self { socket, parser, .. } = self;
        let mut reading = Reading {
            parser,
            receiver,
            flow: ControlFlow::Continue(()),
            progress: Ok(Progress::Partial),
        };
        loop {
            let read = socket.receive(stamper, &mut scratch, &mut |bytes, arrival| {
                reading.take(bytes, arrival);
            })?;
            if reading.flow == ControlFlow::Break(()) {
                return Ok(Some(false));
            }
            match (std::mem::replace(&mut reading.progress, Ok(Progress::Partial))?, read) {
                (Progress::Complete { reusable }, read) => {
                    return Ok(Some(reusable && read != Read::Closed));
                }
                (Progress::Partial, Read::Bytes) => {}
                (Progress::Partial, Read::Nothing) => return Ok(None),
                (Progress::Partial, Read::Closed) => {
                    return reading.parser.close().map(|_| Some(false));
                }
            }
        }
    }
}

/// A response that is being read.
struct Reading<'a, R> {
    parser: &'a mut ResponseParser,
    receiver: &'a mut R,
    flow: ControlFlow<()>,
    progress: Result<Progress, Failure>,
}

impl<R: ResponseHandler> Reading<'_, R> {
    /// Takes plaintext of one read.
    fn take(&mut self, bytes: &[u8], arrival: RxTime) {
        self.receiver.received(bytes.len(), arrival);
        if self.progress != Ok(Progress::Partial) {
            // A second TLS record after the end of the response.
            self.progress = Ok(Progress::Complete { reusable: false });
            return;
        }
        let Self { parser, receiver, flow, .. } = self;
        self.progress = parser.feed(bytes, &mut |part| match part {
            Part::Head(head) => receiver.head(&head),
            Part::Body(body) if *flow == ControlFlow::Continue(()) => {
                *flow = receiver.body(body, arrival.at);
            }
            Part::Body(_) => {}
        });
    }
}
