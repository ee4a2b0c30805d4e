//! How long a pause of the generator disturbs the target after its end.
//!
//! The arrivals that were due in the pause come in one burst. It queues in the target, and delays
//! requests that the generator sent in time. A *disturbed interval* lasts from the end of the pause
//! until the worker has as few requests in flight as in a quarter of the time without pauses, and
//! ten times as long as the pause at most (`docs/adr/0115-one-measurement-error.md`). The time that
//! an affected request spent in such intervals counts in full as measurement error.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use plimsoll_measure::{Moment, Nanos, Sample};
use plimsoll_transport::BEAT;

/// Maximum time for which a pause disturbs the target after its end, in multiples of its length.
const LONGEST: u64 = 10;
/// Numbers in flight that are counted separately.
const MOST_LEVELS: usize = 1 << 16;

/// The disturbed intervals of all workers.
#[derive(Debug, Default)]
pub(crate) struct Disturbances {
    /// The end of the last one.
    until: AtomicU64,
    /// In the order of time, without overlap.
    intervals: Mutex<Vec<(Moment, Moment)>>,
}

impl Disturbances {
    fn intervals(&self) -> MutexGuard<'_, Vec<(Moment, Moment)>> {
        self.intervals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an interval, joined with those that it touches.
    fn add(&self, mut from: Moment, mut to: Moment) {
        let mut intervals = self.intervals();
        while let Some((start, end)) = intervals.pop_if(|(_, end)| *end >= from) {
            (from, to) = (from.min(start), to.max(end));
        }
        intervals.push((from, to));
        self.until.fetch_max(to.as_nanos(), Ordering::Relaxed);
    }

    /// Adds the time of a request in disturbed intervals to the generator's part of it.
    #[inline]
    pub(crate) fn mark(&self, sample: &mut Sample) {
        if let Some(from) = sample.timeline.dispatched
            && from.as_nanos() < self.until.load(Ordering::Relaxed)
        {
            self.mark_affected(sample, from);
        }
    }

    #[cold]
    fn mark_affected(&self, sample: &mut Sample, from: Moment) {
        let intervals = self.intervals();
        let disturbed = |to: Moment| -> Nanos {
            let recent = intervals.iter().rev().take_while(|(_, end)| *end > from);
            recent.map(|&(start, end)| end.min(to).since(start.max(from))).sum()
        };
        let (line, own) = (&sample.timeline, &mut sample.generator);
        for (part, at) in [
            (&mut own.first_byte, line.first_byte),
            (&mut own.first_token, line.first_token),
            (&mut own.first_output_token, line.first_output_token),
            (&mut own.last_token, line.last_token),
            (&mut own.finished, line.finished),
        ] {
            *part = at.map_or(*part, |at| disturbed(at).max(*part));
        }
        sample.affected = line.finished.is_some_and(|at| disturbed(at) > Nanos::ZERO);
        sample.generator = own.within(line);
    }
}

/// The pauses of one worker, and its requests in flight during them.
#[derive(Debug, Default)]
pub(crate) struct Aftermath {
    /// Beats by the number in flight, outside of disturbed intervals.
    levels: Vec<u32>,
    /// Arrivals that were scheduled late since the last beat.
    late: u64,
    state: State,
}

/// Where the worker is in a disturbed interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Quiet,
    /// A pause has ended, and its arrivals come now.
    Paused { from: Moment, to: Moment },
    /// They queue in the target, until `limit` at most.
    Disturbed { limit: Moment, level: u64 },
}

impl Aftermath {
    /// An arrival is scheduled that was due in a pause.
    pub(crate) const fn late_arrival(&mut self) {
        self.late += 1;
    }

    /// No request was in flight for this time.
    pub(crate) fn idle(&mut self, time: Nanos) {
        let beats = time.as_u64() / BEAT.as_u64();
        self.count(0, u32::try_from(beats).unwrap_or(u32::MAX));
    }

    /// A pause has ended.
    pub(crate) fn paused(&mut self, from: Moment, to: Moment) {
        let from = if let State::Paused { from: first, .. } = self.state { first } else { from };
        self.state = State::Paused { from, to };
    }

