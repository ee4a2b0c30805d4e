//! Sends the response to one request: complete, streamed, truncated or not at all.

use std::rc::Rc;

use bytes::Bytes;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};

use crate::dialect::{Dialect, error_body};
use crate::duration::HumanDuration;
use crate::endpoint::JSON;
use crate::exchange::Exchange;
use crate::response_body::{Aborted, ResponseBody, ServiceResult, StreamingBody, TruncatedBody};
use crate::stream_plan::{StreamEnd, StreamPlan};
use crate::timed_io::ConnectionTimes;
use crate::worker::Worker;

/// A response that is not streamed.
#[derive(Debug)]
pub(crate) struct FullResponse {
    pub(crate) content_type: &'static str,
    pub(crate) body: Vec<u8>,
    pub(crate) tokens: u32,
}

/// A complete request that waits for its response.
#[derive(Debug)]
pub(crate) struct Responder {
    pub(crate) worker: Rc<Worker>,
    pub(crate) times: Rc<ConnectionTimes>,
    pub(crate) exchange: Exchange,
    pub(crate) dialect: Option<Dialect>,
    /// Echoed in the response.
    pub(crate) request_id: Option<HeaderValue>,
}

impl Responder {
    fn due(&self, offset: u64) -> u64 {
        self.exchange.complete_at().saturating_add(offset)
    }

    fn response(
        &self,
        status: u16,
        content_type: &'static str,
        body: ResponseBody,
    ) -> Response<ResponseBody> {
        let mut response = Response::new(body);
        // All statuses are valid: they come from the mock itself or from a fault (400 to 599).
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        if let Some(id) = &self.request_id {
            headers.insert("x-request-id", id.clone());
        }
        response
    }

    /// Sends an error response at once.
    pub(crate) fn error(self, status: u16, problem: &str) -> Response<ResponseBody> {
        let due = self.due(0);
        let body = error_body(self.dialect, status, problem);
        self.send(status, FullResponse { content_type: JSON, body, tokens: 0 }, due)
    }

    /// Sends the error response of a fault.
    pub(crate) fn injected_error(
        self,
        status: u16,
        retry_after: Option<HumanDuration>,
    ) -> Response<ResponseBody> {
        let mut response = self.error(status, "The mock was asked to answer with this status");
        if let Some(pause) = retry_after {
            let seconds = pause.as_nanos().div_ceil(1_000_000_000);
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }

    /// Sends nothing until the client disconnects or the mock shuts down.
    pub(crate) async fn hang(self) -> ServiceResult {
        std::future::pending::<()>().await;
        drop(self);
        Err(Aborted)
    }

    /// Sends nothing and resets the connection.
    pub(crate) fn reset(self) -> ServiceResult {
        self.times.reset_on_close();
        self.exchange.abort();
        Err(Aborted)
    }

    /// Sends a response after `offset` nanoseconds. If `end` breaks it off, only about `sent_share`
    /// of its body is sent.
    pub(crate) async fn send_after(
        self,
        full: FullResponse,
        offset: u64,
        end: StreamEnd,
        sent_share: f64,
    ) -> ServiceResult {
        let due = self.due(offset);
        self.worker.wait_until(due).await;
        match end {
            StreamEnd::Complete => Ok(self.send(200, full, due)),
            StreamEnd::Error => Ok(self.error(500, "The mock broke off this answer on purpose")),
            StreamEnd::Truncated => Ok(self.truncate(full, due, sent_share, false)),
            StreamEnd::Disconnected { reset } => Ok(self.truncate(full, due, sent_share, reset)),
        }
    }

    fn send(mut self, status: u16, full: FullResponse, due: u64) -> Response<ResponseBody> {
        self.exchange.response_started(status);
        self.exchange.chunk_handed(due, full.body.len(), full.tokens);
        let body = ResponseBody::Full(Some(full.body.into()));
        let response = self.response(status, full.content_type, body);
        // hyper writes head and body together and flushes only then.
        self.times.complete_when_written(self.exchange);
        response
    }

    /// Announces the full length, but sends less: at least the first byte, and never the last.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a length in memory"
    )]
    fn truncate(
        mut self,
        full: FullResponse,
        due: u64,
        sent_share: f64,
        reset: bool,
    ) -> Response<ResponseBody> {
        let announced = full.body.len();
        let length = ((announced as f64 * sent_share) as usize).clamp(1, announced.max(2) - 1);
        self.exchange.response_started(200);
        self.exchange.chunk_handed(due, length, full.tokens);
        let part = Bytes::from(full.body).slice(..length);
        let response = self.response(200, full.content_type, ResponseBody::Full(None));
        let body = TruncatedBody::new(self.times, self.exchange, part, announced as u64, reset);
        response.map(|_| ResponseBody::Truncated(body))
    }

    /// Streams a response. Its head is sent after `offset` nanoseconds, together with the first
    /// events.
    pub(crate) async fn stream(mut self, plan: StreamPlan, offset: u64) -> ServiceResult {
        self.worker.wait_until(self.due(offset)).await;
        self.exchange.response_started(200);
        self.exchange.stream_started();
        let mut response = self.response(200, "text/event-stream", ResponseBody::Full(None));
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        let body = StreamingBody::new(self.worker, self.times, plan, self.exchange);
        Ok(response.map(|_| ResponseBody::Streaming(Box::new(body))))
    }
}
