//! The one way to run a plan: from its preparation to its summary.

use std::sync::{Arc, Mutex, PoisonError};
use std::{fmt, io};

use plimsoll_engine::{
    BlockSink, Control, EngineError, ProbeReport, Progress, Run, RunResult, SampleBatch,
    SampleSink, WatchedPage, WatchedProcess, discover,
};
use plimsoll_measure::{Block, IdSeed, Moment, MonotonicClock, Nanos, Sample, Stripe};
use plimsoll_metrics::{
    Counters, Distribution, GroupStats, Interruption, Limit, Metric, MetricsError, RunEnd,
    RunMetadata, RunSummary, ServerTrack, ShardState, TimeRecord,
};
use plimsoll_plan::Plan;
use plimsoll_run_files::{ShardSign, ShardStatus};

use crate::error::RunnerError;
use crate::folder::{
    BlockWatcher, CommonStop, CountsFile, PairFile, RowFile, RunDir, RunDirOptions, note_start,
    space_of_results,
};
use crate::secrets::{self, Secrets};
use crate::start::{CommonStart, StartWait, Waited};

/// A run that is being prepared.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let plan: plimsoll_plan::Plan = todo!();
/// use plimsoll_engine::Control;
/// use plimsoll_runner::Runner;
///
/// let finished = Runner::new(plan)?.run(&Control::new(), &mut |_| {})?;
/// let summary = finished.summary(&[])?;
/// # Ok(())
/// # }
/// ```
pub struct Runner {
    run: Run,
    metadata: RunMetadata,
    secrets: Secrets,
    probed: Option<ProbeReport>,
    folder: Option<RunDir>,
    samples: Option<Kept<Sample>>,
    sink: Option<Box<dyn SampleSink>>,
    blocks: Option<Kept<Block>>,
    block_watcher: Option<BlockWatcher>,
    start: Option<StartWait>,
    stop_on_loss: bool,
}

impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner").field("run", &self.metadata.run).finish_non_exhaustive()
    }
}

impl Runner {
    /// Prepares a plan, and asks tool servers for the parts that it leaves open.
    ///
    /// # Errors
    /// Same as [`Run::prepare`] and [`discover`].
    pub fn new(plan: Plan) -> Result<Self, RunnerError> {
        let secrets = Secrets::of(&plan);
        let run = Run::prepare(discover(plan)?)?;
        let mut metadata = run.metadata();
        metadata.unsent.clone_from(&run.plan().unsent);
        metadata.notes.clone_from(&run.plan().notes);
        metadata.insecure = run.plan().tls.insecure;
        Ok(Self {
            run,
            metadata,
            secrets,
            probed: None,
            folder: None,
            samples: None,
            sink: None,
            blocks: None,
            block_watcher: None,
            start: None,
            stop_on_loss: false,
        })
    }

    /// Measures CPU time and memory of processes on this host.
    pub fn watch(mut self, processes: Vec<WatchedProcess>) -> Self {
        self.run.watch(processes);
        self
    }

    /// The same for processes elsewhere, by their pages of metrics; and reads those of servers.
    pub fn watch_pages(mut self, pages: Vec<WatchedPage>, servers: Vec<WatchedPage>) -> Self {
        self.run.watch_pages(pages, servers);
        self
    }

    /// Names the process of this host that answers, as far as it is known.
    pub const fn target_is(mut self, pid: Option<u32>) -> Self {
        self.run.target_is(pid);
        self
    }

    /// Keeps every sample in memory.
    pub fn keep_samples(mut self) -> Self {
        self.samples = Some(Kept::default());
        self
    }

    /// Keeps every block of a comparison in memory.
    pub fn keep_blocks(mut self) -> Self {
        self.blocks = Some(Kept::default());
        self
    }

    /// Gives every sample to a sink.
    pub fn samples_to(mut self, sink: Box<dyn SampleSink>) -> Self {
        self.sink = Some(sink);
        self
    }

    /// Shows the blocks of a comparison that has a folder, while they come.
    pub fn watch_blocks(&mut self, watcher: BlockWatcher) {
        self.block_watcher = Some(watcher);
    }

    /// Lets the run begin at a common start, instead of as soon as it is ready.
    ///
    /// # Errors
    /// The start has passed, or lies too far ahead: then no request is sent, not even the probe.
    pub fn start_at(&mut self, start: CommonStart) -> Result<(), RunnerError> {
        let folder = self.folder.as_ref().map(|folder| folder.path().to_owned());
        let (shard, launch) = (self.run.plan().shard, self.metadata.run.launch.clone());
        let wait = StartWait { start, shard, launch, folder, waited: Waited::default() };
        if let Err(why) = wait.check(&self.run.clock()) {
            return Err(not_begun(why, shard, wait.launch, self.folder.take()));
        }
        self.start = Some(wait);
        Ok(())
    }

