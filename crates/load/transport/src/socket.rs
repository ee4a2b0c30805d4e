//! A TCP socket, plain or under TLS, with non-blocking reads and writes.

use std::future::poll_fn;
use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, RawFd};
use std::task::{Context, Poll};

use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recv, recvmsg, setsockopt};
use nix::sys::time::TimeSpec;
use plimsoll_measure::{Clock, ErrorClass};
use rustls::{ClientConnection, HandshakeKind};
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::connection::{EncodedRequest, ReadBuffers};
use crate::failure::Failure;
use crate::stamp::{RxClock, RxTime};

/// Largest body that is copied behind its head: up to here, that costs less than a system call that gathers two parts.
const SMALL: usize = 16 * 1024;

/// An open socket.
#[derive(Debug)]
pub(crate) struct Socket {
    tcp: TcpStream,
    /// Does the kernel note when bytes arrive?
    stamped: bool,
    tls: Option<Box<ClientConnection>>,
}

/// What one non-blocking read found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// Nothing at the moment.
    Nothing,
    /// Bytes came off the wire; they may or may not have completed plaintext.
    Bytes,
    /// The peer has closed.
    Closed,
}

/// Bytes of a request that wait to be handed to the kernel.
#[derive(Debug)]
pub(crate) struct Outgoing {
    wire: EncodedRequest,
    /// Bytes that were taken.
    sent: usize,
    encrypted: bool,
}

impl Outgoing {
    pub(crate) const fn new(wire: EncodedRequest) -> Self {
        Self { wire, sent: 0, encrypted: false }
    }

    /// Has the kernel everything?
    pub(crate) const fn is_done(&self) -> bool {
        self.sent >= self.wire.len() && !self.encrypted
    }

    /// Takes the buffers out.
    pub(crate) fn take(&mut self) -> EncodedRequest {
        std::mem::take(&mut self.wire)
    }

    /// What is left of head and body.
    fn parts(&self) -> [&[u8]; 2] {
        let EncodedRequest { head, body } = &self.wire;
        let of_head = self.sent.min(head.len());
        [&head[of_head..], &body[self.sent - of_head..]]
    }
}

/// What became of bytes that were to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    /// So many were taken.
    pub(crate) bytes: usize,
    /// Has the kernel those that were taken? TLS may hold them.
    pub(crate) with_kernel: bool,
    /// Has it all of them?
    pub(crate) all: bool,
}

impl Socket {
    pub(crate) const fn plain(tcp: TcpStream) -> Self {
        Self { tcp, stamped: false, tls: None }
    }

    /// Asks the kernel to note when bytes arrive; without its consent reads are stamped when they happen.
    pub(crate) fn ask_for_stamps(&mut self) {
        self.stamped = ask_for_stamps(&self.tcp);
    }

    /// Runs the TLS handshake.
    pub(crate) async fn handshake(
        tcp: TcpStream,
        mut tls: ClientConnection,
    ) -> Result<Self, Failure> {
        while tls.is_handshaking() {
            let interest = if tls.wants_write() { Interest::WRITABLE } else { Interest::READABLE };
            tcp.ready(interest).await.map_err(|error| Failure::connecting(&error))?;
            flush_tls(&tcp, &mut tls).map_err(|error| Failure::connecting(&error))?;
            read_handshake(&tcp, &mut tls)?;
        }
        // The client's last message may still be waiting; the first request takes it along.
        Ok(Self { tcp, stamped: false, tls: Some(Box::new(tls)) })
    }

    /// The protocol that was agreed upon in the TLS handshake.
    pub(crate) fn alpn(&self) -> Option<&[u8]> {
        self.tls.as_ref().and_then(|tls| tls.alpn_protocol())
    }

