//! Injected faults: known errors and costs, to show that a measurement finds them.

use std::cell::{Cell, RefCell};
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use tokio::task::yield_now;
use tokio::time::{Sleep, sleep};

use crate::config::spec::{FaultSpec, PauseSpec};
use crate::worker::clock;
use crate::worker::rng::splitmix64;

/// tokio's timer has a resolution of a millisecond; the last 2 ms of a delay are spent yielding.
const TIMER_MARGIN: u64 = 2_000_000;

/// The random choices of one worker, and the memory it leaked.
#[derive(Debug, Default)]
pub(crate) struct FaultInjector {
    draws: Cell<u64>,
    leaked: RefCell<Vec<Vec<u8>>>,
}

impl FaultInjector {
    /// Whether a fault with this share is injected this time.
    pub(crate) fn should_inject(&self, spec: &FaultSpec, share: f64) -> bool {
        if share <= 0.0 {
            return false;
        }
        self.draws.set(self.draws.get().wrapping_add(1));
        let draw = splitmix64(splitmix64(spec.seed) ^ self.draws.get()) >> 11;
        (draw as f64) < share * (1_u64 << 53) as f64
    }

    /// Leaks the memory of one request.
    pub(crate) fn leak(&self, spec: &FaultSpec) {
        if spec.leak_bytes.0 > 0 {
            let size = usize::try_from(spec.leak_bytes.0).unwrap_or(0);
            // Written to, since untouched memory is not resident.
            self.leaked.borrow_mut().push(vec![0xa5; size]);
        }
    }

    /// The faults of one response body; `None` for none.
    pub(crate) fn body_faults(&self, spec: &FaultSpec, is_stream: bool) -> Option<Box<BodyFaults>> {
        let stall = self.should_inject(spec, spec.stall_share).then_some(spec.stall.0);
        let reset = self.should_inject(spec, spec.reset_share);
        let reset = if reset { Reset::Planned } else { Reset::None };
        let buffer = spec.buffer_streams && is_stream;
        (stall.is_some() || reset == Reset::Planned || buffer)
            .then(|| Box::new(BodyFaults { stall, reset, buffer, ..BodyFaults::default() }))
    }
}

/// The faults of one response body. They apply behind all other filters.
#[derive(Debug, Default)]
pub(crate) struct BodyFaults {
    /// Stall this long after the first chunk.
    stall: Option<Duration>,
    reset: Reset,
    /// Hold everything back until it is complete.
    buffer: bool,
    stalling: Option<Pin<Box<Sleep>>>,
    held: Vec<u8>,
}

/// A reset of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Reset {
    #[default]
    None,
    /// After the first chunk, or within the only one.
    Planned,
    /// Instead of the next chunk.
    Due,
}

impl BodyFaults {
    /// Whether the response is to be reset: such a body must not report its end.
    pub(crate) fn resets(&self) -> bool {
        self.reset != Reset::None
    }

    /// Whether the reset is due.
    pub(crate) fn reset_is_due(&self) -> bool {
        self.reset == Reset::Due
    }

    /// Whether the body is held back until it is complete.
    pub(crate) const fn buffers(&self) -> bool {
        self.buffer
    }

    /// Ready when no stall is going on.
    pub(crate) fn poll_stall(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let Some(stalling) = &mut self.stalling {
            ready!(stalling.as_mut().poll(context));
            self.stalling = None;
        }
        Poll::Ready(())
    }

    /// Holds a chunk back, if the body is buffered.
    pub(crate) fn chunk(&mut self, chunk: Bytes) -> Bytes {
        if self.buffer {
            self.held.extend_from_slice(&chunk);
            return Bytes::new();
        }
        chunk
    }

    /// Takes the last bytes of the body; returns all that goes out at its end.
    pub(crate) fn end(&mut self, rest: Vec<u8>) -> Vec<u8> {
        if !self.buffer {
            return rest;
        }
        self.held.extend_from_slice(&rest);
        mem::take(&mut self.held)
    }

    /// Cuts a response that is to be reset and consists of this chunk alone in half.
    pub(crate) fn cut(&mut self, mut chunk: Bytes, is_last: bool) -> Bytes {
        if self.resets() && is_last {
            chunk.truncate(chunk.len() / 2);
            self.start();
        }
        chunk
    }

    /// A chunk is about to go out.
    pub(crate) fn start(&mut self) {
        if let Some(stall) = self.stall.take() {
            self.stalling = Some(Box::pin(sleep(stall)));
        }
        if self.resets() {
            self.reset = Reset::Due;
        }
    }
}

/// Waits exactly: the last stretch by yielding to other tasks until it is time.
pub(crate) async fn delay(nanos: u64) {
    let until = clock::now().saturating_add(nanos);
    if nanos > TIMER_MARGIN {
        sleep(Duration::from_nanos(nanos - TIMER_MARGIN)).await;
    }
    while clock::now() < until {
        yield_now().await;
    }
}

/// Pauses this worker's thread at the same times as all others, for as long as the gateway runs.
#[expect(clippy::infinite_loop, reason = "the worker's runtime ends it")]
pub(crate) async fn run_pauses(spec: PauseSpec) {
    let every = spec.every.nanos().max(1);
    loop {
        let now = clock::now();
        sleep(Duration::from_nanos(every - now % every)).await;
        let until = clock::now().saturating_add(spec.length.nanos());
        while let Some(left) = until.checked_sub(clock::now()).filter(|left| *left > 0) {
            thread::park_timeout(Duration::from_nanos(left));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_injected_as_often_as_its_share_says() {
        let injector = FaultInjector::default();
        let spec = FaultSpec { seed: 7, ..FaultSpec::default() };
        for share in [0.0, 0.01, 0.5, 1.0] {
            let count =
                (0..100_000).filter(|_| injector.should_inject(&spec, share)).count() as f64;
            // Four standard deviations of a binomial draw.
            let bound = 4.0 * (100_000.0 * share * (1.0 - share)).sqrt();
            assert!((count - 100_000.0 * share).abs() <= bound, "{share}: {count}");
        }
    }
}
