//! The counters of a running mock, and [`Stats`], their public copy.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::counter::Counter;
use crate::log::RequestEnd;

/// The HTTP statuses that are counted.
const STATUSES: std::ops::Range<u16> = 100..600;

/// All counters.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) requests: Counter,
    pub(crate) in_flight: Counter,
    /// Requests in flight to the LLM API paths.
    pub(crate) api_in_flight: Counter,
    pub(crate) streams: Counter,
    pub(crate) chunks: Counter,
    pub(crate) tokens_in: Counter,
    pub(crate) tokens_out: Counter,
    pub(crate) connections: Counter,
    pub(crate) connections_open: Counter,
    statuses: Vec<Counter>,
    by_end: [Counter; RequestEnd::ALL.len()],
}

impl Counters {
    pub(crate) fn new() -> Self {
        Self { statuses: STATUSES.map(|_| Counter::default()).collect(), ..Self::default() }
    }

    pub(crate) fn count_status(&self, status: u16) {
        let index = usize::from(status.saturating_sub(STATUSES.start));
        if let Some(count) = self.statuses.get(index) {
            count.increment();
        }
    }

    pub(crate) fn count_end(&self, end: RequestEnd) {
        self.by_end[end as usize].increment();
    }

    pub(crate) fn stats(&self, log_lost: u64) -> Stats {
        let [completed, aborted, client_gone, shut_down] = self.by_end.each_ref().map(Counter::get);
        let statuses = STATUSES.zip(self.statuses.iter().map(Counter::get));
        Stats {
            requests: self.requests.get(),
            in_flight: self.in_flight.get(),
            completed,
            aborted,
            client_gone,
            shut_down,
            by_status: statuses.filter(|(_, count)| *count > 0).collect(),
            streams: self.streams.get(),
            chunks: self.chunks.get(),
            tokens_in: self.tokens_in.get(),
            tokens_out: self.tokens_out.get(),
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
    /// Requests whose response was written completely, including error responses.
    pub completed: u64,
    /// Requests that the mock aborted on purpose, by the faults cut, reset and hang.
    pub aborted: u64,
    /// Requests whose client disconnected first.
    pub client_gone: u64,
    /// Requests ended by the shutdown.
    pub shut_down: u64,
    /// Responses by status.
    pub by_status: BTreeMap<u16, u64>,
    /// Streams started.
    pub streams: u64,
    /// Body chunks passed to connections.
    pub chunks: u64,
    /// Input tokens of accepted requests.
    pub tokens_in: u64,
    /// Output tokens passed to connections.
    pub tokens_out: u64,
    /// Connections accepted.
    pub connections: u64,
    /// Connections open.
    pub connections_open: u64,
    /// Log records lost because the log was full or its file could not be written.
    pub log_lost: u64,
}
