//! One exchange of the client, with the time of every read.

use std::ops::ControlFlow;
use std::time::Duration;

use plimsoll_measure::{Clock as _, ErrorClass, Moment, MonotonicClock};
use plimsoll_transport::{
    EncodedRequest, Endpoint, Failure, Request, RequestHead, ResponseHandler, ResponseHead, RxTime,
    SingleClient,
};
use tokio::time::timeout;

/// The end of an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The answer arrived, and looks complete.
    Complete,
    /// The connection ended before the answer did.
    Cut,
    /// The client left, as planned.
    Left(Moment),
    /// The exchange failed for a reason that is not an act of the gateway.
    Unknown(String),
}

/// The answer, as far as it arrived.
#[derive(Debug)]
pub(super) struct Answer {
    clock: MonotonicClock,
    /// 0 without an answer.
    pub(super) status: u16,
    /// Names in lower case.
    pub(super) headers: Vec<(String, String)>,
    /// The bytes of each read.
    pub(super) pieces: Vec<(Moment, Vec<u8>)>,
    pub(super) end: End,
}

/// A request and its limits.
pub(super) struct Question<'q> {
    /// Host and port.
    pub(super) address: &'q str,
    pub(super) path: &'q str,
    pub(super) headers: Vec<(&'q str, &'q str)>,
    pub(super) body: Vec<u8>,
    /// When the client leaves.
    pub(super) leaves: Option<Duration>,
    pub(super) limit: Duration,
}

impl Question<'_> {
    /// Posts it on a connection of its own.
    pub(super) async fn ask(self, clock: MonotonicClock) -> Answer {
        let end = End::Unknown(String::new());
        let mut answer = Answer { clock, status: 0, headers: Vec::new(), pieces: Vec::new(), end };
        let limit = self.leaves.unwrap_or(self.limit);
        let (leaves, limit_text) = (self.leaves.is_some(), self.limit.as_secs());
        // The connection is closed when the future is dropped.
        let end = timeout(limit, self.send(&mut answer)).await;
        answer.end = match end {
            Ok(Ok(end)) => end,
            Ok(Err(reason)) => End::Unknown(reason),
            Err(_) if leaves => End::Left(clock.now()),
            Err(_) => End::Unknown(format!("no end of the answer within {limit_text} s")),
        };
        answer
    }

    async fn send(self, answer: &mut Answer) -> Result<End, String> {
        let endpoint = Endpoint::parse(self.address, 80).map_err(|error| error.to_string())?;
        let client = SingleClient::new(endpoint, false)?;
        let origin = format!("http://{}", self.address);
        let head = RequestHead::new("POST", self.path, &origin, self.headers);
        let head = head.map_err(|error| error.to_string())?;
        let mut encoded = EncodedRequest { head: Vec::new(), body: self.body };
        head.render(None, encoded.body.len(), &mut encoded.head);
        let request = Request { head: &head, id: None, encoded, may_wait: false };
        let connection = client.connect().await.map_err(|failure| failure.to_string())?;
        match connection.exchange(request, answer).await {
            Ok(()) => Ok(End::Complete),
            Err(failure) if is_cut(&failure) => Ok(End::Cut),
            Err(failure) => Err(failure.to_string()),
        }
    }
}

const fn is_cut(failure: &Failure) -> bool {
    let class = failure.class;
    matches!(class, ErrorClass::Reset | ErrorClass::ClosedEarly | ErrorClass::BodyTruncated)
}

impl Answer {
    pub(super) fn body(&self) -> Vec<u8> {
        self.pieces.iter().map(|(_, bytes)| bytes.as_slice()).collect::<Vec<_>>().concat()
    }

    /// The time of the read with which the body contained a text.
    pub(super) fn arrival_of(&self, text: &str) -> Option<Moment> {
        let mut body = Vec::new();
        let mut pieces = self.pieces.iter();
        let (at, _) = pieces.find(|(_, bytes)| {
            body.extend_from_slice(bytes);
            String::from_utf8_lossy(&body).contains(text)
        })?;
        Some(*at)
    }
}

impl ResponseHandler for Answer {
    fn sent(&mut self, _: Moment, _: EncodedRequest) {}

    fn received(&mut self, _: usize, _: RxTime) {}

    fn head(&mut self, head: &ResponseHead<'_>) {
        self.status = head.status;
        let headers = head.headers.iter();
        let headers = headers.map(|line| (line.name, String::from_utf8_lossy(line.value)));
        let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.into_owned()));
        self.headers = headers.collect();
    }

    fn body(&mut self, bytes: &[u8], _: Moment) -> ControlFlow<()> {
        // On the clock of the upstream.
        self.pieces.push((self.clock.now(), bytes.to_vec()));
        ControlFlow::Continue(())
    }
}