    /// Records the number of requests in flight at a beat.
    pub(crate) fn beat(&mut self, now: Moment, in_flight: u64, all: &Disturbances) {
        match self.state {
            State::Quiet => {
                self.late = 0;
                self.count(in_flight, 1);
            }
            State::Paused { from, to } => {
                let level = self.lower_quartile();
                if self.is_burst(level) {
                    let length = to.since(from).as_u64();
                    let limit = to + Nanos::new(length.saturating_mul(LONGEST));
                    self.state = State::Disturbed { limit, level };
                    all.add(to, now + BEAT);
                } else if now > to {
                    self.state = State::Quiet;
                }
            }
            State::Disturbed { limit, level } if in_flight > level && now < limit => {
                all.add(now, now + BEAT);
            }
            State::Disturbed { .. } => self.state = State::Quiet,
        }
    }

    /// Whether the burst exceeds the usual variation of the requests in flight.
    const fn is_burst(&self, level: u64) -> bool {
        self.late > 1 && self.late.saturating_mul(self.late) > level
    }

    fn count(&mut self, in_flight: u64, beats: u32) {
        let level = usize::try_from(in_flight).unwrap_or(MOST_LEVELS).min(MOST_LEVELS);
        if self.levels.len() <= level {
            self.levels.resize(level + 1, 0);
        }
        self.levels[level] = self.levels[level].saturating_add(beats);
    }

    /// At most as many are in flight at a quarter of the beats.
    fn lower_quartile(&self) -> u64 {
        let all: u64 = self.levels.iter().map(|beats| u64::from(*beats)).sum();
        let mut below = 0;
        let level = self.levels.iter().position(|beats| {
            below += u64::from(*beats);
            below * 4 >= all
        });
        level.unwrap_or(0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Moment {
        Moment::EPOCH + Nanos::from_millis(ms)
    }

    /// A worker with four requests in flight at every beat of 100 ms.
    fn steady() -> Aftermath {
        let mut aftermath = Aftermath::default();
        let all = Disturbances::default();
        (0..50).for_each(|beat| aftermath.beat(at(beat * 2), 4, &all));
        aftermath
    }

    /// The disturbed interval after a pause from 100 to 150 ms with so many late arrivals, where
    /// the number in flight falls by one each 10 ms.
    fn after_pause(late: u64, mut in_flight: u64) -> Vec<(Moment, Moment)> {
        let (mut aftermath, all) = (steady(), Disturbances::default());
        aftermath.paused(at(100), at(150));
        (0..late).for_each(|_| aftermath.late_arrival());
        for beat in 0..500 {
            aftermath.beat(at(150 + beat * 2), in_flight, &all);
            in_flight -= u64::from(beat % 5 == 4 && in_flight > 0);
        }
        all.intervals.into_inner().unwrap()
    }

    #[test]
    fn a_pause_disturbs_until_its_burst_is_worked_off() {
        for (late, in_flight, until) in [
            // From 14 to 4 in flight in 100 ms.
            (10, 14, Some(250)),
            // Ten times 50 ms, although more are in flight.
            (100, 104, Some(650)),
            // Within the usual variation.
            (2, 6, None),
            (0, 14, None),
        ] {
            let found = after_pause(late, in_flight);
            let expected = until.map(|until| (at(150), at(until)));
            assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{late} late");
        }
    }

    #[test]
    fn idle_time_counts_as_nothing_in_flight() {
        let mut aftermath = steady();
        assert_eq!(aftermath.lower_quartile(), 4);
        aftermath.idle(Nanos::from_millis(40));
        assert_eq!(aftermath.lower_quartile(), 0);
    }

    fn request(dispatched: u64, finished: u64) -> Sample {
        let mut sample = Sample::unsent(at(dispatched));
        sample.timeline.dispatched = Some(at(dispatched));
        sample.timeline.first_byte = Some(at(dispatched + 10));
        sample.timeline.finished = Some(at(finished));
        sample
    }

    #[test]
    fn the_time_of_a_request_in_disturbed_intervals_may_be_the_generators() {
        let all = Disturbances::default();
        for (from, to) in [(100, 150), (140, 200), (400, 420)] {
            all.add(at(from), at(to));
        }
        for (name, [dispatched, finished], affected, [first_byte, whole]) in [
            ("before", [20, 90], false, [0, 0]),
            ("into the first", [80, 120], true, [0, 20]),
            ("within it", [110, 150], true, [10, 40]),
            ("across both", [50, 500], true, [0, 120]),
            ("between", [200, 390], false, [0, 0]),
            ("after", [420, 430], false, [0, 0]),
        ] {
            let mut sample = request(dispatched, finished);
            all.mark(&mut sample);
            assert_eq!(sample.affected, affected, "{name}");
            let own = sample.generator;
            let expected = [first_byte, whole].map(Nanos::from_millis);
            assert_eq!([own.first_byte, own.finished], expected, "{name}");
        }
    }
}
