//! Sends the response to one request: complete, streamed, truncated or not at all.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use bytes::Bytes;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{HeaderMap, Response, StatusCode};

use crate::dialect::{Dialect, error_body};
use crate::endpoint::JSON;
use crate::event_plan::EventPlan;
use crate::exchange::Exchange;
use crate::fault::Fault;
use crate::log::RpcOutcome;
use crate::response_body::{Aborted, ResponseBody, ServiceResult, StreamingBody, TruncatedBody};
use crate::rpc::{self, BROKEN_OFF, Refusal};
use crate::stop::Stop;
use crate::stream_plan::StreamPlan;
use crate::timed_io::ConnectionTimes;
use crate::timed_plan::StreamEnd;
use crate::worker::Worker;

/// The share of a body without tokens that is sent before a fault aborts it.
pub(crate) const HALF: f64 = 0.5;

/// An unstreamed response.
#[derive(Debug)]
pub(crate) struct FullResponse {
    /// An aborted response has the status 200.
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    pub(crate) body: Vec<u8>,
    pub(crate) tokens: u32,
}

impl FullResponse {
    pub(crate) const fn json(status: u16, body: Vec<u8>) -> Self {
        Self { status, content_type: JSON, body, tokens: 0 }
    }
}

/// A complete request before its response.
#[derive(Debug)]
pub(crate) struct Responder {
    pub(crate) worker: Rc<Worker>,
    pub(crate) times: Rc<ConnectionTimes>,
    pub(crate) exchange: Exchange,
    pub(crate) dialect: Option<Dialect>,
    /// Echoed in the response.
    pub(crate) request_id: Option<HeaderValue>,
    /// Additional headers of the response.
    pub(crate) headers: HeaderMap,
}

impl Responder {
    fn due(&self, offset: u64) -> u64 {
        self.exchange.complete_at.saturating_add(offset)
    }

    fn response(
        &mut self,
        status: u16,
        content_type: &'static str,
        body: ResponseBody,
    ) -> Response<ResponseBody> {
        let mut response = Response::new(body);
        // All statuses are valid: they come from the mock itself or from a fault (400 to 599).
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
        let headers = response.headers_mut();
        *headers = std::mem::take(&mut self.headers);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        if let Some(id) = &self.request_id {
            headers.insert("x-request-id", id.clone());
        }
        response
    }

    /// Sends an error response immediately.
    pub(crate) fn error(self, status: u16, problem: &str) -> Response<ResponseBody> {
        let body = error_body(self.dialect, status, problem);
        self.answer(status, body)
    }

    /// Sends the replacement if a fault replaces the whole response: an error status, for which
    /// `error` builds the response, no response, or a reset.
    ///
    /// # Errors
    /// The response was replaced, which is not a failure.
    pub(crate) async fn unless_replaced(
        mut self,
        fault: Option<Fault>,
        error: impl FnOnce(Self, u16, &str) -> Response<ResponseBody>,
    ) -> Result<Self, ServiceResult> {
        if let Some(fault) = fault {
            self.exchange.fault_planned(fault);
        }
        match fault {
            Some(Fault::Status { code, retry_after }) => {
                if let Some(pause) = retry_after {
                    let seconds = pause.as_nanos().div_ceil(1_000_000_000);
                    self.headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
                }
                Err(Ok(error(self, code, "The mock was asked to answer with this status")))
            }
            Some(Fault::Hang) => {
                // Until the client disconnects or the mock shuts down.
                std::future::pending::<()>().await;
                drop(self);
                Err(Err(Aborted))
            }
            Some(Fault::Reset) => {
                self.times.reset_on_close();
                self.exchange.abort();
                Err(Err(Aborted))
            }
            _ => Ok(self),
        }
    }

    /// Sends a response with any status immediately.
    pub(crate) fn answer(self, status: u16, body: Vec<u8>) -> Response<ResponseBody> {
        let due = self.due(0);
        self.send(FullResponse::json(status, body), due)
    }

