//! The memory that messages may take in all: `server.memory`.
//!
//! Counted is what grows with what clients and upstreams send and with how slowly they take it:
//! bodies that are read whole, bytes that a client does not take, what filters hold back, uploads
//! on their way, streams of HTTP/2, conversations of the agent loop. Small pieces that are passed
//! on at once are not counted: they never wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;

/// Messages up to this size are not counted: they fit into the buffers that every connection has.
pub(crate) const UNCOUNTED: usize = 8 << 10;

/// While memory is short, what does not move for this long gives way to what does.
pub(crate) const SHORT_PATIENCE: Duration = Duration::from_secs(1);

/// The bytes that are held, and the most that may be. Shared by all workers.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    limit: AtomicUsize,
    held: AtomicUsize,
}

/// Bytes that are held until it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    budget: Arc<MemoryBudget>,
    bytes: usize,
}

impl MemoryBudget {
    pub(crate) fn new(limit: u64) -> Arc<Self> {
        let budget = Self { limit: AtomicUsize::new(0), held: AtomicUsize::new(0) };
        budget.set_limit(limit);
        Arc::new(budget)
    }

    /// Sets the most that may be held from now on.
    pub(crate) fn set_limit(&self, limit: u64) {
        self.limit.store(usize::try_from(limit).unwrap_or(usize::MAX), Ordering::Relaxed);
    }

    /// The bytes held now.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Whether less than an eighth is left: no new message is taken, and what waits gives way.
    pub(crate) fn is_short(&self) -> bool {
        let limit = self.limit.load(Ordering::Relaxed);
        self.held() >= limit - limit / 8
    }

    /// Holds bytes; `None` where that would be more than allowed.
    pub(crate) fn hold(self: &Arc<Self>, bytes: usize) -> Option<Held> {
        let mut held = self.hold_nothing();
        held.resize(bytes).then_some(held)
    }

    /// Holds this many bytes in `held`; says whether that was possible.
    pub(crate) fn hold_in(self: &Arc<Self>, held: &mut Option<Held>, bytes: usize) -> bool {
        if let Some(held) = held {
            return held.resize(bytes);
        }
        *held = self.hold(bytes);
        held.is_some()
    }

    /// Holds no byte yet.
    pub(crate) fn hold_nothing(self: &Arc<Self>) -> Held {
        Held { budget: Arc::clone(self), bytes: 0 }
    }

    /// Counts bytes as held as long as anybody has them; `None` where that would be more than
    /// allowed.
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

impl Held {
    /// Holds this many bytes instead; says whether that was possible, otherwise nothing changes.
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

    /// The bytes, which are counted as held as long as anybody has them.
    pub(crate) fn attach(self, bytes: impl AsRef<[u8]> + Send + 'static) -> Bytes {
        Bytes::from_owner(Counted { bytes, _held: self })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Bytes with their count.
struct Counted<B> {
    bytes: B,
    _held: Held,
}

impl<B: AsRef<[u8]>> AsRef<[u8]> for Counted<B> {
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
        assert_eq!((&part[..], budget.held()), (&[2, 3][..], 100), "a part keeps all");
        drop(part);
        assert_eq!(budget.held(), 0);
    }
}
