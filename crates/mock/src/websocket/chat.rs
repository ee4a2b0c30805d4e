//! The turns of one WebSocket.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::frame::{self, Incoming, NORMAL, TOO_MANY, Violation};
use super::socket::{Broken, Socket};
use crate::dialect::{Dialect, error_body};
use crate::exchange::{Exchange, Reception};
use crate::fault::Fault;
use crate::log::{WebSocketEvent, WebSocketRecord};
use crate::overrides::Accepted;
use crate::request::ApiRequest;
use crate::response_plan::ResponsePlan;
use crate::stream_plan::StreamPlan;
use crate::timed_io::{ConnectionTimes, TimedStream};
use crate::timed_plan::{StreamEnd, TimedPlan as _};
use crate::timer::Alarm;
use crate::worker::Worker;

/// The status of an answer over a WebSocket.
const SWITCHING_PROTOCOLS: u16 = 101;
/// Most messages waiting for the previous answer.
const MOST_WAITING: usize = 16;
/// Nanoseconds for a client to answer a close frame.
const CLOSE_LIMIT: u64 = 1_000_000_000;

/// Why a WebSocket ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closing {
    /// The client sent a close frame, which was answered.
    ByClient(Option<u16>),
    /// The mock closes with this code.
    ByMock(u16),
    /// The client disconnected without a close frame.
    Gone,
    /// A fault ends the connection.
    Fault,
}

impl From<Broken> for Closing {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Gone => Self::Gone,
            Broken::Violation(Violation(code)) => Self::ByMock(code),
        }
    }
}

/// An open WebSocket.
#[derive(Debug)]
pub(crate) struct Chat {
    worker: Rc<Worker>,
    times: Rc<ConnectionTimes>,
    socket: Socket,
    accepted: Accepted,
    alarm: Alarm,
    /// Messages that arrived during another answer.
    waiting: VecDeque<(String, Reception)>,
    turns: u32,
}

impl Chat {
    /// A chat on a connection after the handshake; `early` are bytes that arrived with its request.
    pub(crate) fn new(
        worker: Rc<Worker>,
        times: Rc<ConnectionTimes>,
        accepted: Accepted,
        io: TimedStream,
        early: &[u8],
    ) -> Self {
        let alarm = Alarm::new(Rc::clone(&worker.timer));
        let (socket, waiting) = (Socket::new(io, early), VecDeque::new());
        Self { worker, times, socket, accepted, alarm, waiting, turns: 0 }
    }

    /// Answers messages until the connection ends.
    pub(crate) async fn run(mut self) {
        let closing = loop {
            let (text, reception) = match self.next_message().await {
                Ok(message) => message,
                Err(closing) => break closing,
            };
            if let Err(closing) = self.answer(&text, reception).await {
                break closing;
            }
        };
        if let Closing::ByMock(code) = closing {
            self.close(code).await;
        }
        self.log_end(closing);
    }

    async fn next_message(&mut self) -> Result<(String, Reception), Closing> {
        loop {
            if let Some(message) = self.waiting.pop_front() {
                return Ok(message);
            }
            let incoming = poll_fn(|cx| self.socket.poll_incoming(cx)).await?;
            self.take(incoming).await?;
        }
    }

    /// Handles the client's frame. A message waits for its turn.
    async fn take(&mut self, incoming: Incoming) -> Result<(), Closing> {
        match incoming {
            Incoming::Text(_) if self.waiting.len() == MOST_WAITING => {
                return Err(Closing::ByMock(TOO_MANY));
            }
            Incoming::Text(text) => {
                let reception = self.times.reception();
                self.times.end_request();
                self.waiting.push_back((text, reception));
            }
            Incoming::Ping(payload) => self.socket.write(&frame::pong(&payload)).await?,
            Incoming::Pong => {}
            Incoming::Close(code) => {
                self.socket.write(&frame::close(code.unwrap_or(NORMAL))).await?;
                return Err(Closing::ByClient(code));
            }
        }
        if self.socket.is_between_messages() {
            // The bytes read belong to no message, so the times of the next one begin later.
            self.times.end_request();
        }
        Ok(())
    }

    /// Waits until `due`, and handles the client's frames meanwhile.
    async fn wait_until(&mut self, due: u64) -> Result<(), Closing> {
        while let Some(incoming) = poll_fn(|cx| self.poll_until(cx, due)).await {
            self.take(incoming?).await?;
        }
        Ok(())
    }

    /// The client's next frame; `None` at the `deadline`.
    fn poll_until(
        &mut self,
        cx: &mut Context<'_>,
        deadline: u64,
    ) -> Poll<Option<Result<Incoming, Broken>>> {
        match self.socket.poll_incoming(cx) {
            Poll::Ready(incoming) => Poll::Ready(Some(incoming)),
            Poll::Pending => self.alarm.poll_at(cx, deadline).map(|()| None),
        }
    }

