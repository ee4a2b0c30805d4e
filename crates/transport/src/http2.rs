//! HTTP/2 (RFC 9113): many streams on one connection.
//!
//! The frames are the `h2` crate's work. Its driver runs as a task of the worker; bytes are stamped where it reads
//! them. A stream learns of its bytes some instants later and takes the connection's latest arrival, which lies
//! between the true one and the present.

mod upload;

use std::cell::Cell;
use std::rc::Rc;

use bytes::Bytes;
use h2::client::{self, SendRequest};
use http::{HeaderMap, Response};
use httparse::Header;
use plimsoll_measure::{Clock, ErrorClass};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::spawn_local;

use crate::connection::{Flow, Receiver, Request};
use crate::failure::Failure;
use crate::http1::ResponseHead;
use crate::stamp::{Arrival, Stamper};
use crate::stream::LatestArrival;

use self::upload::{Upload, Uploads};

/// What one stream may receive before we have read it: a large answer is not throttled by the way back and forth.
const STREAM_WINDOW: u32 = 4 << 20;
/// The same for all streams of a connection.
const CONNECTION_WINDOW: u32 = 64 << 20;
/// Unread bytes of one stream from which on the target may be waiting for us. The `h2` crate tells the target of room
/// that was made when it is half a window, so that a target may stop with only half of it unread.
const RECEIVE_STALL: usize = (STREAM_WINDOW / 2) as usize;

/// A connection that carries many exchanges at once.
#[derive(Debug)]
pub(crate) struct Multiplexed {
    sender: SendRequest<Bytes>,
    latest: LatestArrival,
    streams: Cell<u32>,
    most_streams: u32,
    used: Cell<bool>,
    uploads: Uploads,
    closed: Rc<Cell<bool>>,
}

impl Multiplexed {
    /// Speaks the preface, and starts the connection's driver on the current worker.
    pub(crate) async fn open<S>(
        stream: S,
        latest: LatestArrival,
        most_streams: u32,
    ) -> Result<Rc<Self>, Failure>
    where
        S: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        let (sender, driver) = client::Builder::new()
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .enable_push(false)
            // Else its own limit would look like the target's window.
            .max_send_buffer_size(u32::MAX as usize)
            .handshake(stream)
            .await
            .map_err(|error| failure(&error))?;
        let closed = Rc::new(Cell::new(false));
        let tell = Rc::clone(&closed);
        spawn_local(async move {
            // Streams hear of the connection's error themselves.
            let _ = driver.await;
            tell.set(true);
        });
        let (streams, used) = (Cell::new(0), Cell::new(false));
        let uploads = Uploads::default();
        Ok(Rc::new(Self { sender, latest, streams, most_streams, used, uploads, closed }))
    }

    /// A place for one exchange, if there is one.
    pub(crate) fn lease(self: &Rc<Self>) -> Option<Lease> {
        if self.is_closed() || self.streams.get() >= self.most_streams {
            return None;
        }
        self.streams.set(self.streams.get() + 1);
        Some(Lease(Rc::clone(self)))
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.get()
    }
}

/// A place for one exchange on a shared connection; given back when dropped.
#[derive(Debug)]
pub(crate) struct Lease(Rc<Multiplexed>);

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.streams.set(self.0.streams.get().saturating_sub(1));
    }
}

impl Lease {
    /// Has the connection carried a request before?
    pub(crate) fn was_used(&self) -> bool {
        self.0.used.get()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Sends a request and reads its response to the end. It counts as sent when the connection has taken
    /// all of it over, which the target's flow control can delay.
    pub(crate) async fn exchange<C: Clock, R: Receiver>(
        &mut self,
        stamper: &Stamper<C>,
        request: Request<'_>,
        receiver: &mut R,
    ) -> Result<(), Failure> {
        self.0.used.set(true);
        let head = request.shape.http2(request.id, request.wire.body.len());
        let head = head.map_err(|detail| Failure::new(ErrorClass::LocalIo, detail))?;
        let sender = self.0.sender.clone();
        let mut sender = sender.ready().await.map_err(|error| failure(&error))?;
        let no_body = request.wire.body.is_empty();
        let (mut response, upload) =
            sender.send_request(head, no_body).map_err(|error| failure(&error))?;
        let mut upload =
            (!no_body).then(|| Upload::new(&self.0.uploads, upload, &request.wire.body));
        let early = match &mut upload {
            None => None,
            Some(upload) => upload.send(stamper.clock(), &mut response, receiver).await?,
        };
        receiver.sent(stamper.clock().now(), request.wire);
        let response = match early {
            Some(response) => response,
            None => response.await.map_err(|error| failure(&error))?,
        };
        drop(upload);
        self.hear(stamper, response, receiver).await
    }

    async fn hear<C: Clock, R: Receiver>(
        &self,
        stamper: &Stamper<C>,
        response: Response<h2::RecvStream>,
        receiver: &mut R,
    ) -> Result<(), Failure> {
        let status = response.status().as_u16();
        receiver.received(head_bytes(response.headers()), self.arrival(stamper));
        with_headers(response.headers(), |headers| {
            receiver.head(&ResponseHead { status, headers });
        });
        let mut body = response.into_body();
        while let Some(data) = body.data().await {
            let data = data.map_err(|error| failure(&error))?;
            let arrival = self.arrival(stamper);
            // What is being handed over now counts as unread until it is released below.
            if body.flow_control().used_capacity() >= RECEIVE_STALL {
                receiver.receive_stalled();
            }
            receiver.received(data.len(), arrival);
            if receiver.body(&data, arrival.at) == Flow::Stop {
                return Ok(());
            }
            body.flow_control().release_capacity(data.len()).map_err(|error| failure(&error))?;
        }
        Ok(())
    }

    fn arrival<C: Clock>(&self, stamper: &Stamper<C>) -> Arrival {
        self.0.latest.get().unwrap_or_else(|| Arrival { at: stamper.clock().now(), read_lag: None })
    }
}

/// Size of a head as HTTP/1.1 would write it: what compression made of it is not known here.
fn head_bytes(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum()
}

/// The headers in the form that all versions of HTTP share here.
fn with_headers<T>(headers: &HeaderMap, on: impl FnOnce(&[Header<'_>]) -> T) -> T {
    let headers: Vec<_> = headers
        .iter()
        .map(|(name, value)| Header { name: name.as_str(), value: value.as_bytes() })
        .collect();
    on(&headers)
}

fn failure(error: &h2::Error) -> Failure {
    if let Some(io) = error.get_io() {
        let found = Failure::on_connection(io);
        let early =
            io.kind() == std::io::ErrorKind::UnexpectedEof || found.class == ErrorClass::LocalIo;
        return if early {
            Failure::new(ErrorClass::ClosedEarly, error.to_string())
        } else {
            found
        };
    }
    let class = if error.is_go_away() {
        ErrorClass::ClosedEarly
    } else if error.is_reset() {
        ErrorClass::Reset
    } else {
        ErrorClass::MalformedHead
    };
    Failure::new(class, error.to_string())
}
