//! Runs of the engine: a plan in, the completed run out.

use std::io;
use std::sync::{Arc, Mutex};

use plimsoll_engine::{
    BlockSink, Control, EngineError, Progress, Run, RunResult, SampleBatch, SampleSink,
    WatchedProcess,
};
use plimsoll_measure::{Block, IdSeed, Moment, MonotonicClock, Nanos, Sample};
use plimsoll_metrics::{Accounting, Distribution, GroupStats, Metric, MetricsError, RunSummary};
use plimsoll_profile::Plan;
use plimsoll_versus::Facts;

use crate::facts::{self, After};
use crate::watcher::RunWatcher;

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
    start(Run::prepare(plan)?, options, control, observe)
}

/// The same, seen by a watcher. Its end is the caller's to tell, who has the summary.
///
/// # Errors
/// Where the engine cannot carry out the load.
pub fn execute_watched(
    plan: Plan,
    options: RunOptions,
    control: &Control,
    watcher: &mut dyn RunWatcher,
) -> Result<CompletedRun, EngineError> {
    let run = Run::prepare(plan)?;
    watcher.begin(run.metadata());
    start(run, options, control, &mut |progress| watcher.interval(progress))
}

fn start(
    mut run: Run,
    options: RunOptions,
    control: &Control,
    observe: &mut dyn FnMut(&Progress<'_>),
) -> Result<CompletedRun, EngineError> {
    let ids = run.plan().id_seed();
    run.watch(options.watched);
    let (clock, kept) = (run.clock(), KeptSamples::default());
    let sink = options.keep_samples.then(|| -> Box<dyn SampleSink> { Box::new(kept.clone()) });
    let result = run.start(sink, control, observe)?;
    Ok(CompletedRun { result, samples: kept.take(), ids, clock })
}

/// A comparison that is over.
#[derive(Debug)]
pub struct CompletedComparison {
    /// Its run.
    pub run: CompletedRun,
    /// Every block that counts.
    pub blocks: Vec<Block>,
    /// What was known before the load.
    known: Facts,
}

/// Carries out a plan that compares targets, to its end or until `control` interrupts it. Single
/// requests come first, which show how the targets differ. A watcher sees it go on.
///
/// # Errors
/// Where the engine cannot carry out the load.
pub fn execute_comparison(
    plan: Plan,
    watched: Vec<WatchedProcess>,
    control: &Control,
    watcher: &mut dyn RunWatcher,
) -> Result<CompletedComparison, EngineError> {
    let mut run = Run::prepare(plan)?;
    let probed = run.probe()?;
    let versus = run.plan().versus.as_ref();
    let before = |versus| facts::before(&run, versus, Some(&probed), &[]);
    let known = versus.map(before).unwrap_or_default();
    let (ids, clock, kept) = (run.plan().id_seed(), run.clock(), KeptBlocks::default());
    run.watch(watched);
    run.record_blocks(Box::new(kept.clone()));
    watcher.begin(run.metadata());
    let result = run.start(None, control, &mut |progress| watcher.interval(progress))?;
    let run = CompletedRun { result, samples: Vec::new(), ids, clock };
    Ok(CompletedComparison { run, blocks: kept.take(), known })
}

impl CompletedComparison {
    /// What its judge must know besides the blocks.
    pub fn facts(&self, summary: &RunSummary) -> Facts {
        let mut facts = self.known.clone();
        let result = &self.run.result;
        let (taken_out, tracks) = (&*result.taken_out, &*result.tracks);
        facts::complete(&mut facts, &After { summary, taken_out, tracks, one_in: 1 });
        facts
    }
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
        let summary = RunSummary::build(facts, health, &self.result.snapshot, &[])?
            .with_tasks(&self.result.tasks)?;
        let (processes, resources) = (self.result.processes.clone(), self.result.resources.clone());
        Ok(RunSummary { processes, resources, ..summary })
    }
}

/// Keeps every sample in memory, in batches: one list would be copied for milliseconds whenever it
/// grows, on a core that may be the generator's.
#[derive(Clone, Default)]
struct KeptSamples(Arc<Mutex<Vec<Vec<Sample>>>>);

impl KeptSamples {
    fn take(&self) -> Vec<Sample> {
        self.0.lock().map(|mut batches| std::mem::take(&mut *batches).concat()).unwrap_or_default()
    }
}

impl SampleSink for KeptSamples {
    fn write(&mut self, batch: &SampleBatch) -> io::Result<()> {
        let mut kept = self.0.lock().map_err(|_| io::Error::other("a reader panicked"))?;
        kept.push(batch.samples.clone());
        Ok(())
    }
}

/// Keeps every block in memory.
#[derive(Clone, Default)]
struct KeptBlocks(Arc<Mutex<Vec<Block>>>);

impl KeptBlocks {
    fn take(&self) -> Vec<Block> {
        self.0.lock().map(|mut blocks| std::mem::take(&mut *blocks)).unwrap_or_default()
    }
}

impl BlockSink for KeptBlocks {
    fn write(&mut self, blocks: &[Block]) -> io::Result<()> {
        let mut kept = self.0.lock().map_err(|_| io::Error::other("a reader panicked"))?;
        kept.extend_from_slice(blocks);
        Ok(())
    }
}
