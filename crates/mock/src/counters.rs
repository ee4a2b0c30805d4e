//! The counters of a running mock, and [`Stats`], their public copy.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::counter::Counter;
use crate::log::RequestEnd;

/// The HTTP statuses that are counted.
const STATUSES: std::ops::Range<u16> = 100..600;

/// Counters of one model, or of requests that name none.
#[derive(Debug)]
pub(crate) struct ModelCounters {
    pub(crate) model: String,
    statuses: Vec<Counter>,
    pub(crate) tokens_in: Counter,
    pub(crate) tokens_out: Counter,
    pub(crate) streams: Counter,
    pub(crate) chunks: Counter,
    pub(crate) ttft_nanos: Counter,
    pub(crate) ttft_count: Counter,
}

impl ModelCounters {
    fn new(model: String) -> Self {
        Self {
            model,
            statuses: STATUSES.map(|_| Counter::default()).collect(),
            tokens_in: Counter::default(),
            tokens_out: Counter::default(),
            streams: Counter::default(),
            chunks: Counter::default(),
            ttft_nanos: Counter::default(),
            ttft_count: Counter::default(),
        }
    }

    pub(crate) fn count_status(&self, status: u16) {
        let index = usize::from(status.saturating_sub(STATUSES.start));
        if let Some(count) = self.statuses.get(index) {
            count.increment();
        }
    }

    /// The statuses that were sent, each with the number of its responses.
    pub(crate) fn statuses(&self) -> impl Iterator<Item = (u16, u64)> {
        STATUSES.zip(self.statuses.iter().map(Counter::get)).filter(|(_, count)| *count > 0)
    }
}

/// All counters.
#[derive(Debug)]
pub(crate) struct Counters {
    /// One for each configured model in order, then one for all other models, then one for requests
    /// that name no model.
    pub(crate) models: Vec<ModelCounters>,
    pub(crate) requests: Counter,
    pub(crate) in_flight: Counter,
    /// Requests in flight to the LLM API paths.
    pub(crate) api_in_flight: Counter,
    by_end: [Counter; RequestEnd::ALL.len()],
    pub(crate) connections: Counter,
    pub(crate) connections_open: Counter,
}

impl Counters {
    pub(crate) fn new<'a>(models: impl Iterator<Item = &'a String>) -> Self {
        let names = models.cloned().chain(["other".to_owned(), String::new()]);
        Self {
            models: names.map(ModelCounters::new).collect(),
            requests: Counter::default(),
            in_flight: Counter::default(),
            api_in_flight: Counter::default(),
            by_end: std::array::from_fn(|_| Counter::default()),
            connections: Counter::default(),
            connections_open: Counter::default(),
        }
    }

    pub(crate) fn count_end(&self, end: RequestEnd) {
        self.by_end[end as usize].increment();
    }

    pub(crate) fn ends(&self, end: RequestEnd) -> u64 {
        self.by_end[end as usize].get()
    }

    pub(crate) fn stats(&self, log_lost: u64) -> Stats {
        let sum = |of: fn(&ModelCounters) -> &Counter| {
            self.models.iter().map(|model| of(model).get()).sum()
        };
        let mut by_status = BTreeMap::new();
        for (status, count) in self.models.iter().flat_map(ModelCounters::statuses) {
            *by_status.entry(status).or_default() += count;
        }
        Stats {
            requests: self.requests.get(),
            in_flight: self.in_flight.get(),
            completed: self.ends(RequestEnd::Completed),
            aborted: self.ends(RequestEnd::Aborted),
            client_gone: self.ends(RequestEnd::ClientGone),
            shut_down: self.ends(RequestEnd::ShutDown),
            by_status,
            streams: sum(|model| &model.streams),
            chunks: sum(|model| &model.chunks),
            tokens_in: sum(|model| &model.tokens_in),
            tokens_out: sum(|model| &model.tokens_out),
            connections: self.connections.get(),
            connections_open: self.connections_open.get(),
            log_lost,
        }
    }
}

/// A copy of the mock's counters. While no request starts or ends,
/// `requests = in_flight + completed + aborted + client_gone + shut_down`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Requests whose head has been received, of every path.
    pub requests: u64,
    /// Requests in flight.
    pub in_flight: u64,
    /// Requests whose response was written to its last byte; error responses are included.
    pub completed: u64,
    /// Requests that the mock aborted on purpose, by the faults cut, reset and hang.
    pub aborted: u64,
    /// Requests whose client disconnected first.
    pub client_gone: u64,
    /// Requests that the shutdown ended early.
    pub shut_down: u64,
    /// Responses by status.
    pub by_status: BTreeMap<u16, u64>,
    /// Streams started.
    pub streams: u64,
    /// Body chunks handed to connections.
    pub chunks: u64,
    /// Input tokens of accepted requests.
    pub tokens_in: u64,
    /// Output tokens handed to connections.
    pub tokens_out: u64,
    /// Connections accepted.
    pub connections: u64,
    /// Connections open.
    pub connections_open: u64,
    /// Log records lost because the log was full or its file could not be written.
    pub log_lost: u64,
}
