//! One request on a connection of its own, for what is no load: a database, a page of metrics.

use std::cell::RefCell;

use plimsoll_measure::{MonotonicClock, Nanos};

use crate::{
    Connector, EncodedRequest, Endpoint, ReadBuffers, Request, RequestHead, ResponseHandler,
    RxClock, SocketOptions, TlsSettings,
};

/// Time for the connection and for the TLS handshake.
const CONNECT: Nanos = Nanos::from_secs(5);

/// A request that is sent once, over HTTP/1.1.
#[derive(Debug)]
pub struct SingleRequest<'a> {
    /// Where it goes.
    pub endpoint: Endpoint,
    /// Whether over TLS, with the certificates of this host.
    pub tls: bool,
    /// `GET`, `PUT`, ...
    pub method: &'a str,
    /// Path and query.
    pub path: &'a str,
    /// Headers besides `host` and `content-length`.
    pub headers: &'a [(&'a str, &'a str)],
    /// Body; empty for none.
    pub body: Vec<u8>,
}

impl SingleRequest<'_> {
    /// Opens a connection, sends the request and hands the response over. The caller bounds the
    /// time of the response.
    ///
    /// # Errors
    /// What failed, in words: the connection, the request's form, or the exchange.
    pub async fn send(self, handler: &mut impl ResponseHandler) -> Result<(), String> {
        let tls = if self.tls {
            let settings = TlsSettings::default();
            Some(settings.client_config("http/1.1").map_err(|error| error.to_string())?)
        } else {
            None
        };
        let options = SocketOptions {
            timeout: CONNECT,
            kernel_timestamps: false,
            http2_streams: None,
            bind: Vec::new(),
            requests_per_connection: None,
        };
        let scheme = if self.tls { "https" } else { "http" };
        let origin = format!("{scheme}://{}", self.endpoint);
        let headers = self.headers.iter().copied();
        let head = RequestHead::new(self.method, self.path, &origin, headers);
        let head = head.map_err(|error| error.to_string())?;
        let connector = Connector::new(self.endpoint, tls, options);
        let connector = connector.map_err(|error| error.to_string())?;
        let clock = MonotonicClock::start();
        let opened = connector.connect(&clock).await;
        let mut connection = opened.connection.map_err(|failure| failure.detail)?;
        let mut encoded = EncodedRequest { head: Vec::new(), body: self.body };
        head.render(None, encoded.body.len(), &mut encoded.head);
        let request = Request { head: &head, id: None, encoded };
        let (rx_clock, buffers) = (RxClock::new(clock), RefCell::new(ReadBuffers::default()));
        let sent = connection.exchange(&rx_clock, &buffers, request, handler).await;
        sent.map(drop).map_err(|failure| failure.detail)
    }
}
