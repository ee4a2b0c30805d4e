//! A WebSocket over a socket: the handshake, one message and its answer after another, and the
//! closing handshake.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::ops::ControlFlow;
use std::pin::pin;
use std::task::{Context, Poll};

use plimsoll_measure::{Clock, ErrorClass, Moment, Nanos, Rng};

use super::frame_reader::Message;
use super::session::Session;
use super::upgrade::{Upgrade, UpgradeEnd};
use crate::buffers::{EncodedRequest, ReadBuffers};
use crate::connection::Connection;
use crate::failure::Failure;
use crate::http1::OutgoingRequest;
use crate::message::{RequestHead, ResponseHandler};
use crate::rx_timestamp::{RxClock, RxTime};
use crate::socket::{ReadResult, Socket};

/// Observes a handshake and the exchanges after it. Bytes of a handshake that succeeds are not
/// counted as received, like those of TLS; an ordinary answer to it is.
pub trait MessageHandler: ResponseHandler {
    /// The last byte of the handshake's request was handed to the kernel.
    fn upgrade_sent(&mut self, at: Moment);
    /// A message came. `Break` means that it was the last one of the answer.
    fn message(&mut self, message: Message<'_>, at: Moment) -> ControlFlow<()>;
    /// A read is over; whether it ended within a message.
    fn read_ended(&mut self, within_message: bool);
}

/// A handshake to be made.
#[derive(Debug)]
pub struct UpgradeRequest<'a> {
    /// A `GET` with [`upgrade_headers`](super::upgrade_headers).
    pub head: &'a RequestHead,
    /// Its `x-request-id`.
    pub id: Option<&'a [u8]>,
    /// The subprotocol that the head asks for.
    pub subprotocol: Option<&'a str>,
    /// Gives the key of the handshake and those of all masks.
    pub keys: Rng,
    /// Largest message that is read, in bytes.
    pub max_message: usize,
}

/// An open WebSocket.
#[derive(Debug)]
pub struct WebSocket {
    socket: Socket,
    session: Session,
    outgoing: OutgoingRequest,
    /// Whether TLS holds bytes of control frames that the kernel has not taken yet.
    unflushed: bool,
}

impl WebSocket {
    /// Makes the handshake over a connection that has carried nothing. `None`: the target gave an
    /// ordinary answer, which the handler has got whole.
    ///
    /// # Errors
    /// A [`Failure`] of the network, or [`ErrorClass::WebsocketHandshake`].
    pub async fn open<C: Clock, H: MessageHandler>(
        connection: Connection,
        request: UpgradeRequest<'_>,
        rx_clock: &RxClock<C>,
        buffers: &RefCell<ReadBuffers>,
        handler: &mut H,
    ) -> Result<Option<Self>, Failure> {
        let UpgradeRequest { head, id, subprotocol, mut keys, max_message } = request;
        let Some(socket) = connection.into_socket() else {
            return Err(Failure::new(ErrorClass::LocalIo, "a WebSocket needs HTTP/1.1"));
        };
        let mut upgrade = Upgrade::new(&mut keys, subprotocol);
        let mut wire = EncodedRequest::default();
        upgrade.render(head, id, &mut wire.head);
        let session = Session::new(keys, max_message);
        let outgoing = OutgoingRequest::new(wire);
        let mut opened = Self { socket, session, outgoing, unflushed: false };
        loop {
            let sent = opened.send_upgrade(rx_clock.clock(), buffers, handler);
            opened.receive_upgrade(rx_clock, buffers, &mut upgrade, handler)?;
            if let Some(end) = upgrade.take_end() {
                return Ok((end? == UpgradeEnd::Switched).then_some(opened));
            }
            sent.map_err(|error| Failure::on_connection(&error))?;
            opened.ready().await?;
        }
    }

    fn send_upgrade<C: Clock>(
        &mut self,
        clock: &C,
        buffers: &RefCell<ReadBuffers>,
        handler: &mut impl MessageHandler,
    ) -> io::Result<()> {
        if self.outgoing.is_done() {
            return Ok(());
        }
        self.socket.send(&mut buffers.borrow_mut().small_request, &mut self.outgoing)?;
        if self.outgoing.is_done() {
            handler.upgrade_sent(clock.now());
        }
        Ok(())
    }

