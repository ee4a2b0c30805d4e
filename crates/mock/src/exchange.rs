//! One request and its response: counted and logged exactly once, however it ends.

use std::rc::Rc;

use hyper::header::HeaderValue;
use hyper::http::request::Parts;

use crate::counters::Counters;
use crate::dialect::Dialect;
use crate::fault::Fault;
use crate::hash::TextHash;
use crate::log::{ChunkRecord, LogRecord, RequestEnd, RpcRecord, ToolTurnRecord, WebSocketRecord};
use crate::request::ApiRequest;
use crate::rng::RequestRng;
use crate::spec::DrawBy;
use crate::tool_loop::ToolTurn;
use crate::websocket;
use crate::worker::Worker;

/// A request in flight. If it is dropped before [`Exchange::complete`] or [`Exchange::abort`], the
/// client disconnected or the mock is shutting down.
#[derive(Debug)]
pub(crate) struct Exchange {
    worker: Rc<Worker>,
    dialect: Option<Dialect>,
    pub(crate) rng: RequestRng,
    /// When the request was completely received, on the monotonic clock.
    pub(crate) complete_at: u64,
    /// The end to record on a drop, if the mock planned it.
    planned_end: Option<RequestEnd>,
    record: Option<Box<LogRecord>>,
    open: bool,
}

/// The times of a received request on the monotonic clock, and its connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reception {
    /// The connection's number.
    pub(crate) connection: u64,
    /// When its first bytes arrived, or were read if the kernel did not stamp them.
    pub(crate) arrived: u64,
    /// When its first bytes were read.
    pub(crate) first_read: u64,
    /// When its latest bytes were read.
    pub(crate) last_read: u64,
}

impl Exchange {
    /// Counts a request whose head has been received.
    pub(crate) fn begin(
        worker: Rc<Worker>,
        reception: Reception,
        dialect: Option<Dialect>,
        head: &Parts,
    ) -> Self {
        let request_id = head.headers.get("x-request-id").map(HeaderValue::as_bytes);
        let mut exchange = Self::open(worker, reception, dialect, request_id);
        if let Some(record) = &mut exchange.record {
            record.version = format!("{:?}", head.version);
            head.method.as_str().clone_into(&mut record.method);
            head.uri.path().clone_into(&mut record.path);
        }
        exchange
    }

    /// Counts a WebSocket message as a request.
    pub(crate) fn begin_turn(
        worker: Rc<Worker>,
        reception: Reception,
        request_id: Option<&str>,
        turn: WebSocketRecord,
    ) -> Self {
        let id = request_id.map(str::as_bytes);
        let mut exchange = Self::open(worker, reception, Some(Dialect::Websocket), id);
        exchange.websocket(turn);
        exchange
    }

    /// Records the end of a WebSocket, which does not count as a request.
    pub(crate) fn log_end(
        worker: &Worker,
        connection: u64,
        request_id: Option<&str>,
        end: WebSocketRecord,
    ) {
        let state = &worker.state;
        if !state.log.is_on() {
            return;
        }
        let now = state.clock.unix(state.clock.now());
        let mut record = Box::new(LogRecord {
            sequence: state.next_sequence(),
            request_id: request_id.map(str::to_owned),
            connection,
            dialect: Some(Dialect::Websocket),
            arrived: now,
            received: now,
            head_complete: now,
            body_complete: now,
            finished: now,
            end: Some(RequestEnd::Completed),
            ..LogRecord::default()
        });
        describe_websocket(&mut record, end);
        state.log.add(record);
    }

    /// A received request without details.
    fn open(
        worker: Rc<Worker>,
        reception: Reception,
        dialect: Option<Dialect>,
        request_id: Option<&[u8]>,
    ) -> Self {
        let state = &worker.state;
        state.counters.requests.increment();
        state.counters.in_flight.increment();
        if dialect.is_some() {
            state.counters.api_in_flight.increment();
        }
        let sequence = state.next_sequence();
        let record = state.log.is_on().then(|| {
            Box::new(LogRecord {
                sequence,
                request_id: request_id.map(|id| String::from_utf8_lossy(id).into_owned()),
                connection: reception.connection,
                dialect,
                arrived: state.clock.unix(reception.arrived),
                received: state.clock.unix(reception.first_read),
                head_complete: state.clock.unix(reception.last_read),
                ..LogRecord::default()
            })
        });
        Self {
            dialect,
            rng: RequestRng::new(state.config.seed, request_id, sequence),
            complete_at: 0,
            planned_end: None,
            record,
            open: true,
            worker,
        }
    }

    /// Derives the random numbers from this content, if configured with `draw: prompt`.
    pub(crate) fn draw_by(&mut self, content: impl FnOnce() -> u64) {
        let config = &self.worker.state.config;
        if config.draw != DrawBy::Prompt {
            return;
        }
        let content = content();
        self.rng = self.rng.drawn_by(config.seed, content);
        if let Some(record) = &mut self.record {
            record.content_hash = Some(content);
        }
    }

    fn counters(&self) -> &Counters {
        &self.worker.state.counters
    }

    /// Records when the request's last bytes were read.
    pub(crate) fn request_complete(&mut self, last_read: u64) {
        self.complete_at = last_read;
        if let Some(record) = &mut self.record {
            record.body_complete = self.worker.state.clock.unix(last_read);
        }
    }

