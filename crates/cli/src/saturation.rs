//! Ends a sweep when the throughput no longer grows from level to level.

use plimsoll_engine::Progress;
use plimsoll_metrics::{InstrumentHealth, RunMetadata, RunSummary};
use plimsoll_report::levels::{RateFigure, throughput};

/// A level that gives less than this more than the one before, beyond their intervals, shows
/// saturation.
const LEAST_GAIN: f64 = 1.05;
/// A level of which a larger share fails is the last.
const MOST_FAILED: f64 = 0.1;

/// Looks at each level of a sweep in the last second of it.
pub(crate) struct Saturation {
    metadata: RunMetadata,
    /// The place of the level that is under way.
    level: usize,
    before: RateFigure,
}

impl Saturation {
    pub(crate) fn new(metadata: RunMetadata) -> Self {
        Self { metadata, level: 0, before: RateFigure::default() }
    }

    /// Why the sweep is to end, if it is.
    pub(crate) fn reason(&mut self, progress: &Progress<'_>) -> Option<&'static str> {
        let stage = self.metadata.stages.get(self.level)?;
        let origin = self.metadata.stages.first()?.start_s;
        let left = stage.start_s + stage.duration_s - origin - progress.elapsed.as_secs_f64();
        if left > progress.interval_length.as_secs_f64() {
            return None;
        }
        self.level += 1;
        if stage.warmup {
            return None;
        }
        let mut counted = progress.before.clone();
        counted.append(progress.cells.clone());
        let health = InstrumentHealth::default();
        let summary = RunSummary::build(self.metadata.clone(), health, &counted, &[]).ok()?;
        let group = summary
            .results
            .by_stage
            .iter()
            .find(|group| group.stage.as_ref() == Some(&stage.name))?;
        let (now, counters) = (throughput(group).unwrap_or_default(), &group.counters);
        if counters.unexpected as f64 > counters.answered() as f64 * MOST_FAILED {
            return Some("more than 10 % of the requests failed");
        }
        let may_grow = may_rise(&self.before, &now);
        self.before = now;
        (!may_grow).then_some("throughput stopped growing")
    }
}

/// Whether a level may give more than the one before, within the limits of both.
fn may_rise(before: &RateFigure, now: &RateFigure) -> bool {
    let high = now.high.unwrap_or(f64::INFINITY);
    high > 0.0 && high >= before.low * LEAST_GAIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_goes_on_while_two_levels_are_not_told_apart() {
        let figure = |[low, high]: [f64; 2]| RateFigure { value: low, low, high: Some(high) };
        for (before, now, goes_on) in [
            ([10.0, 10.0], [10.6, 10.6], true),
            ([10.0, 10.0], [10.4, 10.4], false),
            ([6.0, 18.0], [12.0, 12.0], true),
            ([11.0, 13.0], [9.0, 12.0], true),
            ([11.0, 13.0], [9.0, 11.0], false),
            ([0.0, 0.0], [0.0, 0.0], false),
        ] {
            assert_eq!(may_rise(&figure(before), &figure(now)), goes_on, "{before:?} {now:?}");
        }
    }
}
