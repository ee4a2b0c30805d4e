//! A TCP stream as HTTP/2 reads it: like any other, but it notes when its bytes arrived.

use std::cell::Cell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use plimsoll_measure::Clock;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::connection::note_buffer;
use crate::socket::{receive, receive_wire};
use crate::stamp::{Arrival, Stamper};

/// When the latest bytes of a connection arrived.
pub(crate) type LatestArrival = Rc<Cell<Option<Arrival>>>;

/// The stream, with the note of its latest read.
pub(crate) struct StampedStream<C> {
    tcp: TcpStream,
    stamper: Rc<Stamper<C>>,
    stamped: bool,
    note: Vec<u8>,
    latest: LatestArrival,
}

impl<C> StampedStream<C> {
    /// `stamped`: does the kernel note when bytes arrive?
    pub(crate) fn new(tcp: TcpStream, stamped: bool, stamper: Rc<Stamper<C>>) -> Self {
        Self { tcp, stamper, stamped, note: note_buffer(), latest: LatestArrival::default() }
    }

    pub(crate) fn latest_arrival(&self) -> LatestArrival {
        Rc::clone(&self.latest)
    }
}

impl<C: Clock> AsyncRead for StampedStream<C> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { tcp, stamper, stamped, note, latest } = self.get_mut();
        loop {
            ready!(tcp.poll_read_ready(context))?;
            let room = buffer.initialize_unfilled();
            let read = receive_wire(tcp, room.len(), |fd| receive(fd, *stamped, room, note));
            match read {
                Ok(received) => {
                    latest.set(Some(stamper.arrival(received.note)));
                    buffer.advance(received.length);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl<C: Clock> AsyncWrite for StampedStream<C> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().tcp).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().tcp).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().tcp).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().tcp).poll_shutdown(context)
    }
}