    fn receive_upgrade<C: Clock>(
        &mut self,
        rx_clock: &RxClock<C>,
        buffers: &RefCell<ReadBuffers>,
        upgrade: &mut Upgrade<'_>,
        handler: &mut impl MessageHandler,
    ) -> Result<(), Failure> {
        let mut buffers = buffers.borrow_mut();
        let Self { socket, session, .. } = self;
        while upgrade.end().is_none() {
            let read = socket.receive(rx_clock, &mut buffers, &mut |bytes, rx_time| {
                read_upgrade(upgrade, session, handler, bytes, rx_time);
            })?;
            match read {
                ReadResult::Bytes => {}
                ReadResult::WouldBlock => break,
                ReadResult::Closed => upgrade.closed(),
            }
        }
        Ok(())
    }

    /// Sends a text, which is the body of `text`, and reads its answer up to the message that the
    /// handler calls the last one. Pings are answered meanwhile.
    ///
    /// # Errors
    /// A [`Failure`] of the network or the target. Nothing further can be exchanged then.
    ///
    /// # Cancel safety
    /// After a dropped exchange, only [`WebSocket::begin_close`] makes sense.
    pub async fn exchange<C: Clock, H: MessageHandler>(
        &mut self,
        rx_clock: &RxClock<C>,
        buffers: &RefCell<ReadBuffers>,
        mut text: EncodedRequest,
        handler: &mut H,
    ) -> Result<(), Failure> {
        self.receive_between(rx_clock, buffers);
        if let Some(failure) = self.session.end() {
            return Err(failure.clone());
        }
        self.session.frame(&mut text);
        self.outgoing = OutgoingRequest::new(text);
        let mut answered = false;
        loop {
            let sent = self.send(rx_clock.clock(), buffers, handler);
            self.receive(rx_clock, buffers, handler, &mut answered);
            if answered {
                self.check_sent();
                return Ok(());
            }
            if let Some(failure) = self.session.end() {
                let failure = failure.clone();
                // The target learns why, if it still reads.
                let _ = self.flush_control();
                return Err(failure);
            }
            if let Err(error) = sent {
                let failure = Failure::on_connection(&error);
                self.session.fail(failure.clone());
                return Err(failure);
            }
            self.ready().await?;
        }
    }

    /// Waits for `until`, and answers pings meanwhile.
    pub async fn idle<C: Clock>(
        &mut self,
        rx_clock: &RxClock<C>,
        buffers: &RefCell<ReadBuffers>,
        until: impl Future<Output = ()>,
    ) {
        let mut until = pin!(until);
        poll_fn(|context| {
            if until.as_mut().poll(context).is_ready() {
                return Poll::Ready(());
            }
            self.poll_idle(context, rx_clock, buffers);
            Poll::Pending
        })
        .await;
    }

    /// Begins to end the connection, with this code: sends what the kernel takes of a close frame.
    /// `false` means that there is nothing to wait for: the connection is to be dropped.
    pub fn begin_close(&mut self, code: u16) -> bool {
        if self.outgoing.is_begun() {
            return false;
        }
        self.outgoing = OutgoingRequest::default();
        self.session.close(code);
        self.flush_control().is_ok()
    }

    /// Waits until the target has ended the connection as well, `limit` at most. Who closes first
    /// keeps the port for a while, which would be the generator (7.1.1).
    pub async fn finish_close<C: Clock>(
        &mut self,
        rx_clock: &RxClock<C>,
        buffers: &RefCell<ReadBuffers>,
        limit: Nanos,
    ) {
        let wait = async {
            while self.flush_control().is_ok()
                && !self.has_disconnected(rx_clock, buffers)
                && self.ready().await.is_ok()
            {}
        };
        let _ = tokio::time::timeout(limit.to_duration(), wait).await;
    }

    /// Waits until there is something to read or, where something is to be sent, room for it.
    async fn ready(&self) -> Result<(), Failure> {
        let ready = self.socket.ready(self.wants_to_write()).await;
        ready.map_err(|error| Failure::on_connection(&error))
    }

    const fn wants_to_write(&self) -> bool {
        !self.outgoing.is_done() || self.unflushed || !self.session.is_flushed()
    }

    /// An answer to half a message leaves the other half owed.
    fn check_sent(&mut self) {
        if !self.outgoing.is_done() {
            let detail = "the answer ended before the whole message was sent";
            self.session.fail(Failure::new(ErrorClass::MalformedBody, detail));
        }
    }

    /// Writes what the socket takes. Frames are not interrupted by others.
    fn send<C: Clock>(
        &mut self,
        clock: &C,
        buffers: &RefCell<ReadBuffers>,
        handler: &mut impl MessageHandler,
    ) -> io::Result<()> {
        if !self.outgoing.is_begun() {
            self.flush_control()?;
            if !self.session.is_flushed() {
                return Ok(());
            }
        }
        if !self.outgoing.is_done() {
            self.socket.send(&mut buffers.borrow_mut().small_request, &mut self.outgoing)?;
            if !self.outgoing.is_done() {
                return Ok(());
            }
            handler.sent(clock.now(), self.outgoing.take());
        }
        self.flush_control()
    }