    /// Refuses a JSON-RPC message.
    pub(crate) fn refuse(mut self, refusal: Refusal) -> Response<ResponseBody> {
        let Refusal { status, id, error } = refusal;
        self.exchange.rpc(|rpc| (rpc.outcome, rpc.code) = (RpcOutcome::Error, Some(error.code)));
        self.answer(status, rpc::failure(&id, &error))
    }

    /// Sends a response without a body immediately.
    pub(crate) fn empty(self, status: u16) -> Response<ResponseBody> {
        let mut response = self.answer(status, Vec::new());
        response.headers_mut().remove(CONTENT_TYPE);
        response
    }

    /// Upgrades the connection to a WebSocket.
    pub(crate) fn switch(mut self) -> Response<ResponseBody> {
        self.exchange.response_started(101);
        let mut response = self.response(101, JSON, ResponseBody::Full(None));
        response.headers_mut().remove(CONTENT_TYPE);
        self.times.complete_when_written(self.exchange);
        response
    }

    /// Waits until `offset` nanoseconds after the request, or until the call is stopped. Returns
    /// whether it was stopped.
    pub(crate) async fn wait(&self, offset: u64, stop: &mut Option<Stop>) -> bool {
        let mut waiting = pin!(self.worker.wait_until(self.due(offset)));
        poll_fn(|cx| {
            if stop.as_mut().is_some_and(|stop| stop.poll(cx)) {
                return Poll::Ready(true);
            }
            waiting.as_mut().poll(cx).map(|()| false)
        })
        .await
    }

    /// Streams JSON-RPC messages. The head is sent at once.
    pub(crate) fn stream_events(self, plan: EventPlan) -> Response<ResponseBody> {
        let mut response = self.start_events(200, plan);
        response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
        response
    }

    /// Streams a recorded answer. Its head is sent after `offset` nanoseconds.
    pub(crate) async fn stream_recorded(
        self,
        status: u16,
        plan: EventPlan,
        offset: u64,
    ) -> Response<ResponseBody> {
        self.worker.wait_until(self.due(offset)).await;
        self.start_events(status, plan)
    }

    fn start_events(mut self, status: u16, plan: EventPlan) -> Response<ResponseBody> {
        let response = self.start_stream(status);
        let body = StreamingBody::new(self.worker, self.times, Box::new(plan), self.exchange);
        response.map(|_| ResponseBody::Streaming(Box::new(body)))
    }

    /// The head of a stream.
    fn start_stream(&mut self, status: u16) -> Response<ResponseBody> {
        self.exchange.response_started(status);
        self.exchange.stream_started();
        let mut response = self.response(status, "text/event-stream", ResponseBody::Full(None));
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        response
    }

    /// Sends a response after `offset` nanoseconds. If `end` aborts it, only about `sent_share` of
    /// its body is sent.
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
            StreamEnd::Complete => Ok(self.send(full, due)),
            StreamEnd::Error => Ok(self.error(500, BROKEN_OFF)),
            StreamEnd::Truncated => Ok(self.truncate(full, due, sent_share, false)),
            StreamEnd::Disconnected { reset } => Ok(self.truncate(full, due, sent_share, reset)),
        }
    }

    fn send(mut self, full: FullResponse, due: u64) -> Response<ResponseBody> {
        self.exchange.response_started(full.status);
        self.exchange.chunk_handed(due, full.body.len(), full.tokens);
        let body = ResponseBody::Full(Some(full.body.into()));
        let response = self.response(full.status, full.content_type, body);
        // hyper writes head and body together and flushes only then.
        self.times.complete_when_written(self.exchange);
        response
    }

    /// Announces the full length, but sends less: at least the first byte, and never the last.
    #[expect(clippy::cast_possible_truncation, reason = "a share of a length in memory")]
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
        let response = self.start_stream(200);
        let body = StreamingBody::new(self.worker, self.times, Box::new(plan), self.exchange);
        Ok(response.map(|_| ResponseBody::Streaming(Box::new(body))))
    }
}
