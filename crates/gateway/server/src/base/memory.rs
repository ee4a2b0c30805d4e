//! The memory for messages: `server.memory`.
//!
//! It counts memory that grows with the traffic and with slow peers: bodies read as a whole, bytes
//! that a client does not read, bytes held by filters, uploads in progress, HTTP/2 streams,
//! conversations of the agent loop. Small relayed pieces are not counted, because they never wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;

/// Messages up to this size are not counted: they fit into the buffers of every connection.
pub(crate) const UNCOUNTED: usize = 8 << 10;

/// While memory is short, transfers without progress for this long are cancelled in favour of
/// others.
pub(crate) const SHORT_PATIENCE: Duration = Duration::from_secs(1);

/// The reserved bytes and their limit, shared by all workers.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    limit: AtomicUsize,
    held: AtomicUsize,
}

/// Bytes reserved until it is dropped.
#[derive(Debug)]
pub(crate) struct MemoryReservation {
    budget: Arc<MemoryBudget>,
    bytes: usize,
}

impl MemoryBudget {
    pub(crate) fn new(limit: u64) -> Arc<Self> {
        let budget = Self { limit: AtomicUsize::new(0), held: AtomicUsize::new(0) };
        budget.set_limit(limit);
        Arc::new(budget)
    }

    /// Sets a new limit.
    pub(crate) fn set_limit(&self, limit: u64) {
        self.limit.store(usize::try_from(limit).unwrap_or(usize::MAX), Ordering::Relaxed);
    }

    /// The bytes reserved now.
    pub(crate) fn reserved(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Whether less than an eighth is left: new messages are refused, and waiting ones are
    /// cancelled.
    pub(crate) fn is_short(&self) -> bool {
        let limit = self.limit.load(Ordering::Relaxed);
        self.reserved() >= limit - limit / 8
    }

    /// Reserves bytes; `None` if that would exceed the limit.
    pub(crate) fn hold(self: &Arc<Self>, bytes: usize) -> Option<MemoryReservation> {
        let mut held = self.hold_nothing();
        held.resize(bytes).then_some(held)
    }

    /// Grows or shrinks the reservation in `held`; returns whether that was possible.
    pub(crate) fn hold_in(
        self: &Arc<Self>,
        held: &mut Option<MemoryReservation>,
        bytes: usize,
    ) -> bool {
        if let Some(held) = held {
            return held.resize(bytes);
        }
        *held = self.hold(bytes);
        held.is_some()
    }

    /// An empty reservation.
    pub(crate) fn hold_nothing(self: &Arc<Self>) -> MemoryReservation {
        MemoryReservation { budget: Arc::clone(self), bytes: 0 }
    }

    /// Counts bytes for as long as they are referenced; `None` if that would exceed the limit.
    pub(crate) fn count(self: &Arc<Self>, bytes: Bytes) -> Option<Bytes> {
        if bytes.len() <= UNCOUNTED {
            return Some(bytes);
        }
        self.hold(bytes.len()).map(|held| held.attach(bytes))
    }

    fn take(&self, bytes: usize) -> bool {
        let before = self.held.fetch_add(bytes, Ordering::Relaxed);
        let fits = before.saturating_add(bytes) <= self.limit.load(Ordering::Relaxed);
        if !fits {
            self.held.fetch_sub(bytes, Ordering::Relaxed);
        }
        fits
    }
}

impl MemoryReservation {
    /// Changes the number of bytes; returns whether that was possible. On failure nothing changes.
    pub(crate) fn resize(&mut self, bytes: usize) -> bool {
        let fits = match bytes.checked_sub(self.bytes) {
            Some(0) => true,
            Some(more) => self.budget.take(more),
            None => {
                self.budget.held.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
                true
            }
        };
        if fits {
            self.bytes = bytes;
        }
        fits
    }

    /// Ties the reservation to bytes, which count for as long as they are referenced.
    pub(crate) fn attach(self, bytes: impl AsRef<[u8]> + Send + 'static) -> Bytes {
        Bytes::from_owner(CountedBytes { bytes, _held: self })
    }
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        self.budget.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Bytes with their reservation.
struct CountedBytes<B> {
    bytes: B,
    _held: MemoryReservation,
}

impl<B: AsRef<[u8]>> AsRef<[u8]> for CountedBytes<B> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_held_within_the_limit_and_given_back() {
        let budget = MemoryBudget::new(800);
        let mut first = budget.hold(500).unwrap();
        assert!(!budget.is_short() && budget.hold(301).is_none());
        assert!(!first.resize(801) && first.resize(700));
        assert!(budget.is_short(), "an eighth is left");
        assert!(first.resize(100));
        let bytes = first.attach(vec![1, 2, 3]);
        let part = bytes.slice(1..);
        drop(bytes);
        assert_eq!((&part[..], budget.reserved()), (&[2, 3][..], 100), "a part keeps all");
        drop(part);
        assert_eq!(budget.reserved(), 0);
    }
}
