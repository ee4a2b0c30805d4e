//! A run that is over: its samples, and what they say beside the server's own record.

use std::collections::HashMap;

use plimsoll_engine::RunResult;
use plimsoll_measure::{Moment, MonotonicClock, Sample, Seed};
use plimsoll_metrics::{Accounting, GroupStats, Metric, RunSummary};
use plimsoll_mock::LogRecord;

use crate::error::CalibrateError;

/// A run that is over.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) result: RunResult,
    pub(crate) samples: Vec<Sample>,
    pub(crate) seed: Seed,
    clock: MonotonicClock,
}

impl Ran {
    pub(crate) const fn new(
        result: RunResult,
        samples: Vec<Sample>,
        seed: Seed,
        clock: MonotonicClock,
    ) -> Self {
        Self { result, samples, seed, clock }
    }

    /// Everything that was counted, warm-up included.
    pub(crate) fn total(&self) -> GroupStats {
        self.result.snapshot.total(|_| true)
    }

    pub(crate) fn accounting(&self) -> Accounting {
        self.total().accounting()
    }

    /// A quantile as reports show it, in microseconds; not a number without values.
    pub(crate) fn quantile_us(&self, metric: Metric, q: f64) -> f64 {
        let total = self.total();
        let value = total.distribution(metric).and_then(|d| d.nearest_rank(q));
        value.map_or(f64::NAN, plimsoll_measure::Nanos::as_micros_f64)
    }

    /// A mean as reports show it, in microseconds; not a number without values.
    pub(crate) fn mean_us(&self, metric: Metric) -> f64 {
        let total = self.total();
        let value = total.distribution(metric).and_then(plimsoll_metrics::Distribution::mean);
        value.map_or(f64::NAN, plimsoll_measure::Nanos::as_micros_f64)
    }

    /// Wall-clock time of a moment, in nanoseconds since 1970 UTC.
    pub(crate) const fn wall(&self, moment: Moment) -> u64 {
        self.clock.unix_nanos(moment)
    }

    /// Wall-clock time at which a stage began, in nanoseconds since 1970 UTC.
    pub(crate) fn stage_began(&self, stage: usize) -> u64 {
        let start = self.result.metadata.stages.get(stage).map_or(0.0, |stage| stage.start_s);
        self.wall(Moment::EPOCH + plimsoll_measure::Nanos::from_secs_f64(start))
    }

    /// The run as reports have it, judged.
    pub(crate) fn summary(&self) -> Result<RunSummary, CalibrateError> {
        let (facts, health) = (self.result.metadata.clone(), self.result.health.clone());
        Ok(RunSummary::build(facts, health, &self.result.snapshot, &[])?)
    }

    /// Each sample of a dialect with the mock's record of the same request.
    pub(crate) fn joined<'l>(&self, log: &'l [LogRecord]) -> Vec<(&Sample, &'l LogRecord)> {
        let by_id: HashMap<&str, &LogRecord> =
            log.iter().filter_map(|record| Some((record.request_id.as_deref()?, record))).collect();
        let id = |sample: &Sample| {
            let conversation = plimsoll_workload::conversation_id(self.seed, sample.conversation);
            format!("{}-{}", conversation.as_str(), sample.turn)
        };
        let pair = |sample| Some((sample, *by_id.get(id(sample).as_str())?));
        self.samples.iter().filter_map(pair).collect()
    }
}

/// How long the mock took for a request, in microseconds: from its arrival, by the kernel's note, to the return of the
/// `write` of the last byte of the answer.
pub(crate) fn true_service_us(record: &LogRecord) -> Option<f64> {
    let last = record.chunks.last()?.written;
    Some(last.checked_sub(record.arrived)? as f64 / 1e3)
}
