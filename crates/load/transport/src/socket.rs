//! A TCP socket, plain or under TLS, with non-blocking reads and writes.

use std::future::poll_fn;
use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, RawFd};
use std::rc::Rc;
use std::task::{Context, Poll};

use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recv, recvmsg, setsockopt};
use nix::sys::time::TimeSpec;
use plimsoll_measure::{Clock, ErrorClass};
use rustls::{ClientConnection, HandshakeKind, ProtocolVersion};
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::buffers::ReadBuffers;
use crate::failure::Failure;
use crate::http1::OutgoingRequest;
use crate::rx_timestamp::{RxClock, RxTime};

/// Maximum size of a body that is copied behind its head. Up to this size, the copy costs less than
/// a vectored write.
const SMALL_BODY: usize = 16 * 1024;

/// An open socket.
#[derive(Debug)]
pub(crate) struct Socket {
    tcp: Rc<TcpStream>,
    /// Whether the kernel time-stamps received bytes.
    timestamped: bool,
    tls: Option<Box<ClientConnection>>,
}

/// The result of one non-blocking read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadResult {
    /// No data is available now.
    WouldBlock,
    /// Bytes were received. With TLS they may or may not have completed plaintext.
    Bytes,
    /// The peer has closed.
    Closed,
}

/// The result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WriteResult {
    /// Number of accepted bytes.
    pub(crate) bytes: usize,
    /// Whether the kernel has accepted these bytes. TLS may still buffer them.
    pub(crate) flushed: bool,
    /// Whether the kernel has accepted all bytes.
    pub(crate) complete: bool,
}

impl Socket {
    pub(crate) fn plain(tcp: TcpStream) -> Self {
        Self { tcp: Rc::new(tcp), timestamped: false, tls: None }
    }

    /// Enables kernel receive time stamps. If that fails, reads are stamped when they happen.
    pub(crate) fn enable_timestamps(&mut self) {
        self.timestamped = setsockopt(&*self.tcp, ReceiveTimestampns, &true).is_ok();
    }

    /// Performs the TLS handshake.
    pub(crate) async fn handshake(
        tcp: TcpStream,
        mut tls: ClientConnection,
    ) -> Result<Self, Failure> {
        // Sends the client's last message as well, because a connection may wait long for its first
        // request, and until then the target would count its handshake as unfinished.
        while tls.is_handshaking() || tls.wants_write() {
            let interest = if tls.wants_write() { Interest::WRITABLE } else { Interest::READABLE };
            tcp.ready(interest).await.map_err(|error| Failure::connecting(&error))?;
            flush_tls(&tcp, &mut tls).map_err(|error| Failure::connecting(&error))?;
            if tls.is_handshaking() {
                read_handshake(&tcp, &mut tls)?;
            }
        }
        Ok(Self { tcp: Rc::new(tcp), timestamped: false, tls: Some(Box::new(tls)) })
    }

    /// The TCP connection of a socket without TLS.
    pub(crate) fn without_tls(&self) -> Option<&Rc<TcpStream>> {
        self.tls.is_none().then_some(&self.tcp)
    }

    /// The protocol negotiated in the TLS handshake.
    pub(crate) fn alpn(&self) -> Option<&[u8]> {
        self.tls.as_ref().and_then(|tls| tls.alpn_protocol())
    }

    /// The negotiated TLS parameters: `TLS 1.3, ALPN h2`; `None` without TLS.
    pub(crate) fn negotiated(&self) -> Option<String> {
        let tls = self.tls.as_ref()?;
        let version = match tls.protocol_version() {
            Some(ProtocolVersion::TLSv1_3) => "TLS 1.3".to_owned(),
            Some(ProtocolVersion::TLSv1_2) => "TLS 1.2".to_owned(),
            other => format!("{other:?}"),
        };
        let alpn = self.alpn().map_or_else(
            || "without ALPN".to_owned(),
            |name: &[u8]| format!("ALPN {}", String::from_utf8_lossy(name)),
        );
        Some(format!("{version}, {alpn}"))
    }

