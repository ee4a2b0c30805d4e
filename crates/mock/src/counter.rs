//! A counter shared by threads.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A counter or gauge.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, number: u64) {
        self.0.fetch_add(number, Relaxed);
    }

    /// Adds one and returns the previous value.
    pub(crate) fn increment(&self) -> u64 {
        self.0.fetch_add(1, Relaxed)
    }

    pub(crate) fn decrement(&self) {
        self.0.fetch_sub(1, Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
