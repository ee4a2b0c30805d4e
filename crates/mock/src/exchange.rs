//! One request and its answer, from the request's head to the answer's last byte: counted and logged
//! exactly once, however it ends.

use std::rc::Rc;

use hyper::header::HeaderValue;
use hyper::http::request::Parts;

use crate::ask::Ask;
use crate::counters::Series;
use crate::dialect::Dialect;
use crate::draw::Draws;
use crate::fault::Fault;
use crate::hash::TextHash;
use crate::log::{ChunkRecord, End, LogRecord};
use crate::tap::Tap;
use crate::worker::Worker;

/// A request under way. Dropped before [`Exchange::complete`] or [`Exchange::abort`], it ended because
/// the client went away, or because the mock shut down.
#[derive(Debug)]
pub(crate) struct Exchange {
    worker: Rc<Worker>,
    series: usize,
    dialect: Option<Dialect>,
    draws: Draws,
    /// When the request was complete, on the monotonic clock.
    complete_at: u64,
    first_content: bool,
    /// How a drop is to be read, where it is not the client's doing.
    planned_end: Option<End>,
    record: Option<Box<LogRecord>>,
    open: bool,
}

impl Exchange {
    pub(crate) fn begin(worker: Rc<Worker>, tap: &Tap, head: &Parts) -> Self {
        let shared = worker.shared();
        shared.counters.requests.up();
        shared.counters.in_flight.up();
        let dialect = Dialect::of_path(head.uri.path());
        let sequence = shared.next_sequence();
        let request_id = head.headers.get("x-request-id").map(HeaderValue::as_bytes);
        let draws = Draws::new(shared.seed, request_id, sequence);
        let record = shared.log.is_on().then(|| {
            let mut record = Box::new(describe(head, request_id));
            (record.sequence, record.dialect) = (sequence, dialect);
            record.connection = tap.connection();
            record.arrived = shared.clock.unix(tap.arrived());
            record.received = shared.clock.unix(tap.first_read());
            record.head_complete = shared.clock.unix(tap.last_read());
            record
        });
        if dialect.is_some() {
            shared.counters.api_in_flight.up();
        }
        Self {
            series: shared.counters.series.len() - 1,
            dialect,
            draws,
            complete_at: 0,
            first_content: true,
            planned_end: None,
            record,
            open: true,
            worker,
        }
    }

    /// The random numbers of this request.
    pub(crate) const fn draws(&self) -> Draws {
        self.draws
    }

    /// When the request was complete: the zero of all due times, on the monotonic clock.
    pub(crate) const fn complete_at(&self) -> u64 {
        self.complete_at
    }

    fn series(&self) -> &Series {
        &self.worker.shared().counters.series[self.series]
    }

    /// The request's last bytes have been read.
    pub(crate) fn request_complete(&mut self, tap: &Tap) {
        self.complete_at = tap.last_read();
        tap.end_request();
        if let Some(record) = &mut self.record {
            record.body_complete = self.worker.shared().clock.unix(self.complete_at);
        }
    }

    /// The request has been read as an API request to a model.
    pub(crate) fn understood(&mut self, ask: &Ask<'_>, series: usize) {
        self.series = series;
        let keeps_text = self.worker.shared().log.keeps_text();
        if let Some(record) = &mut self.record {
            describe_prompt(record, ask, keeps_text);
        }
    }

    pub(crate) fn planned(&mut self, prompt_tokens: u64, output_tokens: u32) {
        self.series().tokens_in.add(prompt_tokens);
        if let Some(record) = &mut self.record {
            record.planned_tokens = output_tokens;
        }
    }

    pub(crate) fn faulted(&mut self, fault: Fault) {
        if fault == Fault::Hang {
            self.planned_end = Some(End::Aborted);
        }
        if let Some(record) = &mut self.record {
            record.fault = Some(fault.to_string());
        }
    }

    /// The answer's head is about to be handed over.
    pub(crate) fn answered(&mut self, status: u16) {
        self.series().answered(status);
        if let Some(record) = &mut self.record {
            record.status = status;
        }
    }

    pub(crate) fn stream_begun(&self) {
        self.series().streams.up();
    }

    /// A piece of the body is handed over now; it was due at `due` on the monotonic clock.
    pub(crate) fn hand_over(&mut self, due: u64, bytes: usize, tokens: u32) {
        let series = self.series();
        series.chunks.up();
        series.tokens_out.add(u64::from(tokens));
        if self.record.is_none() && (tokens == 0 || !self.first_content) {
            return;
        }
        let clock = self.worker.shared().clock;
        let now = clock.now();
        if tokens > 0 && std::mem::take(&mut self.first_content) {
            let series = self.series();
            series.ttft_nanos.add(now.saturating_sub(self.complete_at));
            series.ttft_count.up();
        }
        if let Some(record) = &mut self.record {
            let (due, handed) = (clock.unix(due), clock.unix(now));
            record.chunks.push(ChunkRecord {
                due,
                handed,
                written: 0,
                bytes: bytes as u64,
                tokens,
            });
        }
    }

    /// The last piece has been written.
    pub(crate) fn written(&mut self, at: u64) {
        let clock = self.worker.shared().clock;
        if let Some(chunk) = self.record.as_mut().and_then(|record| record.chunks.last_mut())
            && chunk.written == 0
        {
            chunk.written = clock.unix(at);
        }
    }

    /// The answer has been written to its last byte.
    pub(crate) fn complete(mut self, at: u64) {
        self.written(at);
        self.close(End::Completed, at);
    }

    /// The mock breaks off.
    pub(crate) fn abort(mut self) {
        let now = self.worker.shared().clock.now();
        self.close(End::Aborted, now);
    }

    fn close(&mut self, end: End, at: u64) {
        self.open = false;
        let shared = self.worker.shared();
        shared.counters.in_flight.down();
        if self.dialect.is_some() {
            shared.counters.api_in_flight.down();
        }
        shared.counters.ended(end);
        if let Some(mut record) = self.record.take() {
            record.finished = shared.clock.unix(at);
            record.end = Some(end);
            shared.log.add(record);
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if self.open {
            let shared = self.worker.shared();
            let gone = if shared.is_stopping() { End::ShutDown } else { End::ClientGone };
            let now = shared.clock.now();
            self.close(self.planned_end.unwrap_or(gone), now);
        }
    }
}

fn describe(head: &Parts, request_id: Option<&[u8]>) -> LogRecord {
    LogRecord {
        request_id: request_id.map(|id| String::from_utf8_lossy(id).into_owned()),
        version: format!("{:?}", head.version),
        method: head.method.as_str().to_owned(),
        path: head.uri.path().to_owned(),
        ..LogRecord::default()
    }
}

fn describe_prompt(record: &mut LogRecord, ask: &Ask<'_>, keeps_text: bool) {
    let mut hash = TextHash::new();
    ask.texts.iter().for_each(|text| hash.feed(text.as_bytes()));
    (record.prompt_hash, record.prompt_blocks) = hash.finish();
    record.model = Some(ask.model.clone().into_owned());
    record.stream = ask.stream;
    record.messages = ask.messages;
    record.prompt_bytes = ask.texts.iter().map(|text| text.len() as u64).sum();
    record.prompt_tokens = ask.prompt_tokens();
    let head = |text: &str| text.chars().take(60).collect();
    record.prompt_head = ask.texts.first().filter(|_| keeps_text).map(|text| head(text));
}