    /// For a shard: ends the load when another shard ends early.
    pub const fn stop_on_loss(&mut self) {
        self.stop_on_loss = true;
    }

    /// Creates the run's folder and writes the plan, so that a folder that cannot be written is
    /// found before any request. A run that never begins leaves no folder behind.
    ///
    /// # Errors
    /// The folder cannot be written, or the disk is full.
    pub fn create_folder(
        &mut self,
        options: &RunDirOptions,
        stamp: &str,
    ) -> Result<(), RunnerError> {
        let (run, shard) = (&self.metadata.run, self.run.plan().shard);
        let mut folder = if shard == Stripe::WHOLE {
            RunDir::create(options, stamp, &run.name)?
        } else {
            RunDir::create_shard(options, run, shard)?
        };
        folder.store_plan(&self.run, &self.metadata)?;
        folder.reserve(space_of_results(&self.metadata))?;
        self.folder = Some(folder);
        Ok(())
    }

    /// Sends the probe requests, and returns their results.
    ///
    /// # Errors
    /// Same as [`Run::probe`].
    pub fn probe(&mut self) -> Result<&ProbeReport, RunnerError> {
        let report = self.run.probe()?;
        let stages = self.run.metadata().stages;
        let mut both = stages.iter().zip(&self.metadata.stages);
        let is_longer = both.any(|(stage, planned)| stage.duration_s > planned.duration_s);
        let answers = self.run.plan().limits.answers_per_user.filter(|_| is_longer);
        self.metadata.notes.extend(answers.map(|answers| {
            format!("the load is longer than planned, for {answers} responses of each user")
        }));
        self.metadata.stages = stages;
        let found = secrets::for_probe(&report, self.run.plan(), &self.secrets);
        self.metadata.notes.extend(found);
        self.metadata.run.probes = report.requests;
        Ok(self.probed.insert(report))
    }

    /// The findings of the probe that would make the load pointless, without credentials.
    pub fn fatal_findings(&self) -> Vec<String> {
        let findings = self.probed.iter().flat_map(|report| &report.findings);
        findings
            .filter(|finding| finding.fatal)
            .map(|finding| secrets::describe_finding(finding, self.run.plan(), &self.secrets))
            .collect()
    }

    /// The prepared run.
    pub const fn prepared(&self) -> &Run {
        &self.run
    }

    /// Results of the probe, if it was sent.
    pub const fn probed(&self) -> Option<&ProbeReport> {
        self.probed.as_ref()
    }

    /// The run's folder, if it has one.
    pub const fn folder(&self) -> Option<&RunDir> {
        self.folder.as_ref()
    }

    /// Names, stages and notes of the run, to which the caller adds the machine.
    pub const fn metadata_mut(&mut self) -> &mut RunMetadata {
        &mut self.metadata
    }

