//! The ways in which a request is answered.

use std::rc::Rc;

use bytes::Bytes;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};

use crate::dialect::{Dialect, refusal};
use crate::exchange::Exchange;
use crate::reply::{BrokenOff, Paced, Reply, Torn};
use crate::script::{Ending, Script};
use crate::service::Served;
use crate::span::HumanDuration;
use crate::tap::Tap;
use crate::worker::Worker;

pub(crate) const JSON: &str = "application/json";

/// A body that is sent in one piece.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) content_type: &'static str,
    pub(crate) body: Vec<u8>,
    pub(crate) tokens: u32,
}

/// A complete request that waits for its answer.
#[derive(Debug)]
pub(crate) struct Responder {
    pub(crate) worker: Rc<Worker>,
    pub(crate) tap: Rc<Tap>,
    pub(crate) exchange: Exchange,
    pub(crate) dialect: Option<Dialect>,
    /// Sent back with the answer.
    pub(crate) request_id: Option<HeaderValue>,
}

impl Responder {
    fn due(&self, offset: u64) -> u64 {
        self.exchange.complete_at().saturating_add(offset)
    }

    fn response(&self, status: u16, content_type: &'static str, reply: Reply) -> Response<Reply> {
        let mut response = Response::new(reply);
        // Statuses come from the mock itself or from a fault, which has its own narrower range.
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        if let Some(id) = &self.request_id {
            headers.insert("x-request-id", id.clone());
        }
        response
    }

    /// An error answer, at once.
    pub(crate) fn refuse(self, status: u16, problem: &str) -> Response<Reply> {
        let due = self.due(0);
        let body = refusal(self.dialect, status, problem);
        self.send(status, Whole { content_type: JSON, body, tokens: 0 }, due)
    }

    /// An error answer on purpose.
    pub(crate) fn fail(self, status: u16, retry_after: Option<HumanDuration>) -> Response<Reply> {
        let mut response = self.refuse(status, "The mock was asked to answer with this status");
        if let Some(pause) = retry_after {
            let seconds = pause.as_nanos().div_ceil(1_000_000_000);
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }

    /// No answer: ends when the client gives up, or with the mock.
    pub(crate) async fn hang(self) -> Served {
        std::future::pending::<()>().await;
        drop(self);
        Err(BrokenOff)
    }

    /// No answer, and a reset connection.
    pub(crate) fn reset(self) -> Served {
        self.tap.reset_on_close();
        self.exchange.abort();
        Err(BrokenOff)
    }

    /// Sends a body when `offset` has passed, or so much of it as its ending allows: `said` is the
    /// share of it that comes before.
    pub(crate) async fn deliver(
        self,
        whole: Whole,
        offset: u64,
        ending: Ending,
        said: f64,
    ) -> Served {
        let due = self.due(offset);
        self.worker.wait_until(due).await;
        match ending {
            Ending::Closed => Ok(self.send(200, whole, due)),
            Ending::Error => Ok(self.refuse(500, "The mock broke off this answer on purpose")),
            Ending::Truncated => Ok(self.tear(whole, due, said, false)),
            Ending::Broken { reset } => Ok(self.tear(whole, due, said, reset)),
        }
    }

    fn send(mut self, status: u16, whole: Whole, due: u64) -> Response<Reply> {
        self.exchange.answered(status);
        self.exchange.hand_over(due, whole.body.len(), whole.tokens);
        let reply = Reply::Whole(Some(whole.body.into()));
        let response = self.response(status, whole.content_type, reply);
        // hyper writes head and body together, and flushes then for the first time.
        self.tap.complete_when_written(self.exchange);
        response
    }

    /// Announces the whole body, and sends at least its first and not its last byte.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a length in memory"
    )]
    fn tear(mut self, whole: Whole, due: u64, said: f64, reset: bool) -> Response<Reply> {
        let announced = whole.body.len();
        let length = ((announced as f64 * said) as usize).clamp(1, announced.max(2) - 1);
        self.exchange.answered(200);
        self.exchange.hand_over(due, length, whole.tokens);
        let part = Bytes::from(whole.body).slice(..length);
        let response = self.response(200, whole.content_type, Reply::Whole(None));
        let torn = Torn::new(self.tap, self.exchange, part, announced as u64, reset);
        response.map(|_| Reply::Torn(torn))
    }

    /// Streams an answer: its head leaves together with the first events, when `offset` has passed.
    pub(crate) async fn stream(mut self, script: Script, offset: u64) -> Served {
        self.worker.wait_until(self.due(offset)).await;
        self.exchange.answered(200);
        self.exchange.stream_begun();
        let mut response = self.response(200, "text/event-stream", Reply::Whole(None));
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        let paced = Paced::new(self.worker, self.tap, script, self.exchange);
        Ok(response.map(|_| Reply::Paced(Box::new(paced))))
    }
}
