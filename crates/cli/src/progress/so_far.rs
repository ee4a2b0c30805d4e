//! What the verdict would be if the run ended now.

use plimsoll_engine::Progress;
use plimsoll_live::SoFar;
use plimsoll_measure::{Clock as _, MonotonicClock, Nanos};
use plimsoll_metrics::{
    Counters, InstrumentHealth, Judgement, Level, Limit, RunEnd, RunMetadata, RunSummary,
    StageInfo, ThresholdResult,
};

/// Time between two looks, at least.
const LOOK: Nanos = Nanos::from_secs(2);
/// A look takes at most one part in so many of the time: it must not take CPU from the load.
const SHARE: u64 = 200;

/// Judges what there is, by the rules of the report.
pub(super) struct Judge {
    metadata: RunMetadata,
    thresholds: Vec<Limit>,
    clock: MonotonicClock,
    /// When the next look is due, after the run's start.
    next: Nanos,
}

impl Judge {
    pub(super) fn new(mut metadata: RunMetadata, thresholds: Vec<Limit>) -> Self {
        metadata.run.ended = RunEnd::Interrupted;
        Self { metadata, thresholds, clock: MonotonicClock::start(), next: LOOK }
    }

    /// Looks, if it is time. What happened in the last second is not in it.
    pub(super) fn look(&mut self, progress: &Progress<'_>) -> Option<SoFar> {
        if progress.elapsed < self.next || progress.before.cells().next().is_none() {
            return None;
        }
        let began = self.clock.now();
        let seen = progress.elapsed.saturating_sub(progress.interval_length);
        let metadata = until(&self.metadata, seen.as_secs_f64());
        let health = InstrumentHealth::default();
        let summary = RunSummary::build(metadata, health, progress.before, &self.thresholds).ok();
        let took = self.clock.now().since(began).as_u64();
        self.next = progress.elapsed + LOOK.max(Nanos::new(took.saturating_mul(SHARE)));
        summary.map(|summary| SoFar {
            invalid: invalid(&summary),
            thresholds: still_open(summary.thresholds, &summary.results.total.counters),
        })
    }
}

/// The thresholds without failures for want of answers: requests in flight lower the share of good
/// ones, and may still get one.
fn still_open(mut thresholds: Vec<ThresholdResult>, total: &Counters) -> Vec<ThresholdResult> {
    let over = total.ended() + total.in_flight + total.never_sent;
    let shares = thresholds.iter_mut().filter(|found| found.metric.starts_with("success_rate"));
    let broken = shares.filter(|found| found.judgement == Judgement::Fail);
    for found in broken.filter(|_| total.scheduled > over) {
        found.judgement = Judgement::Inconclusive("requests are in flight".to_owned());
    }
    thresholds
}

/// The stages as they would be if the run had ended at `seconds`.
fn until(metadata: &RunMetadata, seconds: f64) -> RunMetadata {
    RunMetadata {
        stages: metadata
            .stages
            .iter()
            .map(|stage: &StageInfo| StageInfo {
                duration_s: stage.duration_s.min((seconds - stage.start_s).max(0.0)),
                ..stage.clone()
            })
            .collect(),
        ..metadata.clone()
    }
}

/// What the generator did to headline figures, and its own errors. Requests in flight are not
/// accounted for before the end, which means nothing.
fn invalid(summary: &RunSummary) -> Vec<String> {
    let invalid = summary.of_level(Level::Invalid);
    let own = invalid.filter(|finding| matches!(finding.code, 101..=103));
    own.map(|finding| format!("{} {}", finding.text(), finding.fix())).collect()
}

#[cfg(test)]
mod tests {
    use plimsoll_metrics::Finding;

    use super::*;

    #[test]
    fn a_stage_that_has_not_begun_or_not_ended_is_as_long_as_it_lasted() {
        let stage = |start_s, duration_s| StageInfo { start_s, duration_s, ..StageInfo::default() };
        let stages = vec![stage(0.0, 2.0), stage(2.0, 10.0), stage(12.0, 5.0)];
        let metadata = RunMetadata { stages, ..RunMetadata::default() };
        let lengths = |seconds| -> Vec<f64> {
            until(&metadata, seconds).stages.iter().map(|stage| stage.duration_s).collect()
        };
        assert_eq!(lengths(5.0), [2.0, 3.0, 0.0]);
        assert_eq!(lengths(99.0), [2.0, 10.0, 5.0]);
    }

    #[test]
    fn requests_in_flight_break_no_share_of_good_answers() {
        let judged = |metric: &str, scheduled: u64| {
            let threshold = ThresholdResult {
                metric: metric.to_owned(),
                expression: "rate>99%".to_owned(),
                measured: Some(0.9),
                generator: None,
                unit: plimsoll_metrics::Unit::Share,
                judgement: Judgement::Fail,
                level: None,
            };
            let total = Counters { scheduled, completed: 90, ..Counters::default() };
            still_open(vec![threshold], &total)[0].judgement == Judgement::Fail
        };
        assert!(!judged("success_rate", 100) && judged("success_rate", 90));
        assert!(judged("error_rate", 100));
    }

    #[test]
    fn only_the_generators_own_part_makes_a_run_invalid_before_its_end() {
        let codes = [106, 102, 103];
        let findings = codes.map(|code| Finding::new(code).at(Level::Invalid)).into();
        let found = invalid(&RunSummary { findings, ..RunSummary::default() });
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(invalid(&RunSummary::default()).is_empty());
    }
}
