//! Faults that are planted, so that an instrument can be shown to find them.

use std::cell::{Cell, RefCell};
use std::thread;
use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::sleep;

use crate::clock;
use crate::relay::Planted;
use crate::spec::{FaultSpec, PauseSpec};

/// tokio's timer has a grain of a millisecond; what is nearer than this is waited for in turns.
const GRAIN: u64 = 2_000_000;

/// The draws of one worker, and what it leaks.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    drawn: Cell<u64>,
    leaked: RefCell<Vec<Vec<u8>>>,
}

/// Mixes a number so that following ones have nothing in common (the finaliser of `SplitMix64`, Steele et
/// al., 2014).
pub(crate) const fn scramble(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl Faults {
    /// Does it happen this time?
    pub(crate) fn hits(&self, spec: &FaultSpec, share: f64) -> bool {
        if share <= 0.0 {
            return false;
        }
        self.drawn.set(self.drawn.get().wrapping_add(1));
        let draw = scramble(scramble(spec.seed) ^ self.drawn.get()) >> 11;
        (draw as f64) < share * (1_u64 << 53) as f64
    }

    /// Keeps memory for good.
    pub(crate) fn leak(&self, spec: &FaultSpec) {
        if spec.leak_bytes.0 > 0 {
            let size = usize::try_from(spec.leak_bytes.0).unwrap_or(0);
            // Written to, as memory that is not touched costs nothing.
            self.leaked.borrow_mut().push(vec![0xa5; size]);
        }
    }

    /// What is planted in an answer.
    pub(crate) fn of_answer(&self, spec: &FaultSpec, stream: bool) -> Planted {
        Planted {
            stall: self.hits(spec, spec.stall_share).then_some(spec.stall.0),
            reset: self.hits(spec, spec.reset_share),
            buffer: spec.buffer_streams && stream,
        }
    }
}

/// Waits exactly: the last stretch by giving way to other tasks until it is time.
pub(crate) async fn delay(length: u64) {
    let until = clock::now().saturating_add(length);
    if length > GRAIN {
        sleep(Duration::from_nanos(length - GRAIN)).await;
    }
    while clock::now() < until {
        yield_now().await;
    }
}

/// Stops this worker's thread at the same times as all others, for as long as the gateway runs.
#[expect(clippy::infinite_loop, reason = "the worker's runtime ends it")]
pub(crate) async fn pause(spec: PauseSpec) {
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
    fn a_share_is_hit_as_often_as_it_says() {
        let (faults, spec) = (Faults::default(), FaultSpec { seed: 7, ..FaultSpec::default() });
        for share in [0.0, 0.01, 0.5, 1.0] {
            let hits = (0..100_000).filter(|_| faults.hits(&spec, share)).count() as f64;
            // Four standard deviations of a binomial draw.
            let bound = 4.0 * (100_000.0 * share * (1.0 - share)).sqrt();
            assert!((hits - 100_000.0 * share).abs() <= bound, "{share}: {hits}");
        }
    }
}