    fn flush_control(&mut self) -> io::Result<()> {
        if self.session.is_flushed() && !self.unflushed {
            return Ok(());
        }
        let written = self.socket.write(self.session.control())?;
        self.session.control_sent(written.bytes);
        self.unflushed = !written.flushed;
        Ok(())
    }

    /// Reads until the answer or the session ends, or the socket has no more.
    fn receive<C: Clock, H: MessageHandler>(
        &mut self,
        rx_clock: &RxClock<C>,
        buffers: &RefCell<ReadBuffers>,
        handler: &mut H,
        answered: &mut bool,
    ) {
        let mut buffers = buffers.borrow_mut();
        let Self { socket, session, .. } = self;
        while !*answered && session.end().is_none() {
            let read = socket.receive(rx_clock, &mut buffers, &mut |bytes, rx_time| {
                read_answer(session, handler, answered, bytes, rx_time);
            });
            match read {
                Ok(ReadResult::Bytes) => {}
                Ok(ReadResult::WouldBlock) => break,
                Ok(ReadResult::Closed) => session.disconnected(),
                Err(failure) => session.fail(failure),
            }
        }
    }

    /// Reads what came while no answer was awaited.
    fn receive_between<C: Clock>(&mut self, rx_clock: &RxClock<C>, buffers: &RefCell<ReadBuffers>) {
        let mut buffers = buffers.borrow_mut();
        let Self { socket, session, .. } = self;
        while session.end().is_none() {
            let read = socket.receive(rx_clock, &mut buffers, &mut |bytes, _| {
                session.received_between(bytes);
            });
            match read {
                Ok(ReadResult::Bytes) => {}
                Ok(ReadResult::WouldBlock) => break,
                Ok(ReadResult::Closed) => {
                    let detail = "the target ended the connection between two messages, without \
                                  a close frame";
                    session.fail(Failure::new(ErrorClass::WebsocketClosed, detail));
                }
                Err(failure) => session.fail(failure),
            }
        }
    }

    /// Reads and discards; whether the connection has ended.
    fn has_disconnected<C: Clock>(
        &mut self,
        rx_clock: &RxClock<C>,
        buffers: &RefCell<ReadBuffers>,
    ) -> bool {
        let mut buffers = buffers.borrow_mut();
        let Self { socket, session, .. } = self;
        loop {
            let read = socket.receive(rx_clock, &mut buffers, &mut |bytes, _| {
                session.discard(bytes);
            });
            match read {
                Ok(ReadResult::Bytes) => {}
                Ok(ReadResult::WouldBlock) => return false,
                Ok(ReadResult::Closed) | Err(_) => return true,
            }
        }
    }

    /// Reads and answers what came. The task is woken when there is more to do.
    fn poll_idle<C: Clock>(
        &mut self,
        context: &mut Context<'_>,
        rx_clock: &RxClock<C>,
        buffers: &RefCell<ReadBuffers>,
    ) {
        while self.session.end().is_none() {
            match self.socket.poll_readable(context) {
                Ok(Poll::Ready(())) => self.receive_between(rx_clock, buffers),
                Ok(Poll::Pending) => break,
                Err(error) => self.session.fail(Failure::on_connection(&error)),
            }
        }
        while self.flush_control().is_ok() && self.wants_to_write() {
            if !matches!(self.socket.poll_writable(context), Ok(Poll::Ready(()))) {
                break;
            }
        }
    }
}

/// Reads bytes during a handshake, and the frames behind it.
fn read_upgrade(
    upgrade: &mut Upgrade<'_>,
    session: &mut Session,
    handler: &mut impl MessageHandler,
    bytes: &[u8],
    rx_time: RxTime,
) {
    let used = upgrade.received(bytes, rx_time, handler);
    if upgrade.end() == Some(&Ok(UpgradeEnd::Switched)) {
        session.received_between(&bytes[used..]);
    }
}

/// Reads bytes while an answer is awaited. What follows its last message belongs to nothing.
fn read_answer(
    session: &mut Session,
    handler: &mut impl MessageHandler,
    answered: &mut bool,
    bytes: &[u8],
    rx_time: RxTime,
) {
    if *answered {
        return session.received_between(bytes);
    }
    handler.received(bytes.len(), rx_time);
    *answered = session.received_answer(bytes, &mut |message| handler.message(message, rx_time.at));
    handler.read_ended(session.is_within_message());
}