    /// Records the content of an API request.
    pub(crate) fn parsed(&mut self, request: &ApiRequest<'_>) {
        let keeps_text = self.worker.state.log.keeps_text;
        if let Some(record) = &mut self.record {
            describe_prompt(record, request, keeps_text);
        }
    }

    /// Records the turn of a model with a tool loop.
    pub(crate) fn tool_turn(&mut self, turn: &ToolTurn) {
        if let Some(record) = &mut self.record {
            let calls = u32::try_from(turn.calls.len()).unwrap_or(u32::MAX);
            let (round, steps) = (turn.round, turn.steps);
            record.tool_turn = Some(ToolTurnRecord { round, steps, calls });
        }
    }

    /// Records a JSON-RPC message, or further details of it.
    pub(crate) fn rpc(&mut self, describe: impl FnOnce(&mut RpcRecord)) {
        if let Some(record) = &mut self.record {
            describe(record.rpc.get_or_insert_default());
        }
    }

    /// Records a WebSocket event.
    pub(crate) fn websocket(&mut self, websocket: WebSocketRecord) {
        if let Some(record) = &mut self.record {
            describe_websocket(record, websocket);
        }
    }

    /// Records the planned response.
    pub(crate) fn planned(&mut self, prompt_tokens: u64, output_tokens: u32) {
        self.counters().tokens_in.add(prompt_tokens);
        if let Some(record) = &mut self.record {
            record.planned_tokens = output_tokens;
        }
    }

    /// Records the planned fault.
    pub(crate) fn fault_planned(&mut self, fault: Fault) {
        if fault == Fault::Hang {
            self.planned_end = Some(RequestEnd::Aborted);
        }
        if let Some(record) = &mut self.record {
            record.fault = Some(fault.to_string());
        }
    }

    /// Records the status of the response before its head is sent.
    pub(crate) fn response_started(&mut self, status: u16) {
        self.counters().count_status(status);
        if let Some(record) = &mut self.record {
            record.status = status;
        }
    }

    /// Counts a streamed response.
    pub(crate) fn stream_started(&self) {
        self.counters().streams.increment();
    }

    /// Records a chunk passed to the connection; `due` is its due time on the monotonic clock.
    pub(crate) fn chunk_handed(&mut self, due: u64, bytes: usize, tokens: u32) {
        let counters = self.counters();
        counters.chunks.increment();
        counters.tokens_out.add(u64::from(tokens));
        if let Some(record) = &mut self.record {
            let clock = self.worker.state.clock;
            let (due, handed) = (clock.unix(due), clock.unix(clock.now()));
            let bytes = bytes as u64;
            record.chunks.push(ChunkRecord { due, handed, written: 0, bytes, tokens });
        }
    }

    /// Records when the last chunk was written, unless it is already known.
    pub(crate) fn chunk_written(&mut self, at: u64) {
        let clock = self.worker.state.clock;
        if let Some(chunk) = self.record.as_mut().and_then(|record| record.chunks.last_mut())
            && chunk.written == 0
        {
            chunk.written = clock.unix(at);
        }
    }

    /// Ends the exchange: the response was written completely.
    pub(crate) fn complete(mut self, at: u64) {
        self.chunk_written(at);
        self.end(RequestEnd::Completed, at);
    }

    /// Ends the exchange: the mock aborts it on purpose.
    pub(crate) fn abort(mut self) {
        let now = self.worker.state.clock.now();
        self.end(RequestEnd::Aborted, now);
    }

    fn end(&mut self, end: RequestEnd, at: u64) {
        self.open = false;
        let state = &self.worker.state;
        state.counters.in_flight.decrement();
        if self.dialect.is_some() {
            state.counters.api_in_flight.decrement();
        }
        state.counters.count_end(end);
        if let Some(mut record) = self.record.take() {
            record.finished = state.clock.unix(at);
            record.end = Some(end);
            state.log.add(record);
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if self.open {
            let state = &self.worker.state;
            let unplanned =
                if state.is_stopping() { RequestEnd::ShutDown } else { RequestEnd::ClientGone };
            let now = state.clock.now();
            self.end(self.planned_end.unwrap_or(unplanned), now);
        }
    }
}

/// All records of a WebSocket have the handshake's request line.
fn describe_websocket(record: &mut LogRecord, websocket: WebSocketRecord) {
    record.websocket = Some(Box::new(websocket));
    "HTTP/1.1".clone_into(&mut record.version);
    "GET".clone_into(&mut record.method);
    websocket::PATH.clone_into(&mut record.path);
}

fn describe_prompt(record: &mut LogRecord, request: &ApiRequest<'_>, keeps_text: bool) {
    let mut hash = TextHash::new();
    request.texts.iter().for_each(|text| hash.feed(text.as_bytes()));
    (record.prompt_hash, record.prompt_blocks) = hash.finish();
    record.model = Some(request.model.clone().into_owned());
    record.stream = request.stream;
    record.messages = request.messages;
    record.prompt_bytes = request.texts.iter().map(|text| text.len() as u64).sum();
    record.prompt_tokens = request.prompt_tokens();
    record.prompt_head =
        request.texts.first().filter(|_| keeps_text).map(|text| text.chars().take(60).collect());
}
