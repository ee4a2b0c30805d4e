//! How many turns are under way, at every instant.

use plimsoll_measure::{Moment, StageId};

/// Turns under way, from their schedule to their record, and the integral over time by stage: what Little's
/// law needs. Counted by the clock as it stands, independent of the times in the samples.
#[derive(Debug)]
pub(crate) struct Presence {
    now: u64,
    /// Up to here the integral has been taken.
    since: Moment,
    stages: Vec<StagePresence>,
}

/// What is known of one stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StagePresence {
    /// End of the stage.
    end: Moment,
    /// Turns times nanoseconds.
    pub(crate) area: u128,
    /// Most turns at once.
    pub(crate) peak: u64,
}

impl Presence {
    /// Nothing under way; stages begin at `start` and end at `ends`.
    pub(crate) fn new(start: Moment, ends: impl IntoIterator<Item = Moment>) -> Self {
        let stages = ends.into_iter().map(|end| StagePresence { end, ..StagePresence::default() });
        Self { now: 0, since: start, stages: stages.collect() }
    }

    /// Turns under way.
    pub(crate) const fn now(&self) -> u64 {
        self.now
    }

    /// By stage, in order.
    pub(crate) fn stages(&self) -> &[StagePresence] {
        &self.stages
    }

    /// One more from `at` on.
    pub(crate) fn enter(&mut self, at: Moment) {
        self.advance(at);
        self.now += 1;
        let now = self.now;
        if let Some(stage) = self.current() {
            stage.peak = stage.peak.max(now);
        }
    }

    /// One less from `at` on.
    pub(crate) fn leave(&mut self, at: Moment) {
        self.advance(at);
        self.now = self.now.saturating_sub(1);
    }

    /// Takes the integral up to `at`, each stage its own part.
    pub(crate) fn advance(&mut self, at: Moment) {
        let now = self.now;
        while self.since < at {
            let Some(stage) = self.current() else { break };
            let until = at.min(stage.end);
            let from = std::mem::replace(&mut self.since, until);
            if let Some(stage) = self.stage_at(from) {
                stage.area += u128::from(now) * u128::from(until.since(from).as_u64());
            }
            // Requests that are carried over count towards the next stage's peak.
            if let Some(stage) = self.current() {
                stage.peak = stage.peak.max(now);
            }
        }
        self.since = self.since.max(at);
    }

    fn current(&mut self) -> Option<&mut StagePresence> {
        self.stage_at(self.since)
    }

    fn stage_at(&mut self, moment: Moment) -> Option<&mut StagePresence> {
        let index = self.stages.partition_point(|stage| stage.end <= moment);
        self.stages.get_mut(index)
    }

    /// Adds up what several workers saw. The sum of their peaks bounds the peak from above.
    pub(crate) fn sum(parts: &[Vec<StagePresence>], stage: StageId) -> StagePresence {
        let parts = parts.iter().filter_map(|stages| stages.get(stage.index()));
        parts.fold(StagePresence::default(), |sum, part| StagePresence {
            end: part.end,
            area: sum.area + part.area,
            peak: sum.peak + part.peak,
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
    fn the_integral_is_split_where_one_stage_ends_and_the_next_begins() {
        let mut presence = Presence::new(at(0), [at(100), at(200)]);
        presence.enter(at(10));
        presence.enter(at(60));
        presence.leave(at(150));
        presence.leave(at(250));
        let areas: Vec<_> =
            presence.stages().iter().map(|stage| (stage.area / 1_000_000, stage.peak)).collect();
        // 50 ms x 1 + 40 ms x 2, then 50 ms x 2 + 50 ms x 1; what is after the last stage counts nowhere.
        assert_eq!(areas, [(130, 2), (150, 2)]);
        assert_eq!(presence.now(), 0);
    }
}
