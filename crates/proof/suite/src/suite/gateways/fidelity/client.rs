//! One exchange of the client, with the time of every read.

use std::ops::ControlFlow;
use std::time::Duration;

use plimsoll_measure::{Clock as _, ErrorClass, Moment, MonotonicClock};
use plimsoll_transport::{
    EncodedRequest, Endpoint, Request, RequestHead, ResponseHandler, ResponseHead, RxTime,
    SingleClient,
};

use super::cases::Exchange;

/// The end of an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The answer arrived, and looks complete.
    Complete,
    /// The connection ended before the answer did.
    Cut,
    /// The client left after its time.
    Left(Moment),
    /// The exchange failed for a reason that is not an act of the gateway.
    Unknown(String),
}

/// An answer, as far as it arrived.
#[derive(Debug)]
pub(super) struct Answer {
    /// The clock of the upstream.
    clock: MonotonicClock,
    /// 0 without an answer.
    pub(super) status: u16,
    /// Names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    /// When a read returned, and the length of the body before it.
    reads: Vec<(Moment, usize)>,
    pub(super) end: End,
}

impl Answer {
    pub(super) const fn new(clock: MonotonicClock) -> Self {
        Self {
            clock,
            status: 0,
            headers: Vec::new(),
            body: Vec::new(),
            reads: Vec::new(),
            end: End::Cut,
        }
    }

    /// Sends a request on a connection of its own, and reads for at most `limit`.
    ///
    /// # Errors
    /// A failure that is not an act of the server.
    pub(super) async fn fetch(
        &mut self,
        exchange: &Exchange,
        address: &str,
        mark: &str,
        limit: Duration,
    ) -> Result<(), String> {
        let endpoint = Endpoint::parse(address, 80).map_err(|error| error.to_string())?;
        let client = SingleClient::new(endpoint, false)?;
        let headers = exchange.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let origin = format!("http://{address}");
        let head = RequestHead::new("POST", &exchange.path, &origin, headers);
        let head = head.map_err(|error| error.to_string())?;
        let mut encoded = EncodedRequest { head: Vec::new(), body: exchange.body(mark).into() };
        head.render(None, encoded.body.len(), &mut encoded.head);
        let request = Request { head: &head, id: None, encoded, may_wait: false };
        let connection = client.connect().await.map_err(|failure| failure.to_string())?;
        let exchange = tokio::time::timeout(limit, connection.exchange(request, self)).await;
        self.end = match exchange {
            Ok(Ok(())) => End::Complete,
            Ok(Err(failure)) => match failure.class {
                ErrorClass::Reset | ErrorClass::ClosedEarly | ErrorClass::BodyTruncated => End::Cut,
                _ => return Err(failure.to_string()),
            },
            Err(_) => End::Left(self.clock.now()),
        };
        Ok(())
    }

    /// The time of the read with which the body contained a text.
    pub(super) fn arrival_of(&self, text: &str) -> Option<Moment> {
        let body = String::from_utf8_lossy(&self.body);
        let end = body.find(text)? + text.len();
        self.reads.iter().rev().find(|(_, before)| *before < end).map(|(at, _)| *at)
    }
}

impl ResponseHandler for Answer {
    fn sent(&mut self, _: Moment, _: EncodedRequest) {}

    fn received(&mut self, _: usize, _: RxTime) {
        self.reads.push((self.clock.now(), self.body.len()));
    }

    fn head(&mut self, head: &ResponseHead<'_>) {
        self.status = head.status;
        let headers = head.headers.iter();
        let headers = headers.map(|line| (line.name, String::from_utf8_lossy(line.value)));
        let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.into_owned()));
        self.headers = headers.collect();
    }

    fn body(&mut self, bytes: &[u8], _: Moment) -> ControlFlow<()> {
        self.body.extend_from_slice(bytes);
        ControlFlow::Continue(())
    }
}
