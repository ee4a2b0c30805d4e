//! The number of turns in flight, integrated over time.

use plimsoll_measure::{Moment, StageId};

/// Turns in flight, from their schedule to their record, and the integral over time by stage, for
/// Little's law. It is taken from the clock when a turn begins and ends, independent of the times
/// in the samples.
#[derive(Debug)]
pub(crate) struct InFlightIntegral {
    now: u64,
    /// Up to here the integral has been taken.
    since: Moment,
    stages: Vec<StageInFlight>,
}

/// Turns in flight by the second of the run for which they were intended.
#[derive(Debug, Default)]
pub(crate) struct OpenTurns(Vec<u32>);

impl OpenTurns {
    /// One turn more.
    pub(crate) fn inc(&mut self, second: usize) {
        if self.0.len() <= second {
            self.0.resize(second + 1, 0);
        }
        self.0[second] += 1;
    }

    /// One turn less.
    pub(crate) fn dec(&mut self, second: usize) {
        if let Some(open) = self.0.get_mut(second) {
            *open = open.saturating_sub(1);
        }
    }

    /// The second of the oldest one.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.0.iter().position(|open| *open > 0).map(|second| second as u64)
    }
}

/// Turns in flight during one stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StageInFlight {
    /// End of the stage.
    end: Moment,
    /// Integral over time, in turns times nanoseconds.
    pub(crate) area: u128,
    /// Most turns at once.
    pub(crate) peak: u64,
}

impl InFlightIntegral {
    /// No turn in flight; stages begin at `start` and end at `ends`.
    pub(crate) fn new(start: Moment, ends: impl IntoIterator<Item = Moment>) -> Self {
        let stages = ends.into_iter().map(|end| StageInFlight { end, ..StageInFlight::default() });
        Self { now: 0, since: start, stages: stages.collect() }
    }

    /// Turns in flight now.
    pub(crate) const fn now(&self) -> u64 {
        self.now
    }

    /// The stages in order.
    pub(crate) fn stages(&self) -> &[StageInFlight] {
        &self.stages
    }

    /// The load ends at `at`, before the stages do: requests in flight later count toward no stage.
    pub(crate) fn end_early(&mut self, at: Moment) {
        self.stages.iter_mut().for_each(|stage| stage.end = stage.end.min(at));
    }

    /// One turn more from `at` on.
    pub(crate) fn inc(&mut self, at: Moment) {
        self.advance(at);
        self.now += 1;
        let now = self.now;
        if let Some(stage) = self.current() {
            stage.peak = stage.peak.max(now);
        }
    }

    /// One turn less from `at` on.
    pub(crate) fn dec(&mut self, at: Moment) {
        self.advance(at);
        self.now = self.now.saturating_sub(1);
    }

    /// Takes the integral up to `at`, and assigns each stage its part.
    pub(crate) fn advance(&mut self, at: Moment) {
        let now = self.now;
        while self.since < at {
            let Some(stage) = self.current() else { break };
            let until = at.min(stage.end);
            let from = std::mem::replace(&mut self.since, until);
            if let Some(stage) = self.stage_at(from) {
                stage.area += u128::from(now) * u128::from(until.since(from).as_u64());
            }
            // Turns that are carried over count towards the next stage's peak.
            if let Some(stage) = self.current() {
                stage.peak = stage.peak.max(now);
            }
        }
        self.since = self.since.max(at);
    }

    fn current(&mut self) -> Option<&mut StageInFlight> {
        self.stage_at(self.since)
    }

    fn stage_at(&mut self, moment: Moment) -> Option<&mut StageInFlight> {
        let index = self.stages.partition_point(|stage| stage.end <= moment);
        self.stages.get_mut(index)
    }
}

impl StageInFlight {
    /// Adds up one stage over several workers. The sum of their peaks bounds the peak from above.
    pub(crate) fn sum<'w>(workers: impl Iterator<Item = &'w [Self]>, stage: StageId) -> Self {
        workers.filter_map(|stages| stages.get(stage.index())).fold(Self::default(), |sum, part| {
            Self { end: part.end, area: sum.area + part.area, peak: sum.peak + part.peak }
        })
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_measure::Nanos;

    use super::*;

    fn at(ms: u64) -> Moment {
        Moment::EPOCH + Nanos::from_millis(ms)
    }

    #[test]
    fn the_oldest_turn_is_that_of_the_earliest_second() {
        let mut open = OpenTurns::default();
        assert_eq!(open.oldest(), None);
        for second in [3, 1, 1, 7] {
            open.inc(second);
        }
        assert_eq!(open.oldest(), Some(1));
        for second in [1, 1, 3] {
            open.dec(second);
        }
        assert_eq!(open.oldest(), Some(7));
        open.dec(7);
        assert_eq!(open.oldest(), None);
    }

    #[test]
    fn the_integral_is_split_where_one_stage_ends_and_the_next_begins() {
        let mut in_flight = InFlightIntegral::new(at(0), [at(100), at(200)]);
        in_flight.inc(at(10));
        in_flight.inc(at(60));
        in_flight.dec(at(150));
        in_flight.dec(at(250));
        let areas: Vec<_> =
            in_flight.stages().iter().map(|stage| (stage.area / 1_000_000, stage.peak)).collect();
        // 50 ms x 1 + 40 ms x 2, then 50 ms x 2 + 50 ms x 1; time after the last stage counts
        // nowhere.
        assert_eq!(areas, [(130, 2), (150, 2)]);
        assert_eq!(in_flight.now(), 0);
    }
}