    /// Whether the TLS handshake resumed an earlier session.
    pub(crate) fn was_resumed(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.handshake_kind() == Some(HandshakeKind::Resumed))
    }

    /// Waits until the socket is readable or, with `to_write`, writable.
    pub(crate) async fn ready(&self, to_write: bool) -> io::Result<()> {
        poll_fn(|context| self.poll_ready(context, to_write)).await
    }

    /// The same as a poll.
    pub(crate) fn poll_ready(
        &self,
        context: &mut Context<'_>,
        to_write: bool,
    ) -> Poll<io::Result<()>> {
        // Each of the two has its own waker slot in the socket. A single wait for both would need a
        // locked list.
        match self.tcp.poll_read_ready(context) {
            Poll::Pending if to_write => self.tcp.poll_write_ready(context),
            readable => readable,
        }
    }

    /// Whether there is data, or the end. If not, the task is woken later.
    pub(crate) fn poll_readable(&self, context: &mut Context<'_>) -> io::Result<Poll<()>> {
        pending_is_ok(self.tcp.poll_read_ready(context))
    }

    /// Whether the kernel can accept more. If not, the task is woken later.
    pub(crate) fn poll_writable(&self, context: &mut Context<'_>) -> io::Result<Poll<()>> {
        pending_is_ok(self.tcp.poll_write_ready(context))
    }

    /// Writes as much of `bytes` as the kernel accepts, after the bytes that TLS still buffers.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<WriteResult> {
        match &mut self.tls {
            None => write_plain(&self.tcp, bytes),
            Some(tls) => write_tls(&self.tcp, tls, bytes),
        }
    }

    /// Writes as much as the kernel accepts. `joined` is scratch space.
    pub(crate) fn send(
        &mut self,
        joined: &mut Vec<u8>,
        outgoing: &mut OutgoingRequest,
    ) -> io::Result<()> {
        let result = match &mut self.tls {
            None => send_plain(&self.tcp, joined, outgoing),
            Some(tls) => send_tls(&self.tcp, tls, outgoing),
        };
        match result {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            other => other,
        }
    }

    /// Reads once, and passes the plaintext to `on` with the time of its arrival.
    pub(crate) fn receive<C: Clock>(
        &mut self,
        rx_clock: &RxClock<C>,
        buffers: &mut ReadBuffers,
        on: &mut impl FnMut(&[u8], RxTime),
    ) -> Result<ReadResult, Failure> {
        let ReadBuffers { raw, plaintext, control, .. } = buffers;
        let timestamped = self.timestamped;
        let read = read_raw(&self.tcp, raw.len(), |fd| receive(fd, timestamped, raw, control));
        let received = match read {
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Ok(ReadResult::WouldBlock);
            }
            Err(error) => return Err(Failure::on_connection(&error)),
        };
        if received.length == 0 {
            return Ok(ReadResult::Closed);
        }
        let rx_time = rx_clock.timestamp(received.kernel_time);
        let raw = &raw[..received.length];
        if let Some(tls) = &mut self.tls {
            return decrypt(tls, raw, plaintext, &mut |bytes| on(bytes, rx_time));
        }
        on(raw, rx_time);
        Ok(ReadResult::Bytes)
    }

    /// Whether the socket is open and has no unexpected data. Needs no system call while nothing
    /// arrives.
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

    /// TLS 1.3 servers send session tickets unasked. They do not belong to a response.
    fn holds_only_tickets(&mut self) -> bool {
        let Some(tls) = &mut self.tls else { return false };
        let mut raw = [0; 4096];
        let mut plaintext = false;
        let read = read_raw(&self.tcp, raw.len(), |fd| receive_untimed(fd, &mut raw));
        let read = read.map_err(|error| Failure::on_connection(&error)).and_then(|received| {
            decrypt(tls, &raw[..received.length], &mut [0; 64], &mut |_| plaintext = true)
        });
        matches!(read, Ok(ReadResult::Bytes)) && !plaintext
    }
}

/// Converts a poll of a result into a result of a poll.
fn pending_is_ok(poll: Poll<io::Result<()>>) -> io::Result<Poll<()>> {
    match poll {
        Poll::Ready(result) => result.map(Poll::Ready),
        Poll::Pending => Ok(Poll::Pending),
    }
}

pub(crate) fn send_plain(
    tcp: &TcpStream,
    joined: &mut Vec<u8>,
    outgoing: &mut OutgoingRequest,
) -> io::Result<()> {
    while !outgoing.is_done() {
        let sent = match outgoing.rest() {
            [part, []] | [[], part] => tcp.try_write(part)?,
            [head, body] if body.len() <= SMALL_BODY => {
                joined.clear();
                joined.extend_from_slice(head);
                joined.extend_from_slice(body);
                tcp.try_write(joined)?
            }
            [head, body] => tcp.try_write_vectored(&[IoSlice::new(head), IoSlice::new(body)])?,
        };
        outgoing.wrote(sent);
    }
    Ok(())
}

fn send_tls(
    tcp: &TcpStream,
    tls: &mut ClientConnection,
    outgoing: &mut OutgoingRequest,
) -> io::Result<()> {
    while !outgoing.is_done() {
        let [head, body] = outgoing.rest();
        let accepted = tls.writer().write_vectored(&[IoSlice::new(head), IoSlice::new(body)])?;
        outgoing.wrote(accepted);
        outgoing.set_encrypted(tls.wants_write());
        if outgoing.encrypted && !flush_tls(tcp, tls)? {
            return Ok(());
        }
        outgoing.set_encrypted(tls.wants_write());
    }
    Ok(())
}

