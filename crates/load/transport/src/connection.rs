//! An open connection of either HTTP version.

use std::cell::RefCell;
use std::future::poll_fn;

use plimsoll_measure::Clock;

use crate::buffers::ReadBuffers;
use crate::failure::Failure;
use crate::http1::Http1Connection;
use crate::http2::StreamSlot;
use crate::message::{Request, ResponseHandler};
use crate::rx_timestamp::RxClock;
use crate::socket::Socket;

/// An open connection, or a slot for one stream on a shared connection.
#[derive(Debug)]
pub struct Connection(Inner);

#[derive(Debug)]
enum Inner {
    Http1(Http1Connection),
    Http2(StreamSlot),
}

impl Connection {
    /// An HTTP/1.1 connection that is closed after `lifetime` requests.
    pub(crate) fn http1(socket: Socket, lifetime: u32) -> Self {
        Self(Inner::Http1(Http1Connection::new(socket, lifetime)))
    }

    pub(crate) const fn http2(slot: StreamSlot) -> Self {
        Self(Inner::Http2(slot))
    }

    /// The socket of an HTTP/1.1 connection, to speak another protocol over it.
    pub(crate) fn into_socket(self) -> Option<Socket> {
        match self.0 {
            Inner::Http1(connection) => Some(connection.into_socket()),
            Inner::Http2(_) => None,
        }
    }

    /// Whether it has carried a request before.
    pub fn was_used(&self) -> bool {
        match &self.0 {
            Inner::Http1(connection) => connection.was_used(),
            Inner::Http2(slot) => slot.was_used(),
        }
    }

    /// Whether it is open and holds no unexpected data.
    pub fn is_idle(&mut self) -> bool {
        match &mut self.0 {
            Inner::Http1(connection) => connection.is_idle(),
            Inner::Http2(slot) => !slot.is_closed(),
        }
    }

    /// After a failed exchange: whether the connection ended, and not only the exchange.
    pub fn has_ended(&self) -> bool {
        match &self.0 {
            Inner::Http1(_) => true,
            Inner::Http2(slot) => slot.is_closed(),
        }
    }

    /// Sends a request and reads its response to the end. Returns whether the connection can be
    /// used again.
    ///
    /// The response is read while the request is still being written. So an early response (413,
    /// 429) is received, and the two sides cannot block each other.
    ///
    /// # Errors
    /// A [`Failure`] of the network or the target; the connection must then be dropped.
    ///
    /// # Cancel safety
    /// After a dropped exchange the connection is unusable and must be dropped too. In HTTP/2 this
    /// affects only its stream on the shared connection.
    pub async fn exchange<C: Clock, H: ResponseHandler>(
        &mut self,
        rx_clock: &RxClock<C>,
        buffers: &RefCell<ReadBuffers>,
        request: Request<'_>,
        handler: &mut H,
    ) -> Result<bool, Failure> {
        match &mut self.0 {
            Inner::Http1(connection) => {
                connection.start(request);
                poll_fn(|context| connection.poll(context, rx_clock, buffers, handler)).await
            }
            Inner::Http2(slot) => slot.exchange(rx_clock, request, handler).await.map(|()| true),
        }
    }
}
