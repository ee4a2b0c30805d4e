//! What the mock counts while it runs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde::Serialize;

use crate::log::End;

/// A count that several workers share.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, number: u64) {
        self.0.fetch_add(number, Relaxed);
    }

    /// Adds one, and returns the number before.
    pub(crate) fn up(&self) -> u64 {
        self.0.fetch_add(1, Relaxed)
    }

    pub(crate) fn down(&self) {
        self.0.fetch_sub(1, Relaxed);
    }

    pub(crate) fn read(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// The lowest status, and how many there are.
const STATUSES: std::ops::Range<u16> = 100..600;

/// Counts for one model, or for what has none.
#[derive(Debug)]
pub(crate) struct Series {
    pub(crate) model: String,
    statuses: Vec<Count>,
    pub(crate) tokens_in: Count,
    pub(crate) tokens_out: Count,
    pub(crate) streams: Count,
    pub(crate) chunks: Count,
    pub(crate) ttft_nanos: Count,
    pub(crate) ttft_count: Count,
}

impl Series {
    fn new(model: String) -> Self {
        Self {
            model,
            statuses: STATUSES.map(|_| Count::default()).collect(),
            tokens_in: Count::default(),
            tokens_out: Count::default(),
            streams: Count::default(),
            chunks: Count::default(),
            ttft_nanos: Count::default(),
            ttft_count: Count::default(),
        }
    }

    pub(crate) fn answered(&self, status: u16) {
        let index = usize::from(status.saturating_sub(STATUSES.start));
        if let Some(count) = self.statuses.get(index) {
            count.up();
        }
    }

    /// The statuses that were answered, and how often.
    pub(crate) fn statuses(&self) -> impl Iterator<Item = (u16, u64)> {
        STATUSES.zip(self.statuses.iter().map(Count::read)).filter(|(_, count)| *count > 0)
    }
}

/// All counts.
#[derive(Debug)]
pub(crate) struct Counters {
    /// One series for each configured model in order, then one for all others, then one for requests
    /// that name no model.
    pub(crate) series: Vec<Series>,
    pub(crate) requests: Count,
    pub(crate) in_flight: Count,
    pub(crate) api_in_flight: Count,
    ends: [Count; End::ALL.len()],
    pub(crate) connections: Count,
    pub(crate) connections_open: Count,
}

impl Counters {
    pub(crate) fn new<'a>(models: impl Iterator<Item = &'a String>) -> Self {
        let names = models.cloned().chain(["other".to_owned(), String::new()]);
        Self {
            series: names.map(Series::new).collect(),
            requests: Count::default(),
            in_flight: Count::default(),
            api_in_flight: Count::default(),
            ends: std::array::from_fn(|_| Count::default()),
            connections: Count::default(),
            connections_open: Count::default(),
        }
    }

    pub(crate) fn ended(&self, end: End) {
        self.ends[end as usize].up();
    }

    pub(crate) fn ends(&self, end: End) -> u64 {
        self.ends[end as usize].read()
    }

    pub(crate) fn stats(&self, log_lost: u64) -> Stats {
        let sum = |of: fn(&Series) -> &Count| self.series.iter().map(|one| of(one).read()).sum();
        let mut by_status = BTreeMap::new();
        for (status, count) in self.series.iter().flat_map(Series::statuses) {
            *by_status.entry(status).or_default() += count;
        }
        Stats {
            requests: self.requests.read(),
            in_flight: self.in_flight.read(),
            completed: self.ends(End::Completed),
            aborted: self.ends(End::Aborted),
            client_gone: self.ends(End::ClientGone),
            shut_down: self.ends(End::ShutDown),
            by_status,
            streams: sum(|series| &series.streams),
            chunks: sum(|series| &series.chunks),
            tokens_in: sum(|series| &series.tokens_in),
            tokens_out: sum(|series| &series.tokens_out),
            connections: self.connections.read(),
            connections_open: self.connections_open.read(),
            log_lost,
        }
    }
}

/// What the mock has counted so far. While nothing moves,
/// `requests = in_flight + completed + aborted + client_gone + shut_down`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Requests whose head has been received, of every path.
    pub requests: u64,
    /// Requests under way.
    pub in_flight: u64,
    /// Requests whose answer was written to its last byte; refusals are answers too.
    pub completed: u64,
    /// Requests on which the mock broke off by itself: cut, reset, hang.
    pub aborted: u64,
    /// Requests whose client went away first.
    pub client_gone: u64,
    /// Requests that the shutdown cut short.
    pub shut_down: u64,
    /// Answers by status.
    pub by_status: BTreeMap<u16, u64>,
    /// Streams begun.
    pub streams: u64,
    /// Pieces of bodies handed to connections.
    pub chunks: u64,
    /// Input tokens of accepted requests.
    pub tokens_in: u64,
    /// Output tokens handed to connections.
    pub tokens_out: u64,
    /// Connections accepted.
    pub connections: u64,
    /// Connections open.
    pub connections_open: u64,
    /// Log records lost: beyond the configured capacity, or on errors of the file.
    pub log_lost: u64,
}
