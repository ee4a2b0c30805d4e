//! Buffers that are used again and again, so that the steady state allocates nothing.

use std::cell::RefCell;

use plimsoll_measure::Nanos;
use plimsoll_protocol::Decoder;
use plimsoll_transport::EncodedRequest;

use crate::policy_decision::DecisionScan;
use crate::request_timeout::LazyTimeout;

/// Idle buffers of one kind that are kept.
const MAX_IDLE: usize = 64;
/// Largest request body that is kept: otherwise one huge prompt would hold its memory until the end
/// of the run.
const MAX_KEPT_BYTES: usize = 256 * 1024;

/// The idle buffers of one worker, by kind.
#[derive(Debug, Default)]
pub(crate) struct BufferPool {
    pub(crate) requests: FreeList<EncodedRequest>,
    pub(crate) gaps: FreeList<Vec<Nanos>>,
    pub(crate) timeouts: FreeList<LazyTimeout>,
    pub(crate) scans: FreeList<DecisionScan>,
    /// By route. Boxed, so that moving one moves a pointer.
    pub(crate) decoders: Vec<FreeList<Box<Decoder>>>,
}

impl BufferPool {
    /// No buffers yet; decoders for so many routes.
    pub(crate) fn new(routes: usize) -> Self {
        Self { decoders: (0..routes).map(|_| FreeList::default()).collect(), ..Self::default() }
    }
}

/// Idle buffers of one kind, the one used last on top: its memory is most likely still in the
/// cache.
#[derive(Debug)]
pub(crate) struct FreeList<T>(RefCell<Vec<T>>);

impl<T> Default for FreeList<T> {
    fn default() -> Self {
        Self(RefCell::default())
    }
}

impl<T: Recycle> FreeList<T> {
    /// An idle buffer, or a new one.
    pub(crate) fn acquire(&self) -> T
    where
        T: Default,
    {
        self.acquire_or(T::default)
    }

    /// An idle buffer, or the one that `make` makes.
    pub(crate) fn acquire_or(&self, make: impl FnOnce() -> T) -> T {
        // The list is not borrowed while `make` runs.
        let idle = self.0.borrow_mut().pop();
        idle.unwrap_or_else(make)
    }

    /// Puts a buffer back.
    pub(crate) fn release(&self, mut buffer: T) {
        if buffer.recycle() {
            let mut idle = self.0.borrow_mut();
            if idle.len() < MAX_IDLE {
                idle.push(buffer);
            }
        }
    }
}

/// A buffer that can be used again.
pub(crate) trait Recycle {
    /// Empties the buffer; false if it is not worth keeping.
    fn recycle(&mut self) -> bool;
}

impl Recycle for EncodedRequest {
    fn recycle(&mut self) -> bool {
        self.head.clear();
        self.body.clear();
        // One without memory is no better than a new one.
        let has_memory = self.head.capacity() > 0 || self.body.capacity() > 0;
        has_memory && self.body.capacity() <= MAX_KEPT_BYTES
    }
}

impl Recycle for Vec<Nanos> {
    fn recycle(&mut self) -> bool {
        self.clear();
        self.capacity() > 0
    }
}

impl Recycle for LazyTimeout {
    fn recycle(&mut self) -> bool {
        self.forget_task();
        true
    }
}

/// Emptied when the next response begins.
impl Recycle for DecisionScan {
    fn recycle(&mut self) -> bool {
        true
    }
}

impl Recycle for Box<Decoder> {
    fn recycle(&mut self) -> bool {
        self.reset();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_released_buffer_comes_back_empty_and_a_huge_one_does_not() {
        let requests: FreeList<EncodedRequest> = FreeList::default();
        for (capacity, kept) in [(1_000, true), (MAX_KEPT_BYTES + 1, false)] {
            let mut request = EncodedRequest::default();
            request.body.reserve_exact(capacity);
            request.body.push(b'x');
            requests.release(request);
            let next = requests.acquire();
            assert_eq!((next.body.len(), next.body.capacity() >= capacity), (0, kept));
        }
    }

    #[test]
    fn no_more_than_the_limit_is_kept() {
        let gaps: FreeList<Vec<Nanos>> = FreeList::default();
        (0..MAX_IDLE + 9).for_each(|_| gaps.release(Vec::with_capacity(4)));
        assert_eq!(gaps.0.borrow().len(), MAX_IDLE);
    }
}