    /// Answers one message, as one turn with one record.
    async fn answer(&mut self, text: &str, reception: Reception) -> Result<(), Closing> {
        let record = WebSocketRecord {
            event: WebSocketEvent::Turn,
            turn: self.turns,
            message_bytes: text.len() as u64,
            ..WebSocketRecord::default()
        };
        let id = self.accepted.request_id.as_ref().map(|id| format!("{id}/{}", self.turns));
        self.turns += 1;
        let worker = Rc::clone(&self.worker);
        let mut exchange =
            Exchange::begin_turn(Rc::clone(&worker), reception, id.as_deref(), record);
        exchange.request_complete(reception.last_read);
        let request = match ApiRequest::parse_message(text) {
            Ok(request) => request,
            Err(problem) => return self.refuse(exchange, 400, &problem).await,
        };
        let state = &worker.state;
        let (model, _) = state.model(&request.model);
        let in_flight = state.counters.api_in_flight.get();
        exchange.draw_by(|| request.content_hash());
        let overrides = &self.accepted.overrides;
        let plan = ResponsePlan::new(&request, model, overrides, exchange.rng, in_flight);
        exchange.parsed(&request);
        if let Some(fault) = plan.fault {
            exchange.fault_planned(fault);
        }
        match plan.fault {
            Some(Fault::Status { code, .. }) => {
                self.refuse(exchange, code, "The mock was asked to answer with this status").await
            }
            Some(Fault::Hang) => self.hang(exchange).await,
            Some(Fault::Reset) => Err(self.abort(exchange, true)),
            _ => self.stream(exchange, plan).await,
        }
    }

    /// Answers with an error message. The connection stays open.
    async fn refuse(
        &mut self,
        mut exchange: Exchange,
        status: u16,
        problem: &str,
    ) -> Result<(), Closing> {
        exchange.response_started(status);
        let body = error_body(Some(Dialect::Websocket), status, problem);
        let (mut out, due) = (Vec::new(), exchange.complete_at);
        frame::put_text(&body, &mut out);
        self.send(&mut exchange, &out, due, 0).await?;
        exchange.complete(self.times.last_write());
        Ok(())
    }

    /// Sends no answer, until the client disconnects.
    async fn hang(&mut self, _exchange: Exchange) -> Result<(), Closing> {
        loop {
            let incoming = poll_fn(|cx| self.socket.poll_incoming(cx)).await?;
            self.take(incoming).await?;
        }
    }

    fn abort(&self, exchange: Exchange, reset: bool) -> Closing {
        if reset {
            self.times.reset_on_close();
        }
        exchange.abort();
        Closing::Fault
    }

    /// Sends each step of the answer at its due time, in its own write.
    async fn stream(&mut self, mut exchange: Exchange, plan: ResponsePlan) -> Result<(), Closing> {
        exchange.planned(plan.output.prompt_tokens, plan.output.tokens());
        let Some(encoder) = Dialect::Websocket.stream_encoder() else { return Ok(()) };
        let mut plan = StreamPlan::new(plan, encoder);
        exchange.response_started(SWITCHING_PROTOCOLS);
        exchange.stream_started();
        let mut end = None;
        while let Some(offset) = plan.due() {
            let due = exchange.complete_at.saturating_add(offset);
            self.wait_until(due).await?;
            if plan.disconnects() {
                return Err(self.abort(exchange, plan.disconnect()));
            }
            let in_flight = self.worker.state.counters.api_in_flight.get();
            let (out, tokens, last) = plan.advance_together(in_flight);
            end = last;
            if !out.is_empty() {
                self.send(&mut exchange, &out, due, tokens).await?;
            }
        }
        exchange.complete(self.times.last_write());
        // Without its last message, a stream ends properly by closing its connection.
        if end == Some(StreamEnd::Truncated) { Err(Closing::ByMock(NORMAL)) } else { Ok(()) }
    }

    /// Writes a part of an answer with its due time and tokens.
    async fn send(
        &mut self,
        exchange: &mut Exchange,
        bytes: &[u8],
        due: u64,
        tokens: u32,
    ) -> Result<(), Closing> {
        exchange.chunk_handed(due, bytes.len(), tokens);
        self.socket.write(bytes).await?;
        exchange.chunk_written(self.times.last_write());
        Ok(())
    }

    /// Closes, and waits for the client's answer, because the kernel could otherwise discard the
    /// code.
    async fn close(&mut self, code: u16) {
        if self.socket.write(&frame::close(code)).await.is_err() {
            return;
        }
        let limit = self.worker.state.clock.now().saturating_add(CLOSE_LIMIT);
        while let Some(Ok(incoming)) = poll_fn(|cx| self.poll_until(cx, limit)).await {
            if matches!(incoming, Incoming::Close(_)) {
                break;
            }
        }
    }

    fn log_end(&self, closing: Closing) {
        let (code, by_client) = match closing {
            Closing::ByClient(code) => (code, true),
            Closing::ByMock(code) => (Some(code), false),
            Closing::Gone => (None, true),
            Closing::Fault => (None, false),
        };
        let record = WebSocketRecord {
            event: WebSocketEvent::End,
            turn: self.turns,
            code,
            by_client,
            ..WebSocketRecord::default()
        };
        let (id, connection) = (self.accepted.request_id.as_deref(), self.times.connection);
        Exchange::log_end(&self.worker, connection, id, record);
    }
}
