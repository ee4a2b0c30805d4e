//! Estimates how long a target's responses usually take without a backlog.
//!
//! After a pause of the target, and while it accepts new connections, responses are slow because
//! they wait for each other. Such times say nothing about the target, and more connections would
//! not help. So the usual time follows the median at once when it falls, but only after some
//! seconds when it rises: it is the smallest median of the last [`SPANS`] seconds.

use std::cell::Cell;

use plimsoll_measure::{Moment, Nanos};

const SPANS: usize = 4;
const SPAN: Nanos = Nanos::from_secs(1);
/// A span without a response.
const NONE: Nanos = Nanos::new(u64::MAX);

/// Response times of a target.
#[derive(Debug)]
pub(super) struct AnswerTime {
    /// Approximate median of the latest responses; zero without any.
    median: Cell<Nanos>,
    /// Smallest median of each span, with the current one last.
    least: Cell<[Nanos; SPANS]>,
    /// End of the current span.
    span_end: Cell<Moment>,
    usual: Cell<Nanos>,
}

impl Default for AnswerTime {
    fn default() -> Self {
        Self {
            median: Cell::new(Nanos::ZERO),
            least: Cell::new([NONE; SPANS]),
            span_end: Cell::new(Moment::EPOCH),
            usual: Cell::new(Nanos::ZERO),
        }
    }
}

impl AnswerTime {
    /// The usual time, if it is known.
    pub(super) fn usual(&self) -> Option<Nanos> {
        Some(self.usual.get()).filter(|usual| *usual > Nanos::ZERO)
    }

    /// Sets the expected time, which applies until the first response.
    pub(super) fn expect(&self, answer: Nanos) {
        if self.median.get() == Nanos::ZERO {
            self.median.set(answer);
            self.usual.set(answer);
        }
    }

    /// Records a response of this duration that is complete now. The `first` on its connection
    /// counts only if it is the only one so far, because it includes the target's work for a new
    /// connection.
    pub(super) fn record(&self, answer: Nanos, first: bool, now: Moment) {
        let answer = answer.max(Nanos::new(1));
        self.expect(answer);
        if now >= self.span_end.get() {
            self.begin_span(now);
        }
        if !first {
            self.median.set(step_towards(self.median.get(), answer));
        }
        if self.median.get() < self.usual.get() {
            self.note(self.median.get());
        }
    }

    fn begin_span(&self, now: Moment) {
        let ended = now.since(self.span_end.get()).as_u64() / SPAN.as_u64() + 1;
        let mut least = self.least.get();
        let aged = usize::try_from(ended).map_or(SPANS, |ended| ended.min(SPANS));
        least.rotate_left(aged % SPANS);
        least[SPANS - aged..].fill(NONE);
        self.least.set(least);
        self.span_end.set(now + SPAN);
        // The median from before the pause still applies: the pause must not end with the first
        // responses after it.
        self.note(self.median.get());
    }

    /// Records a median of the current span.
    fn note(&self, median: Nanos) {
        let mut least = self.least.get();
        least[SPANS - 1] = least[SPANS - 1].min(median);
        self.least.set(least);
        self.usual.set(least.into_iter().min().unwrap_or(median));
    }
}

/// Moves an eighth of the way towards each value, to follow the median rather than single slow
/// responses.
fn step_towards(median: Nanos, value: Nanos) -> Nanos {
    let step = Nanos::new(median.as_u64() / 8 + 1);
    if value > median { median + step } else { median.saturating_sub(step).max(Nanos::new(1)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Moment {
        Moment::EPOCH + Nanos::from_millis(ms)
    }

    /// One response per millisecond.
    fn answers(time: &AnswerTime, ms: std::ops::Range<u64>, took: Nanos) {
        ms.for_each(|ms| time.record(took, false, at(ms)));
    }

    fn usual_us(time: &AnswerTime) -> u64 {
        time.usual().unwrap_or_default().as_u64() / 1_000
    }

    #[test]
    fn one_long_answer_changes_little() {
        let time = AnswerTime::default();
        answers(&time, 0..10, Nanos::from_micros(100));
        time.record(Nanos::from_secs(1), false, at(10));
        assert!(usual_us(&time) <= 112, "{time:?}");
    }

    #[test]
    fn what_piles_up_in_a_pause_does_not_count() {
        let time = AnswerTime::default();
        answers(&time, 0..1_000, Nanos::from_micros(100));
        for pause_s in [1, 3, 10] {
            let end = 60_000 * pause_s;
            answers(&time, end - 4_000..end, Nanos::from_micros(100));
            // All requests that arrived meanwhile are answered within a second.
            let end = end + 1_000 * pause_s;
            answers(&time, end..end + 900, Nanos::from_secs(pause_s));
            assert!(usual_us(&time) < 200, "{pause_s} s: {time:?}");
        }
    }

    #[test]
    fn a_target_that_becomes_slow_is_slow_after_some_seconds() {
        let time = AnswerTime::default();
        answers(&time, 0..1_000, Nanos::from_micros(100));
        answers(&time, 1_000..3_900, Nanos::from_millis(50));
        assert!(usual_us(&time) < 200);
        answers(&time, 3_900..6_100, Nanos::from_millis(50));
        assert!((30_000..80_000).contains(&usual_us(&time)), "{time:?}");
        answers(&time, 6_100..6_200, Nanos::from_micros(100));
        assert!(usual_us(&time) < 200, "it is fast again at once: {time:?}");
    }

    #[test]
    fn a_first_answer_counts_only_alone() {
        let time = AnswerTime::default();
        assert_eq!(time.usual(), None);
        time.record(Nanos::from_millis(9), true, at(0));
        assert_eq!(time.usual(), Some(Nanos::from_millis(9)));
        time.record(Nanos::from_micros(1), true, at(1));
        assert_eq!(time.usual(), Some(Nanos::from_millis(9)));
        time.expect(Nanos::from_secs(1));
        assert_eq!(time.usual(), Some(Nanos::from_millis(9)));
    }
}
