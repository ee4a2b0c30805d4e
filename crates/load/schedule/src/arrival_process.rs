//! The arrivals of one stage: its arrival process, and a cursor over it.

use std::sync::Arc;

use plimsoll_measure::{Nanos, Rng};

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

// The rate of a stage, its integral, and the inverse of the integral: the time at which arrival
// `n` is due.
//
// Over a stage of `D` seconds the rate changes linearly from `a` to `b` per second:
//
// ```text
// rate(t)     = a + s t             with the slope s = (b - a)
// D
// integral(t) = a t + s t^2
// 2     arrivals expected up to t
// ```
//
// The `n`-th arrival is due when the integral reaches `n`. The equation `s t^2
// 2 + a t - n = 0` is solved for its smaller positive root, in the form that neither cancels nor
// divides by a slope near zero:
//
// ```text
// t(n) = 2 n
// (a + sqrt(a^2 + 2 s n))
// ```
//
// With `s = 0` this is `n
// a`. A negative radicand means that a falling rate never reaches `n`. Every arrival is computed
// from `n` alone, so errors do not accumulate over a run.

/// An arrival rate that changes linearly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    from: f64,
    slope: f64,
    seconds: f64,
}

impl Rate {
    /// Creates a rate that changes from `from` to `to` arrivals per second over `length`. All must
    /// be finite and not negative, and the length not zero, as in a checked stage.
    pub fn new(from: f64, to: f64, length: Nanos) -> Self {
        let seconds = length.as_secs_f64();
        Self { from, slope: (to - from) / seconds, seconds }
    }

    /// Number of arrivals expected in the first `seconds`.
    pub fn integral(&self, seconds: f64) -> f64 {
        self.from * seconds + self.slope * seconds * seconds / 2.0
    }

    /// Number of arrivals expected in the whole length.
    pub fn total(&self) -> f64 {
        self.integral(self.seconds)
    }

    /// Time at which the integral reaches `n`, to the nearest nanosecond; `None` if it never does.
    pub fn due(&self, n: f64) -> Option<Nanos> {
        if self.slope == 0.0 {
            return Some(Nanos::from_secs_f64(n / self.from));
        }
        if n == 0.0 {
            return Some(Nanos::ZERO);
        }
        let radicand = self.from * self.from + 2.0 * self.slope * n;
        (radicand >= 0.0).then(|| Nanos::from_secs_f64(2.0 * n / (self.from + radicand.sqrt())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn arrival_n_of_a_constant_rate_is_due_at_n_over_rate_even_after_hours() {
        for rate in [1u64, 7, 333, 1_000, 33_333] {
            let line = Rate::new(rate as f64, rate as f64, Nanos::from_secs(36_000));
            for n in [0, 1, 2, 999, 33_333, rate * 35_999, rate * 36_000 - 1] {
                // Integer arithmetic, rounded to the nearest nanosecond.
                let exact = (2 * u128::from(n) * 1_000_000_000 / u128::from(rate)).div_ceil(2);
                let due = line.due(n as f64).unwrap().as_u64();
                assert!(
                    u128::from(due).abs_diff(exact) <= 1,
                    "arrival {n} at {rate}/s: {due} {exact}"
                );
            }
        }
    }

    #[test]
    fn ramps_have_the_area_of_their_trapezoid() {
        for (from, to, seconds, area) in [
            (0.0, 100.0, 10, 500.0),
            (100.0, 0.0, 10, 500.0),
            (100.0, 5000.0, 60, 153_000.0),
            (20.0, 20.0, 3, 60.0),
        ] {
            let total = Rate::new(from, to, Nanos::from_secs(seconds)).total();
            assert!((total - area).abs() < 1e-6, "{from}..{to}: {total}");
        }
    }

    #[test]
    fn a_rate_that_falls_to_zero_never_exceeds_its_total() {
        let falling = Rate::new(100.0, 0.0, Nanos::from_secs(10));
        assert_eq!(falling.due(500.0), Some(Nanos::from_secs(10)));
        assert_eq!(falling.due(500.1), None);
    }

    proptest! {
        #[test]
        fn the_integral_up_to_the_due_time_is_the_arrivals_number(
            from in 0.0f64..50_000.0, to in 0.0f64..50_000.0, secs in 1u64..7200, share in 0.0f64..0.999,
        ) {
            let rate = Rate::new(from, to, Nanos::from_secs(secs));
            let n = rate.total() * share;
            let due = rate.due(n).unwrap().as_secs_f64();
            // A nanosecond at the highest rate, and the float error of the integral itself.
            let tolerance = 50_000.0 * 1e-9 + rate.total() * 1e-12;
            prop_assert!((rate.integral(due) - n).abs() <= tolerance);
        }
    }
}
