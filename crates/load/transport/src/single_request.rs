//! Single requests that are not part of the load, each on its own connection: to a database, a
//! metrics page, or a target before the run.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;

use plimsoll_measure::{Moment, MonotonicClock, Nanos};

use crate::{
    Connection, Connector, EncodedRequest, Endpoint, Failure, Opener as _, ReadBuffers, Request,
    RequestHead, ResponseHandler, ResponseHead, RxClock, RxTime, SocketOptions, TargetOpener,
    TlsSettings,
};

/// Timeout of the connection and of the TLS handshake.
const CONNECT: Nanos = Nanos::from_secs(5);

/// Sends single requests to one endpoint. The certificates of this host are read once, and
/// connections are not reused.
#[derive(Debug)]
pub struct SingleClient {
    opener: TargetOpener<MonotonicClock>,
    rx_clock: Rc<RxClock<MonotonicClock>>,
    /// Scheme and authority.
    origin: String,
}

/// A request that is sent once.
#[derive(Debug)]
pub struct SingleRequest<'a> {
    /// `GET`, `PUT`, ...
    pub method: &'a str,
    /// Path and query.
    pub path: &'a str,
    /// Headers in addition to `host` and `content-length`.
    pub headers: &'a [(&'a str, &'a str)],
    /// Body; empty for none.
    pub body: Vec<u8>,
}

/// A response with the start of its body, up to a limit at which reading ends.
#[derive(Debug)]
pub struct SingleResponse {
    /// Status; 0 without a response.
    pub status: u16,
    /// Headers in order.
    pub headers: Vec<(String, String)>,
    /// The start of the body.
    pub body: Vec<u8>,
    /// Times at which the first and the last byte were received.
    pub received: Option<(Moment, Moment)>,
    /// Maximum number of bytes kept of the body.
    most: usize,
}

/// An open connection for one request.
#[derive(Debug)]
pub struct SingleConnection<'c> {
    client: &'c SingleClient,
    connection: Connection,
}

impl SingleClient {
    /// Creates a client for an endpoint, over HTTP/1.1; with `tls` it uses the certificates of this
    /// host.
    ///
    /// # Errors
    /// A description of the problem: with the certificates of this host, or the endpoint's name.
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
        Ok(Self { origin, ..Self::over(connector, MonotonicClock::start()) })
    }

    /// Creates a client that reaches its endpoint in the same way as the load.
    pub fn over(connector: Connector, clock: MonotonicClock) -> Self {
        let rx_clock = Rc::new(RxClock::new(clock));
        let opener = TargetOpener::new(&Rc::new(connector), &rx_clock);
        Self { opener, rx_clock, origin: String::new() }
    }

    /// Opens a connection.
    ///
    /// # Errors
    /// The failure to connect.
    pub async fn connect(&self) -> Result<SingleConnection<'_>, Failure> {
        let connection = self.opener.open().await.connection?;
        Ok(SingleConnection { client: self, connection })
    }

    /// Opens a connection, sends the request and passes the response to the handler. The caller
    /// limits the duration of the response.
    ///
    /// # Errors
    /// A description of the problem: with the connection, the request's form, or the exchange.
    pub async fn send(
        &self,
        request: SingleRequest<'_>,
        handler: &mut impl ResponseHandler,
    ) -> Result<(), String> {
        let SingleRequest { method, path, headers, body } = request;
        let head = RequestHead::new(method, path, &self.origin, headers.iter().copied());
        let head = head.map_err(|error| error.to_string())?;
        let connection = self.connect().await.map_err(|failure| failure.detail)?;
        let mut encoded = EncodedRequest { head: Vec::new(), body };
        head.render(None, encoded.body.len(), &mut encoded.head);
        let request = Request { head: &head, id: None, encoded, may_wait: false };
        connection.exchange(request, handler).await.map_err(|failure| failure.detail)
    }

    /// The same, but returns the response with at most `most` bytes of its body, at which reading
    /// ends.
    ///
    /// # Errors
    /// The same as [`SingleClient::send`].
    pub async fn fetch(
        &self,
        request: SingleRequest<'_>,
        most: usize,
    ) -> Result<SingleResponse, String> {
        let mut response = SingleResponse::keeping(most);
        self.send(request, &mut response).await?;
        Ok(response)
    }
}

impl SingleConnection<'_> {
    /// Sends the request and passes the response to the handler.
    ///
    /// # Errors
    /// A description of the failure.
    pub async fn exchange(
        mut self,
        request: Request<'_>,
        handler: &mut impl ResponseHandler,
    ) -> Result<(), Failure> {
        let buffers = RefCell::new(ReadBuffers::default());
        let exchange = self.connection.exchange(&self.client.rx_clock, &buffers, request, handler);
        exchange.await.map(drop)
    }
}

impl SingleResponse {
    /// Creates an empty response that keeps at most this many bytes of its body.
    pub const fn keeping(most: usize) -> Self {
        Self { status: 0, headers: Vec::new(), body: Vec::new(), received: None, most }
    }

    /// The value of the first header with that name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let (_, value) = headers.find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        Some(value)
    }
}

impl ResponseHandler for SingleResponse {
    fn sent(&mut self, _: Moment, _: EncodedRequest) {}

    fn received(&mut self, _: usize, rx_time: RxTime) {
        let (first, _) = self.received.unwrap_or((rx_time.at, rx_time.at));
        self.received = Some((first, rx_time.at));
    }

    fn head(&mut self, head: &ResponseHead<'_>) {
        self.status = head.status;
        let headers = head.headers.iter();
        let headers = headers.map(|line| (line.name, String::from_utf8_lossy(line.value)));
        self.headers = headers.map(|(name, value)| (name.to_owned(), value.into_owned())).collect();
    }

    fn body(&mut self, bytes: &[u8], _: Moment) -> ControlFlow<()> {
        let room = self.most.saturating_sub(self.body.len()).min(bytes.len());
        self.body.extend_from_slice(&bytes[..room]);
        if self.body.len() < self.most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}
