//! Runs of the engine: a plan in, the completed run out.

use std::io;
use std::sync::{Arc, Mutex};

use plimsoll_engine::{
    Control, EngineError, Progress, Run, RunResult, SampleBatch, SampleSink, WatchedProcess,
};
use plimsoll_measure::{IdSeed, Moment, MonotonicClock, Nanos, Sample};
use plimsoll_metrics::{Accounting, Distribution, GroupStats, Metric, MetricsError, RunSummary};
use plimsoll_profile::Plan;

/// Sees the progress of a run about once a second.
pub type Observer<'o> = &'o mut (dyn FnMut(&Progress<'_>) + Send);

/// Options of a run that are not part of its plan.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Keeps every sample in memory.
    pub keep_samples: bool,
    /// Processes whose CPU time is measured.
    pub watched: Vec<WatchedProcess>,
}

/// A run that is over.
#[derive(Debug)]
pub struct CompletedRun {
    /// The engine's result.
    pub result: RunResult,
    /// Every sample, if they were kept.
    pub samples: Vec<Sample>,
    /// The seed of the ids of its conversations.
    pub ids: IdSeed,
    clock: MonotonicClock,
}

/// Runs a plan to its end, or until `control` interrupts it.
///
/// # Errors
/// Where the engine cannot carry out the load.
pub fn execute(
    plan: Plan,
    options: RunOptions,
    control: &Control,
    observe: Observer<'_>,
) -> Result<CompletedRun, EngineError> {
    let mut run = Run::prepare(plan)?;
    let ids = run.plan().id_seed();
    run.watch(options.watched);
    let (clock, kept) = (run.clock(), KeptSamples::default());
    let sink = options.keep_samples.then(|| -> Box<dyn SampleSink> { Box::new(kept.clone()) });
    let result = run.start(sink, control, observe)?;
    Ok(CompletedRun { result, samples: kept.take(), ids, clock })
}

impl CompletedRun {
    /// Everything that was counted, warm-up included.
    pub fn total(&self) -> GroupStats {
        self.result.snapshot.total(|_| true)
    }

    /// The counts of all requests, by outcome.
    pub fn accounting(&self) -> Accounting {
        self.total().accounting()
    }

    /// A quantile over all requests as reports show it, in microseconds; not a number without
    /// values.
    pub fn quantile_us(&self, metric: Metric, q: f64) -> f64 {
        let total = self.total();
        let value = total.distribution(metric).and_then(|d| d.nearest_rank(q));
        value.map_or(f64::NAN, Nanos::as_micros_f64)
    }

    /// A mean over all requests as reports show it, in microseconds; not a number without values.
    pub fn mean_us(&self, metric: Metric) -> f64 {
        let total = self.total();
        let value = total.distribution(metric).and_then(Distribution::mean);
        value.map_or(f64::NAN, Nanos::as_micros_f64)
    }

    /// Wall-clock time at which a stage began, in nanoseconds since 1970 UTC.
    pub fn stage_began(&self, stage: usize) -> u64 {
        let start = self.result.metadata.stages.get(stage).map_or(0.0, |stage| stage.start_s);
        self.clock.unix_nanos(Moment::EPOCH + Nanos::from_secs_f64(start))
    }

    /// The run as reports have it, with its validity.
    ///
    /// # Errors
    /// Where a histogram cannot be encoded.
    pub fn summary(&self) -> Result<RunSummary, MetricsError> {
        let (facts, health) = (self.result.metadata.clone(), self.result.health.clone());
        let summary = RunSummary::build(facts, health, &self.result.snapshot, &[])?;
        Ok(RunSummary { processes: self.result.processes.clone(), ..summary })
    }
}

/// Keeps every sample in memory.
#[derive(Clone, Default)]
struct KeptSamples(Arc<Mutex<Vec<Sample>>>);

impl KeptSamples {
    fn take(&self) -> Vec<Sample> {
        self.0.lock().map(|mut samples| std::mem::take(&mut *samples)).unwrap_or_default()
    }
}

impl SampleSink for KeptSamples {
    fn write(&mut self, batch: &SampleBatch) -> io::Result<()> {
        let mut kept = self.0.lock().map_err(|_| io::Error::other("a reader panicked"))?;
        kept.extend_from_slice(&batch.samples);
        Ok(())
    }
}
