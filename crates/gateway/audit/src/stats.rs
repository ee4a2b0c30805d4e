//! Counts of rows by fate.

/// Rows that were not written, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    /// The queue was full.
    pub queue_full: u64,
    /// They were offered after the audit was closed.
    pub closed: u64,
    /// The file or the store was gone and did not come back within the retries.
    pub store: u64,
    /// The store answered that it will never take them (HTTP 400 or 413).
    pub refused: u64,
}

impl Drops {
    /// All of them.
    pub const fn total(&self) -> u64 {
        self.queue_full + self.closed + self.store + self.refused
    }
}

/// A consistent snapshot: all of its numbers are of the same moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Rows offered.
    pub accepted: u64,
    /// Rows that are in the file or that the store confirmed.
    pub written: u64,
    /// Rows lost.
    pub dropped: Drops,
    /// Rows that wait, or are being written.
    pub queued: u64,
    /// Failed attempts that were retried.
    pub retries: u64,
    /// Whether the last attempt to write failed.
    pub failing: bool,
}

impl Stats {
    /// Whether every accepted row is accounted for. Always true; for tests and metrics.
    pub const fn balanced(&self) -> bool {
        self.accepted == self.written + self.dropped.total() + self.queued
    }
}

/// A message for the operator, once for each outage, on the writer's thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A write failed and is retried; the text names the cause. No row is lost yet.
    Failing(String),
    /// Writing works again.
    Recovered {
        /// Rows that the sink lost during the outage, without those that found the queue full.
        lost: u64,
    },
}
