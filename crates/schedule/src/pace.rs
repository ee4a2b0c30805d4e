//! The arrivals of one stage, one after another.

use std::sync::Arc;

use plimsoll_measure::{Nanos, Seed, StageId};

use crate::rate::Rate;
use crate::spec::{Arrivals, Load};

/// What decides when the arrivals of a stage are due.
#[derive(Debug)]
enum Law {
    /// Closed model: nothing arrives.
    Idle,
    /// Arrival `n` is due when the rate's integral reaches `n`.
    Even(Rate),
    /// A Poisson process of rate 1 on the axis of the integral, brought onto the axis of time by the
    /// integral's inverse (time rescaling). Its gaps are exponential with mean 1.
    Poisson(Rate, Seed),
    /// Arrival `n` is due at the trace's offset `n`.
    Trace(Arc<[Nanos]>),
}

/// The arrivals of one stage.
#[derive(Debug)]
pub(crate) struct Pace {
    law: Law,
    length: Nanos,
}

/// How far a walk through one stage has come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Walk {
    /// Arrivals so far.
    index: u64,
    /// The integral of the rate at the last arrival of a Poisson process.
    mass: f64,
}

impl Pace {
    pub(crate) fn new(
        load: Load,
        length: Nanos,
        (process, seed): (Arrivals, Seed),
        offsets: &Arc<[Nanos]>,
    ) -> Self {
        let law = match load {
            Load::Closed { .. } => Law::Idle,
            Load::Trace => Law::Trace(Arc::clone(offsets)),
            Load::Open { from, to } => {
                let rate = Rate::new(from, to, length);
                match process {
                    Arrivals::Constant => Law::Even(rate),
                    Arrivals::Poisson => Law::Poisson(rate, seed),
                }
            }
        };
        Self { law, length }
    }

    /// The next arrival's index and offset within the stage; `None` when the stage is over.
    #[inline]
    pub(crate) fn next(&self, walk: &mut Walk) -> Option<(u64, Nanos)> {
        let index = walk.index;
        let due = self.due(index, &mut walk.mass).filter(|due| *due < self.length)?;
        walk.index += 1;
        Some((index, due))
    }

    #[inline]
    fn due(&self, index: u64, mass: &mut f64) -> Option<Nanos> {
        match &self.law {
            Law::Idle => None,
            Law::Even(rate) => rate.due(index as f64),
            Law::Poisson(rate, seed) => {
                *mass += seed.draw("gap", index).exponential();
                rate.due(*mass)
            }
            Law::Trace(offsets) => offsets.get(usize::try_from(index).ok()?).copied(),
        }
    }

    /// Number of arrivals. A Poisson process has to be walked through for it, at some tens of
    /// nanoseconds each; all others are told at once.
    pub(crate) fn count(&self) -> u64 {
        match &self.law {
            Law::Idle => 0,
            Law::Even(rate) => self.even_count(rate),
            Law::Trace(offsets) => offsets.partition_point(|due| *due < self.length) as u64,
            Law::Poisson(..) => {
                let mut walk = Walk::default();
                while self.next(&mut walk).is_some() {}
                walk.index
            }
        }
    }

    /// The integral, corrected for rounding at the stage's very end.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "rates and durations are bounded: 100 M/s for 31 days is far below 2^63"
    )]
    fn even_count(&self, rate: &Rate) -> u64 {
        let inside = |n: u64| rate.due(n as f64).is_some_and(|due| due < self.length);
        let mut count = rate.total() as u64;
        while inside(count) {
            count += 1;
        }
        while count > 0 && !inside(count - 1) {
            count -= 1;
        }
        count
    }
}

/// The seed of one stage's gaps.
pub(crate) fn stage_seed(seed: Seed, stage: StageId) -> Seed {
    Seed(seed.draw("arrivals", u64::from(stage.0)).bits())
}
