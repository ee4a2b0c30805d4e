//! A WebSocket over a socket: the handshake, messages with their responses, and the closing
//! handshake.

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

/// Observes a handshake and the exchanges after it. Bytes of a successful handshake are not counted
/// as received, like those of TLS; an ordinary response to it is.
pub trait MessageHandler: ResponseHandler {
    /// The last byte of the handshake's request was passed to the kernel.
    fn upgrade_sent(&mut self, at: Moment);
    /// A message arrived. `Break` means that it was the last one of the response.
    fn message(&mut self, message: Message<'_>, at: Moment) -> ControlFlow<()>;
    /// A read is over; `within_message` is true if it ended within a message.
    fn read_ended(&mut self, within_message: bool);
}

/// A handshake to be made.
#[derive(Debug)]
pub struct UpgradeRequest<'a> {
    /// A `GET` with [`upgrade_headers`](super::upgrade_headers).
    pub head: &'a RequestHead,
    /// Its `x-request-id`.
    pub id: Option<&'a [u8]>,
    /// The subprotocol requested by the head.
    pub subprotocol: Option<&'a str>,
    /// Generator of the handshake's key and of all masks.
    pub keys: Rng,
    /// Maximum size of a received message in bytes.
    pub max_message: usize,
}

/// An open WebSocket.
#[derive(Debug)]
pub struct WebSocket {
    socket: Socket,
    session: Session,
    outgoing: OutgoingRequest,
    /// Whether TLS buffers bytes of control frames that the kernel has not accepted yet.
    unflushed: bool,
}

impl WebSocket {
    /// Performs the handshake over an unused connection. `None`: the target sent an ordinary
    /// response, which the handler has received completely.
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

    /// Sends a text, which is the body of `text`, and reads its response up to the message that the
    /// handler calls the last one. Pings are answered meanwhile.
    ///
    /// # Errors
    /// A [`Failure`] of the network or the target. The connection is then unusable.
    ///
    /// # Cancel safety
    /// After a dropped exchange, only [`WebSocket::begin_close`] may be called.
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
                // Tells the target the reason, if it still reads.
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

    /// Begins to close the connection with this code: sends as much of a close frame as the kernel
    /// accepts. `false` means that there is nothing to wait for, and the connection can be dropped.
    pub fn begin_close(&mut self, code: u16) -> bool {
        if self.outgoing.is_begun() {
            return false;
        }
        self.outgoing = OutgoingRequest::default();
        self.session.close(code);
        self.flush_control().is_ok()
    }

    /// Waits at most `limit` until the target has closed the connection as well. The side that
    /// closes first keeps the port for a while, which would be the generator (7.1.1).
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

    /// Waits until data can be read or, if there is something to send, written.
    async fn ready(&self) -> Result<(), Failure> {
        let ready = self.socket.ready(self.wants_to_write()).await;
        ready.map_err(|error| Failure::on_connection(&error))
    }

    const fn wants_to_write(&self) -> bool {
        !self.outgoing.is_done() || self.unflushed || !self.session.is_flushed()
    }

    /// A response to half a message makes the connection unusable.
    fn check_sent(&mut self) {
        if !self.outgoing.is_done() {
            let detail = "the answer ended before the whole message was sent";
            self.session.fail(Failure::new(ErrorClass::MalformedBody, detail));
        }
    }

    /// Writes as much as the socket accepts. Frames are not interleaved.
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

    /// Reads until the response or the session ends, or the socket has no more data.
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

    /// Reads data that arrived between exchanges.
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

    /// Reads and discards data; returns whether the connection has ended.
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

    /// Reads data and answers pings. The task is woken when there is more to do.
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

/// Reads bytes during a handshake, and the frames after it.
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

/// Reads bytes of a response. Data after its last message belong to no exchange.
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
