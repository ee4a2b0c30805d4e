//! An open connection of either HTTP version.

use std::cell::RefCell;
use std::future::poll_fn;

use plimsoll_measure::{Clock, ConnectPhases};

use crate::buffers::ReadBuffers;
use crate::failure::Failure;
use crate::http1::Http1Connection;
use crate::http2::{StreamExchange, StreamSlot};
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
    pub(crate) const fn http1(connection: Http1Connection) -> Self {
        Self(Inner::Http1(connection))
    }

    pub(crate) const fn http2(slot: StreamSlot) -> Self {
        Self(Inner::Http2(slot))
    }

    /// The socket of an HTTP/1.1 connection, for another protocol.
    pub(crate) fn into_socket(self) -> Option<Socket> {
        match self.0 {
            Inner::Http1(connection) => Some(connection.into_socket()),
            Inner::Http2(_) => None,
        }
    }

    /// Whether it has been used for a request before.
    pub fn was_used(&self) -> bool {
        match &self.0 {
            Inner::Http1(connection) => connection.was_used(),
            Inner::Http2(slot) => slot.was_used(),
        }
    }

    /// Whether it is open and has no unexpected data.
    pub fn is_idle(&mut self) -> bool {
        match &mut self.0 {
            Inner::Http1(connection) => connection.is_idle(),
            Inner::Http2(slot) => !slot.is_closed(),
        }
    }

    /// Whether the connection itself ended, rather than only the failed exchange.
    pub fn has_ended(&self) -> bool {
        match &self.0 {
            Inner::Http1(_) => true,
            Inner::Http2(slot) => slot.is_closed(),
        }
    }

    /// Sends a request and reads its response to the end. Returns whether the connection can be
    /// reused.
    ///
    /// The response is read while the request is still being written, so that an early response
    /// (413, 429) is received, and the two sides cannot block each other.
    ///
    /// # Errors
    /// A [`Failure`] of the network or the target; the connection must then be dropped.
    ///
    /// # Cancel safety
    /// After a dropped exchange the connection is unusable and must be dropped too. In HTTP/2 this
    /// affects only its stream on the shared connection.
    // Not an `async fn`, whose future would store the arguments twice.
    pub fn exchange<'a, C: Clock, H: ResponseHandler>(
        &'a mut self,
        rx_clock: &'a RxClock<C>,
        buffers: &'a RefCell<ReadBuffers>,
        request: Request<'a>,
        handler: &'a mut H,
    ) -> impl Future<Output = Result<bool, Failure>> + use<'a, C, H> {
        let mut exchange = match &mut self.0 {
            Inner::Http1(connection) => {
                connection.start(request);
                Exchange::Http1(connection, handler)
            }
            Inner::Http2(slot) => Exchange::Http2(slot.exchange(rx_clock, request, handler)),
        };
        poll_fn(move |context| match &mut exchange {
            Exchange::Http1(connection, handler) => {
                connection.poll(context, rx_clock, buffers, *handler)
            }
            Exchange::Http2(exchange) => exchange.poll(context).map_ok(|()| true),
        })
    }
}

/// An exchange of either HTTP version.
enum Exchange<'a, C: Clock, H: ResponseHandler> {
    Http1(&'a mut Http1Connection, &'a mut H),
    Http2(StreamExchange<'a, C, H>),
}

impl<C: Clock, H: ResponseHandler> Drop for Exchange<'_, C, H> {
    fn drop(&mut self) {
        if let Self::Http1(connection, handler) = self {
            // The exchange was cancelled. Its request may have been sent meanwhile, which the
            // handler must learn; if sending failed, the connection is dropped as well.
            let _ = connection.settle(*handler);
        }
    }
}

// The result of an attempt to open a connection.

/// A new connection or the failure to open it, with the duration of each phase.
#[derive(Debug)]
pub struct Opened<C> {
    /// Durations of the phases that took place.
    pub phases: ConnectPhases,
    /// The connection.
    pub connection: Result<C, Failure>,
}
