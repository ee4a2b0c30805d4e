//! The arrivals of one stage: its arrival process, and a cursor over it.

use std::sync::Arc;

use plimsoll_measure::{Nanos, Rng};

use crate::rate::Rate;
use crate::spec::{Arrivals, Load};

/// The rule by which the arrivals of a stage are due.
#[derive(Debug)]
enum ArrivalProcess {
    /// Closed model, without arrivals.
    None,
    /// Arrival `n` is due when the rate's integral reaches `n`.
    Even(Rate),
    /// A Poisson process of rate 1 on the axis of the integral, mapped to the axis of time by the
    /// integral's inverse (time rescaling). Its gaps are exponential with mean 1.
    Poisson(Rate),
    /// Arrival `n` is due at the trace's offset `n`.
    Trace(Arc<[Nanos]>),
}

/// The arrivals of one stage.
#[derive(Debug)]
pub(crate) struct StageArrivals {
    process: ArrivalProcess,
    length: Nanos,
    /// Generates the gaps of a Poisson process: the n-th is a function of (seed, stage, n), the
    /// same for every cursor.
    gaps: Rng,
}

/// A position in the arrivals of one stage.
#[derive(Clone, Debug)]
pub(crate) struct Cursor {
    /// Number of arrivals so far.
    index: u64,
    /// The integral of the rate at the last arrival of a Poisson process.
    integral: f64,
    /// Generates the remaining gaps.
    gaps: Rng,
}

impl StageArrivals {
    pub(crate) fn new(
        load: Load,
        length: Nanos,
        spacing: Arrivals,
        gaps: Rng,
        offsets: &Arc<[Nanos]>,
    ) -> Self {
        let process = match load {
            Load::Closed { .. } => ArrivalProcess::None,
            Load::Trace => ArrivalProcess::Trace(Arc::clone(offsets)),
            Load::Open { from, to } => {
                let rate = Rate::new(from, to, length);
                match spacing {
                    Arrivals::Constant => ArrivalProcess::Even(rate),
                    Arrivals::Poisson => ArrivalProcess::Poisson(rate),
                }
            }
        };
        Self { process, length, gaps }
    }

    /// Creates a cursor at the start of the stage.
    pub(crate) fn start(&self) -> Cursor {
        Cursor { index: 0, integral: 0.0, gaps: self.gaps.clone() }
    }

    /// The next arrival's index and offset within the stage; `None` at the end of the stage.
    #[inline]
    pub(crate) fn next(&self, cursor: &mut Cursor) -> Option<(u64, Nanos)> {
        let due = self.due(cursor).filter(|due| *due < self.length)?;
        let index = cursor.index;
        cursor.index += 1;
        Some((index, due))
    }

    #[inline]
    fn due(&self, cursor: &mut Cursor) -> Option<Nanos> {
        match &self.process {
            ArrivalProcess::None => None,
            ArrivalProcess::Even(rate) => rate.due(cursor.index as f64),
            ArrivalProcess::Poisson(rate) => {
                cursor.integral += cursor.gaps.exponential();
                rate.due(cursor.integral)
            }
            ArrivalProcess::Trace(offsets) => {
                offsets.get(usize::try_from(cursor.index).ok()?).copied()
            }
        }
    }

    /// Number of arrivals. A Poisson process has to be generated for it, at some tens of
    /// nanoseconds per arrival; the others are counted directly.
    pub(crate) fn count(&self) -> u64 {
        match &self.process {
            ArrivalProcess::None => 0,
            ArrivalProcess::Even(rate) => self.even_count(rate),
            ArrivalProcess::Trace(offsets) => {
                offsets.partition_point(|due| *due < self.length) as u64
            }
            ArrivalProcess::Poisson(_) => {
                let mut cursor = self.start();
                while self.next(&mut cursor).is_some() {}
                cursor.index
            }
        }
    }

    /// The integer part of the integral is a lower bound, because arrivals are at least 10 ns
    /// apart; at most one more arrival follows.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "rates and durations are bounded: 100 M/s for 31 days is far below 2^63"
    )]
    fn even_count(&self, rate: &Rate) -> u64 {
        let mut count = rate.total() as u64;
        while rate.due(count as f64).is_some_and(|due| due < self.length) {
            count += 1;
        }
        count
    }
}