    /// Carries the load out, until its end or until `control` interrupts it.
    ///
    /// # Errors
    /// The generator itself fails, or a file of the folder cannot be created.
    pub fn run(
        mut self,
        control: &Control,
        observe: &mut dyn FnMut(&Progress<'_>),
    ) -> Result<Finished, RunnerError> {
        let sink = self.sample_sink()?;
        self.record_blocks()?;
        let plan = self.run.plan();
        let (ids, clock) = (plan.id_seed(), self.run.clock());
        if let Some(folder) = &mut self.folder {
            folder.keep();
        }
        let mut counts = self.counts_file();
        let mut begins = self.folder.as_ref().map(|folder| folder.path().to_owned());
        let (shard, waited) = (self.run.plan().shard, self.wait_for_start());
        let launch = self.metadata.run.launch.clone();
        let mut stop = self.common_stop(shard, clock);
        let started = self.run.start(sink, control, &mut |progress| {
            observe(progress);
            if let Some(folder) = begins.take() {
                // Only the report of a run that is killed needs it.
                let _ = note_start(&folder, progress.origin);
            }
            if let Some(counts) = &mut counts {
                counts.follow(progress);
            }
            if let Some(stop) = &mut stop {
                stop.follow(control);
            }
        });
        let waited = waited.lock().unwrap_or_else(PoisonError::into_inner).take();
        let result = match started {
            Err(EngineError::NotBegun) => {
                let why = waited.and_then(Result::err);
                let why = why.unwrap_or(RunnerError::Engine(EngineError::NotBegun));
                return Err(not_begun(why, shard, launch, self.folder));
            }
            started => started?,
        };
        if let (Some(stop), true) = (&mut stop, control.is_interrupted()) {
            stop.follow(control);
        }
        counts.map(|counts| counts.finish(&result)).transpose()?;
        let mut status = status_of(shard, launch, waited.and_then(Result::ok).as_ref());
        if result.metadata.run.ended == RunEnd::Interrupted {
            let [at_s, of_s] = [&result.metadata, &self.metadata]
                .map(|run| run.stages.iter().map(|stage| stage.duration_s).sum());
            status.state = ShardState::Partial;
            status.interrupted = Some(Interruption { at_s, of_s });
        }
        Ok(Finished {
            result,
            samples: self.samples.map(|kept| kept.take()).unwrap_or_default(),
            blocks: self.blocks.map(|kept| kept.take()).unwrap_or_default(),
            ids,
            folder: self.folder,
            status,
            planned: self.metadata,
            secrets: self.secrets,
            clock,
        })
    }

    /// Makes the engine wait for the common start, if there is one; returns the place of the
    /// outcome.
    fn wait_for_start(&mut self) -> Waited {
        let Some(wait) = self.start.take() else { return Waited::default() };
        let waited = Waited::clone(&wait.waited);
        self.run.begin_when(Box::new(wait));
        waited
    }

    /// The task that ends the load together with the other shards, if enabled.
    fn common_stop(&self, shard: Stripe, clock: MonotonicClock) -> Option<CommonStop> {
        let folder =
            self.folder.as_ref().filter(|_| self.stop_on_loss && shard != Stripe::WHOLE)?;
        let run = folder.path().parent()?.to_owned();
        // All shards together look 100 times a second.
        let pause = Nanos::from_millis(10 * shard.count().max(100));
        let launch = self.metadata.run.launch.clone();
        Some(CommonStop { run, launch, clock, pause, next: Moment::EPOCH })
    }

    /// The file of counts, of a shard.
    fn counts_file(&self) -> Option<CountsFile> {
        let shard = self.run.plan().shard;
        let folder = self.folder.as_ref().filter(|_| shard != Stripe::WHOLE)?;
        Some(CountsFile::new(folder, &self.metadata.run, shard.count(), self.run.clock()))
    }

    /// Destination of the samples. The plan is written again, now with the results of the probe.
    fn sample_sink(&mut self) -> Result<Option<Box<dyn SampleSink>>, RunnerError> {
        if let Some(folder) = &self.folder {
            folder.store_plan(&self.run, &self.metadata)?;
            if let Some(format) = folder.rows() {
                let agents = self.run.plan().scenarios.iter().any(|one| one.agent.is_some());
                let (metadata, secrets) = (self.metadata.clone(), self.secrets.clone());
                let rows = RowFile::create(folder, metadata, agents, format, secrets)?;
                return Ok(Some(Box::new(rows)));
            }
        }
        let kept = self.samples.clone().map(|kept| -> Box<dyn SampleSink> { Box::new(kept) });
        Ok(self.sink.take().or(kept))
    }

    fn record_blocks(&mut self) -> Result<(), RunnerError> {
        if let Some(kept) = &self.blocks {
            self.run.record_blocks(Box::new(kept.clone()));
        } else if let (Some(folder), true) = (&self.folder, self.run.pairs().is_some()) {
            let watcher = self.block_watcher.take();
            let file = PairFile::create(folder, &self.metadata, watcher)?;
            self.run.record_blocks(Box::new(file));
        }
        Ok(())
    }
}

/// The status of a run or a shard that finished its load.
fn status_of(shard: Stripe, launch: String, start: Option<&ShardSign>) -> ShardStatus {
    ShardStatus {
        shard: format!("{}/{}", shard.index(), shard.count()),
        launch,
        state: ShardState::Done,
        start_at_unix_ns: start.map(|start| start.unix_ns),
        clock_offset_ns: start.and_then(|start| start.clock_offset_ns),
        clock_uncertainty_ns: start.and_then(|start| start.clock_uncertainty_ns),
        ..ShardStatus::default()
    }
}

/// Why a run did not begin. A late shard keeps its folder, which says so; any other run removes it.
fn not_begun(
    why: RunnerError,
    shard: Stripe,
    launch: String,
    folder: Option<RunDir>,
) -> RunnerError {
    let Some(mut folder) = folder else { return why };
    folder.discard();
    if let (RunnerError::Late { start, late_by, .. }, true) = (&why, shard != Stripe::WHOLE) {
        let (state, late_by_ns) = (ShardState::Late, Some(late_by.as_u64()));
        let status = ShardStatus { state, late_by_ns, ..status_of(shard, launch, Some(&**start)) };
        folder.release_space();
        if let Err(error) = folder.commit(&status) {
            return error;
        }
        folder.keep();
    }
    why
}

/// A run that is over.
#[derive(Debug)]
pub struct Finished {
    /// The engine's result.
    pub result: RunResult,
    /// Every sample, if they were kept.
    pub samples: Vec<Sample>,
    /// Every block of a comparison, if they were kept.
    pub blocks: Vec<Block>,
    /// The seed of the ids of its conversations.
    pub ids: IdSeed,
    /// Its folder, if it has one.
    pub folder: Option<RunDir>,
    /// Contents of the last file, written after all others.
    pub status: ShardStatus,
    /// Metadata from before the load: the machine, the notes.
    planned: RunMetadata,
    secrets: Secrets,
    clock: MonotonicClock,
}

impl Finished {
    /// Everything that was counted, warm-up included.
    pub fn total(&self) -> GroupStats {
        self.result.snapshot.total(|_| true)
    }

