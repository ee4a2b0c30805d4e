//! Single requests, each on a connection of its own, for what is no load: a database, a page of
//! metrics.

use std::cell::RefCell;
use std::ops::ControlFlow;

use plimsoll_measure::{Moment, MonotonicClock, Nanos};

use crate::{
    Connector, EncodedRequest, Endpoint, ReadBuffers, Request, RequestHead, ResponseHandler,
    ResponseHead, RxClock, RxTime, SocketOptions, TlsSettings,
};

/// Time for the connection and for the TLS handshake.
const CONNECT: Nanos = Nanos::from_secs(5);

/// Sends single requests to one endpoint, over HTTP/1.1. The certificates of this host are read
/// once, and the connections are not kept.
#[derive(Debug)]
pub struct SingleClient {
    connector: Connector,
    /// Scheme and authority.
    origin: String,
    clock: MonotonicClock,
}

/// A request that is sent once.
#[derive(Debug)]
pub struct SingleRequest<'a> {
    /// `GET`, `PUT`, ...
    pub method: &'a str,
    /// Path and query.
    pub path: &'a str,
    /// Headers besides `host` and `content-length`.
    pub headers: &'a [(&'a str, &'a str)],
    /// Body; empty for none.
    pub body: Vec<u8>,
}

/// A response, and the start of its body.
#[derive(Debug)]
pub struct SingleResponse {
    /// Status; 0 without a response.
    pub status: u16,
    /// The start of the body.
    pub body: Vec<u8>,
    /// Most bytes of the body that are kept.
    most: usize,
}

impl SingleClient {
    /// A client of an endpoint; over TLS, with the certificates of this host, if `tls` says so.
    ///
    /// # Errors
    /// What cannot be used, in words: the certificates of this host, or the endpoint's name.
    pub fn new(endpoint: Endpoint, tls: bool) -> Result<Self, String> {
        let config = if tls {
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
            reach: crate::reach::Reach::default(),
        };
        let scheme = if tls { "https" } else { "http" };
        let origin = format!("{scheme}://{endpoint}");
        let connector = Connector::new(endpoint, config, options);
        let connector = connector.map_err(|error| error.to_string())?;
        Ok(Self { connector, origin, clock: MonotonicClock::start() })
    }

    /// Opens a connection, sends the request and hands the response over. The caller bounds the
    /// time of the response.
    ///
    /// # Errors
    /// What failed, in words: the connection, the request's form, or the exchange.
    pub async fn send(
        &self,
        request: SingleRequest<'_>,
        handler: &mut impl ResponseHandler,
    ) -> Result<(), String> {
        let SingleRequest { method, path, headers, body } = request;
        let head = RequestHead::new(method, path, &self.origin, headers.iter().copied());
        let head = head.map_err(|error| error.to_string())?;
        let opened = self.connector.connect(&self.clock).await;
        let mut connection = opened.connection.map_err(|failure| failure.detail)?;
        let mut encoded = EncodedRequest { head: Vec::new(), body };
        head.render(None, encoded.body.len(), &mut encoded.head);
        let request = Request { head: &head, id: None, encoded, may_wait: false };
        let (rx_clock, buffers) = (RxClock::new(self.clock), RefCell::new(ReadBuffers::default()));
        let sent = connection.exchange(&rx_clock, &buffers, request, handler).await;
        sent.map(drop).map_err(|failure| failure.detail)
    }

    /// The same, and keeps at most so many bytes of the response's body; reading ends with them.
    ///
    /// # Errors
    /// As [`SingleClient::send`].
    pub async fn fetch(
        &self,
        request: SingleRequest<'_>,
        most: usize,
    ) -> Result<SingleResponse, String> {
        let mut response = SingleResponse { status: 0, body: Vec::new(), most };
        self.send(request, &mut response).await?;
        Ok(response)
    }
}

impl ResponseHandler for SingleResponse {
    fn sent(&mut self, _: Moment, _: EncodedRequest) {}

    fn received(&mut self, _: usize, _: RxTime) {}

    fn head(&mut self, head: &ResponseHead<'_>) {
        self.status = head.status;
    }

    fn body(&mut self, bytes: &[u8], _: Moment) -> ControlFlow<()> {
        let room = self.most.saturating_sub(self.body.len()).min(bytes.len());
        self.body.extend_from_slice(&bytes[..room]);
        if self.body.len() < self.most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}