    /// Did its TLS handshake resume an earlier session?
    pub(crate) fn was_resumed(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.handshake_kind() == Some(HandshakeKind::Resumed))
    }

    /// Waits until reading (or writing, where asked for) may go on.
    pub(crate) async fn ready(&self, to_write: bool) -> io::Result<()> {
        if to_write {
            return self.tcp.ready(Interest::READABLE | Interest::WRITABLE).await.map(|_| ());
        }
        // A waker's place that the socket has in any case; waiting for two interests takes a place in a locked list.
        poll_fn(|context| self.tcp.poll_read_ready(context)).await
    }

    /// Is there something to read, or the end? If not, the task is woken when there is.
    pub(crate) fn poll_readable(&self, context: &mut Context<'_>) -> io::Result<Poll<()>> {
        pending_is_ok(self.tcp.poll_read_ready(context))
    }

    /// May the kernel take more? If not, the task is woken when it may.
    pub(crate) fn poll_writable(&self, context: &mut Context<'_>) -> io::Result<Poll<()>> {
        pending_is_ok(self.tcp.poll_write_ready(context))
    }

    /// Hands as much of `bytes` to the kernel as it takes, after what TLS still holds.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<Written> {
        match &mut self.tls {
            None => write_plain(&self.tcp, bytes),
            Some(tls) => write_tls(&self.tcp, tls, bytes),
        }
    }

    /// Hands as much to the kernel as it takes. `whole` is room that it may use.
    pub(crate) fn send(&mut self, whole: &mut Vec<u8>, outgoing: &mut Outgoing) -> io::Result<()> {
        let result = match &mut self.tls {
            None => send_plain(&self.tcp, whole, outgoing),
            Some(tls) => send_tls(&self.tcp, tls, outgoing),
        };
        match result {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            other => other,
        }
    }

    /// Reads what has arrived, once, and passes the plaintext on with the time of its arrival.
    pub(crate) fn receive<C: Clock>(
        &mut self,
        stamper: &RxClock<C>,
        scratch: &mut ReadBuffers,
        on: &mut impl FnMut(&[u8], RxTime),
    ) -> Result<Read, Failure> {
        let ReadBuffers { wire, plain, note, .. } = scratch;
        let stamped = self.stamped;
        let read = receive_wire(&self.tcp, wire.len(), |fd| receive(fd, stamped, wire, note));
        let received = match read {
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Read::Nothing),
            Err(error) => return Err(Failure::on_connection(&error)),
        };
        if received.length == 0 {
            return Ok(Read::Closed);
        }
        let arrival = stamper.arrival(received.note);
        let wire = &wire[..received.length];
        if let Some(tls) = &mut self.tls {
            return decrypt(tls, wire, plain, &mut |bytes| on(bytes, arrival));
        }
        on(wire, arrival);
        Ok(Read::Bytes)
    }

    /// Is the socket open, with nothing unasked for in it? Costs no system call while nothing arrives.
    pub(crate) fn is_silent(&mut self) -> bool {
        let mut small = [0; 1];
        let fd = self.tcp.as_raw_fd();
        let peeked = self.tcp.try_io(Interest::READABLE, || {
            Ok(recv(fd, &mut small, MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT)?)
        });
        match peeked {
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
            Ok(0) => false,
            Ok(_) => self.holds_only_tickets(),
        }
    }

    /// TLS 1.3 servers send session tickets unasked, which is no answer to anything.
    fn holds_only_tickets(&mut self) -> bool {
        let Some(tls) = &mut self.tls else { return false };
        let mut wire = [0; 4096];
        let mut plaintext = false;
        let read = receive_wire(&self.tcp, wire.len(), |fd| receive_plain(fd, &mut wire));
        let read = read.map_err(|error| Failure::on_connection(&error)).and_then(|received| {
            decrypt(tls, &wire[..received.length], &mut [0; 64], &mut |_| plaintext = true)
        });
        matches!(read, Ok(Read::Bytes)) && !plaintext
    }
}

/// A poll that is an error as soon as it fails.
fn pending_is_ok(poll: Poll<io::Result<()>>) -> io::Result<Poll<()>> {
    match poll {
        Poll::Ready(result) => result.map(Poll::Ready),
        Poll::Pending => Ok(Poll::Pending),
    }
}

/// Asks the kernel to note when bytes arrive; true if it will.
fn ask_for_stamps(tcp: &TcpStream) -> bool {
    setsockopt(tcp, ReceiveTimestampns, &true).is_ok()
}

/// What one system call read.
#[derive(Clone, Copy, Debug)]
struct Received {
    length: usize,
    note: Option<TimeSpec>,
}