fn write_plain(tcp: &TcpStream, bytes: &[u8]) -> io::Result<WriteResult> {
    let mut sent = 0;
    while sent < bytes.len() {
        match tcp.try_write(&bytes[sent..]) {
            Ok(taken) => sent += taken,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(WriteResult { bytes: sent, flushed: true, complete: sent == bytes.len() })
}

fn write_tls(tcp: &TcpStream, tls: &mut ClientConnection, bytes: &[u8]) -> io::Result<WriteResult> {
    let mut sent = 0;
    loop {
        if !flush_tls(tcp, tls)? {
            return Ok(WriteResult { bytes: sent, flushed: false, complete: false });
        }
        if sent == bytes.len() {
            return Ok(WriteResult { bytes: sent, flushed: true, complete: true });
        }
        sent += tls.writer().write(&bytes[sent..])?;
    }
}

/// Passes ciphertext to the kernel. Returns false if it cannot accept more for now.
fn flush_tls(tcp: &TcpStream, tls: &mut ClientConnection) -> io::Result<bool> {
    while tls.wants_write() {
        match tls.write_tls(&mut TcpWriter(tcp)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

fn read_handshake(tcp: &TcpStream, tls: &mut ClientConnection) -> Result<(), Failure> {
    let mut raw = [0; 4096];
    match read_raw(tcp, raw.len(), |fd| receive_untimed(fd, &mut raw)) {
        Ok(RawRead { length: 0, .. }) => Err(Failure::new(
            ErrorClass::TlsHandshake,
            "the target closed the connection during the handshake; does it support TLS on this port?",
        )),
        Ok(received) => decrypt(tls, &raw[..received.length], &mut [], &mut |_| {}).map(|_| ()),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        Err(error) => Err(Failure::connecting(&error)),
    }
}

/// Decrypts `raw` and passes the plaintext to `on`. With an empty `plaintext` buffer, no plaintext
/// is read yet.
fn decrypt(
    tls: &mut ClientConnection,
    mut raw: &[u8],
    plaintext: &mut [u8],
    on: &mut impl FnMut(&[u8]),
) -> Result<ReadResult, Failure> {
    while !raw.is_empty() {
        tls.read_tls(&mut raw).map_err(|error| Failure::on_connection(&error))?;
        tls.process_new_packets().map_err(|error| Failure::from_tls(&error))?;
        if plaintext.is_empty() {
            continue;
        }
        loop {
            match tls.reader().read(plaintext) {
                Ok(0) => return Ok(ReadResult::Closed),
                Ok(length) => on(&plaintext[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(Failure::on_connection(&error)),
            }
        }
    }
    Ok(ReadResult::Bytes)
}

/// Lets rustls write to the socket.
struct TcpWriter<'a>(&'a TcpStream);

impl io::Write for TcpWriter<'_> {
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

/// The result of one read system call.
#[derive(Clone, Copy, Debug)]
struct RawRead {
    length: usize,
    /// Kernel time stamp of the last bytes.
    kernel_time: Option<TimeSpec>,
}

/// Reads once. A read that does not fill the buffer has emptied the socket, so the readiness is
/// cleared right away. This saves the next read a failing system call (epoll(7), edge-triggered
/// mode).
fn read_raw(
    tcp: &TcpStream,
    capacity: usize,
    read: impl FnOnce(RawFd) -> io::Result<RawRead>,
) -> io::Result<RawRead> {
    let fd = tcp.as_raw_fd();
    let mut short = None;
    let result = tcp.try_io(Interest::READABLE, || {
        let received = read(fd)?;
        if received.length < capacity {
            short = Some(received);
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(received)
    });
    short.map_or(result, Ok)
}

/// Reads bytes, with the kernel's time stamp if enabled.
fn receive(
    fd: RawFd,
    timestamped: bool,
    buffer: &mut [u8],
    control: &mut [u8],
) -> io::Result<RawRead> {
    if timestamped { receive_timed(fd, buffer, control) } else { receive_untimed(fd, buffer) }
}

/// Reads bytes without a time stamp.
fn receive_untimed(fd: RawFd, buffer: &mut [u8]) -> io::Result<RawRead> {
    Ok(RawRead { length: recv(fd, buffer, MsgFlags::MSG_DONTWAIT)?, kernel_time: None })
}

/// Reads bytes with the kernel's time stamp of the last one.
fn receive_timed(fd: RawFd, buffer: &mut [u8], control: &mut [u8]) -> io::Result<RawRead> {
    let mut slices = [IoSliceMut::new(buffer)];
    let message = recvmsg::<()>(fd, &mut slices, Some(control), MsgFlags::MSG_DONTWAIT)?;
    let kernel_time = message.cmsgs()?.find_map(|message| match message {
        ControlMessageOwned::ScmTimestampns(time) => Some(time),
        _ => None,
    });
    Ok(RawRead { length: message.bytes, kernel_time })
}