    /// The counts of all requests, by outcome.
    pub fn accounting(&self) -> Counters {
        *self.total().counters()
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

    /// The run as reports have it, with its validity and its judged thresholds.
    ///
    /// # Errors
    /// Where a histogram cannot be encoded.
    pub fn summary(&self, limits: &[Limit]) -> Result<RunSummary, MetricsError> {
        let (result, mut health) = (&self.result, self.result.health.clone());
        health.sink_error = result.sink.error.as_ref().map(ToString::to_string);
        let summary = RunSummary::build(self.metadata(), health, &result.snapshot, limits)?
            .with_tasks(&result.tasks)?;
        let (processes, resources) = (result.processes.clone(), result.resources.clone());
        let servers =
            result.servers.iter().flat_map(|server| server.loads(&summary.metadata.stages));
        let servers = servers.collect();
        let mut summary = RunSummary { processes, resources, servers, ..summary };
        summary.find();
        Ok(summary)
    }

    /// Timeline of the run.
    ///
    /// # Errors
    /// Where a histogram cannot be encoded.
    pub fn record(&self, summary: &RunSummary) -> Result<TimeRecord, MetricsError> {
        let (series, tracks) = (&self.result.series, &self.result.tracks);
        let record = TimeRecord::build(series, &summary.metadata, &summary.health, tracks)?;
        Ok(record.with_servers(series, &self.result.servers))
    }

    /// Names and stages as executed, with the machine and all notes.
    fn metadata(&self) -> RunMetadata {
        let mut metadata = self.result.metadata.clone();
        metadata.environment = self.planned.environment.clone();
        metadata.run.plan_hash.clone_from(&self.planned.run.plan_hash);
        metadata.run.build.clone_from(&self.planned.run.build);
        metadata.unsent.clone_from(&self.planned.unsent);
        metadata.notes.clone_from(&self.planned.notes);
        metadata.insecure = self.planned.insecure;
        metadata.run.probes = self.planned.run.probes;
        metadata.run.stopped.clone_from(&self.result.stopped);
        metadata.notes.extend(self.result.spent.clone());
        metadata.notes.extend(secrets::for_addresses(&metadata.targets));
        metadata.notes.extend(self.result.servers.iter().filter_map(ServerTrack::note));
        let (causes, secrets) = (&self.result.causes, &self.secrets);
        metadata.notes.extend(secrets::for_redirects(causes, secrets));
        metadata.failures = secrets::failures(causes, &metadata.targets, secrets);
        secrets::messages_of_targets(&mut metadata.targets, causes, secrets);
        metadata
    }
}

/// Keeps every sample or block in memory, in batches: growing a single list would copy it for
/// milliseconds, on a core that may be the generator's.
#[derive(Clone, Debug)]
pub(crate) struct Kept<T>(Arc<Mutex<Vec<Vec<T>>>>);

impl<T: Clone> Kept<T> {
    pub(crate) fn take(&self) -> Vec<T> {
        self.0.lock().map(|mut batches| std::mem::take(&mut *batches).concat()).unwrap_or_default()
    }

    fn keep(&self, batch: &[T]) -> io::Result<()> {
        let mut kept = self.0.lock().map_err(|_| io::Error::other("a reader panicked"))?;
        kept.push(batch.to_vec());
        Ok(())
    }
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl SampleSink for Kept<Sample> {
    fn write(&mut self, batch: &SampleBatch) -> io::Result<()> {
        self.keep(&batch.samples)
    }
}

impl BlockSink for Kept<Block> {
    fn write(&mut self, blocks: &[Block]) -> io::Result<()> {
        self.keep(blocks)
    }
}