/// One read. A read that does not fill the buffer has emptied the socket, so the readiness is cleared
/// right away: the next read then costs no failing system call (epoll(7), edge-triggered mode).
fn receive_wire(
    tcp: &TcpStream,
    room: usize,
    read: impl FnOnce(RawFd) -> io::Result<Received>,
) -> io::Result<Received> {
    let fd = tcp.as_raw_fd();
    let mut short = None;
    let result = tcp.try_io(Interest::READABLE, || {
        let received = read(fd)?;
        if received.length < room {
            short = Some(received);
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(received)
    });
    short.map_or(result, Ok)
}

/// Reads bytes, with the kernel's note about the last of them where it makes one.
fn receive(fd: RawFd, stamped: bool, buffer: &mut [u8], note: &mut [u8]) -> io::Result<Received> {
    if stamped { receive_noted(fd, buffer, note) } else { receive_plain(fd, buffer) }
}

/// Reads bytes alone.
fn receive_plain(fd: RawFd, buffer: &mut [u8]) -> io::Result<Received> {
    Ok(Received { length: recv(fd, buffer, MsgFlags::MSG_DONTWAIT)?, note: None })
}

/// Reads bytes with the kernel's note about the last of them.
fn receive_noted(fd: RawFd, buffer: &mut [u8], room: &mut [u8]) -> io::Result<Received> {
    let mut slices = [IoSliceMut::new(buffer)];
    let message = recvmsg::<()>(fd, &mut slices, Some(room), MsgFlags::MSG_DONTWAIT)?;
    let note = message.cmsgs()?.find_map(|message| match message {
        ControlMessageOwned::ScmTimestampns(time) => Some(time),
        _ => None,
    });
    Ok(Received { length: message.bytes, note })
}

fn send_plain(tcp: &TcpStream, whole: &mut Vec<u8>, outgoing: &mut Outgoing) -> io::Result<()> {
    while !outgoing.is_done() {
        let sent = match outgoing.parts() {
            [part, []] | [[], part] => tcp.try_write(part)?,
            [head, body] if body.len() <= SMALL => {
                whole.clear();
                whole.extend_from_slice(head);
                whole.extend_from_slice(body);
                tcp.try_write(whole)?
            }
            [head, body] => tcp.try_write_vectored(&[IoSlice::new(head), IoSlice::new(body)])?,
        };
        outgoing.sent += sent;
    }
    Ok(())
}

fn send_tls(
    tcp: &TcpStream,
    tls: &mut ClientConnection,
    outgoing: &mut Outgoing,
) -> io::Result<()> {
    while !outgoing.is_done() {
        let [head, body] = outgoing.parts();
        let accepted = tls.writer().write_vectored(&[IoSlice::new(head), IoSlice::new(body)])?;
        outgoing.sent += accepted;
        outgoing.encrypted = tls.wants_write();
        if outgoing.encrypted && !flush_tls(tcp, tls)? {
            return Ok(());
        }
        outgoing.encrypted = tls.wants_write();
    }
    Ok(())
}

fn write_plain(tcp: &TcpStream, bytes: &[u8]) -> io::Result<Written> {
    let mut sent = 0;
    while sent < bytes.len() {
        match tcp.try_write(&bytes[sent..]) {
            Ok(taken) => sent += taken,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(Written { bytes: sent, with_kernel: true, all: sent == bytes.len() })
}

fn write_tls(tcp: &TcpStream, tls: &mut ClientConnection, bytes: &[u8]) -> io::Result<Written> {
    let mut sent = 0;
    loop {
        if !flush_tls(tcp, tls)? {
            return Ok(Written { bytes: sent, with_kernel: false, all: false });
        }
        if sent == bytes.len() {
            return Ok(Written { bytes: sent, with_kernel: true, all: true });
        }
        sent += tls.writer().write(&bytes[sent..])?;
    }
}

/// Hands ciphertext to the kernel; false when it takes no more for now.
fn flush_tls(tcp: &TcpStream, tls: &mut ClientConnection) -> io::Result<bool> {
    while tls.wants_write() {
        match tls.write_tls(&mut Kernel(tcp)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

fn read_handshake(tcp: &TcpStream, tls: &mut ClientConnection) -> Result<(), Failure> {
    let mut wire = [0; 4096];
    match receive_wire(tcp, wire.len(), |fd| receive_plain(fd, &mut wire)) {
        Ok(Received { length: 0, .. }) => Err(Failure::new(
            ErrorClass::TlsHandshake,
            "the target closed during the handshake; does it speak TLS?",
        )),
        Ok(received) => decrypt(tls, &wire[..received.length], &mut [], &mut |_| {}).map(|_| ()),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        Err(error) => Err(Failure::connecting(&error)),
    }
}

/// Takes ciphertext, passes plaintext on. With an empty `plain` buffer no plaintext is taken out yet.
fn decrypt(
    tls: &mut ClientConnection,
    mut wire: &[u8],
    plain: &mut [u8],
    on: &mut impl FnMut(&[u8]),
) -> Result<Read, Failure> {
    while !wire.is_empty() {
        tls.read_tls(&mut wire).map_err(|error| Failure::on_connection(&error))?;
        tls.process_new_packets().map_err(|error| Failure::of_tls(&error))?;
        if plain.is_empty() {
            continue;
        }
        loop {
            match tls.reader().read(plain) {
                Ok(0) => return Ok(Read::Closed),
                Ok(length) => on(&plain[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(Failure::on_connection(&error)),
            }
        }
    }
    Ok(Read::Bytes)
}

/// The socket as rustls wants to write to it.
struct Kernel<'a>(&'a TcpStream);

impl io::Write for Kernel<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(slices)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
