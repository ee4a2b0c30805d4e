//! The arrivals of one stage, one after another.

use std::sync::Arc;

use plimsoll_measure::{Nanos, Rng};

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
    Poisson(Rate),
    /// Arrival `n` is due at the trace's offset `n`.
    Trace(Arc<[Nanos]>),
}

/// The arrivals of one stage.
#[derive(Debug)]
pub(crate) struct Pace {
    law: Law,
    length: Nanos,
    /// The gaps of a Poisson process. The generator counts, so that its n-th number is a function of
    /// (seed, stage, n), the same in every walk.
    gaps: Rng,
}

/// How far a walk through one stage has come.
#[derive(Clone, Debug)]
pub(crate) struct Walk {
    /// Arrivals so far.
    index: u64,
    /// The integral of the rate at the last arrival of a Poisson process.
    mass: f64,
    /// The gaps still to come.
    gaps: Rng,
}

impl Pace {
    pub(crate) fn new(
        load: Load,
        length: Nanos,
        (process, gaps): (Arrivals, Rng),
        offsets: &Arc<[Nanos]>,
    ) -> Self {
        let law = match load {
            Load::Closed { .. } => Law::Idle,
            Load::Trace => Law::Trace(Arc::clone(offsets)),
            Load::Open { from, to } => {
                let rate = Rate::new(from, to, length);
                match process {
                    Arrivals::Constant => Law::Even(rate),
                    Arrivals::Poisson => Law::Poisson(rate),
                }
            }
        };
        Self { law, length, gaps }
    }

    /// A walk from the start of the stage.
    pub(crate) fn walk(&self) -> Walk {
        Walk { index: 0, mass: 0.0, gaps: self.gaps.clone() }
    }

    /// The next arrival's index and offset within the stage; `None` when the stage is over.
    #[inline]
    pub(crate) fn next(&self, walk: &mut Walk) -> Option<(u64, Nanos)> {
        let due = self.due(walk).filter(|due| *due < self.length)?;
        let index = walk.index;
        walk.index += 1;
        Some((index, due))
    }

    #[inline]
    fn due(&self, walk: &mut Walk) -> Option<Nanos> {
        match &self.law {
            Law::Idle => None,
            Law::Even(rate) => rate.due(walk.index as f64),
            Law::Poisson(rate) => {
                walk.mass += walk.gaps.exponential();
                rate.due(walk.mass)
            }
            Law::Trace(offsets) => offsets.get(usize::try_from(walk.index).ok()?).copied(),
        }
    }

    /// Number of arrivals. A Poisson process has to be walked through for it, at some tens of
    /// nanoseconds each; all others are told at once.
    pub(crate) fn count(&self) -> u64 {
        match &self.law {
            Law::Idle => 0,
            Law::Even(rate) => self.even_count(rate),
            Law::Trace(offsets) => offsets.partition_point(|due| *due < self.length) as u64,
            Law::Poisson(_) => {
                let mut walk = self.walk();
                while self.next(&mut walk).is_some() {}
                walk.index
            }
        }
    }

    /// As many as the whole part of the integral are inside for sure, since arrivals are at least 10 ns
    /// apart; one more may be.
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
        count
    }
}
