//! One run from its plan to its report: what `run`, `demo` and `http` have in common.

use anyhow::{Result, bail};
use plimsoll_calibrate::Record;
use plimsoll_compare::plan::hash as plan_hash;
use plimsoll_engine::{
    Control, EngineError, ProbeReport, Run, RunResult, SampleSink, WatchedPage, WatchedProcess,
    listener,
};
use plimsoll_measure::Nanos;
use plimsoll_metrics::{
    CalibrationQuote, Exemplars, InstrumentHealth, ProcessTrack, RunExemplars, RunMetadata,
    RunSummary, Snapshot, Threshold, TimeRecord,
};
use plimsoll_profile::Plan;
use plimsoll_report::format::{utc, utc_compact};
use plimsoll_report::screen::Rest;
use plimsoll_report::{prometheus, run_screen, text};
use plimsoll_runner::facts::FAILING;
use plimsoll_schedule::Load;
use plimsoll_why::why;
use plimsoll_workload::{conversation_id, request_id};

use crate::console::{self, Show};
use crate::environment::EnvironmentScan;
use crate::exit::{Exit, UsageError};
use crate::export::{Export, ExportOptions};
use crate::fd_limit::FdLimit;
use crate::progress::{ENDING, ProgressView, Shown, StatusOutput, Steps, Ui};
use crate::report_notes;
use crate::run_dir::{self, BlockWatcher, FILE_WIDTH, PairFile, RowFile, RunDir, RunDirOptions};
use crate::secrets::Secrets;
use crate::signal::{self, RunSignal};

/// A process that is watched.
#[derive(Clone, Debug)]
pub(crate) enum Watch {
    /// On this host.
    Process(WatchedProcess),
    /// On another host, through its page of metrics.
    Page(WatchedPage),
}

/// The options of a run, besides its plan.
pub(crate) struct RunOptions {
    /// The files to write; `None` for none.
    pub(crate) output: Option<RunDirOptions>,
    /// Whether probe requests are sent before the load.
    pub(crate) probe: bool,
    /// Whether the exit code ignores that the run is invalid.
    pub(crate) allow_invalid: bool,
    /// Processes whose CPU and memory use is reported.
    pub(crate) watch: Vec<Watch>,
    /// How much of the result is printed.
    pub(crate) show: Show,
}

/// The state that several runs of one process share: the terminal, the signals, the limits.
pub(crate) struct Session {
    status: StatusOutput,
    control: Control,
    fd_limit: Option<FdLimit>,
    handles_signals: bool,
    export: Export,
}

/// What is known before the load.
pub(crate) struct Probed<'r> {
    /// What the probe found; `None` where it was left out.
    pub(crate) report: Option<&'r ProbeReport>,
    /// Where to tell the user.
    pub(crate) status: &'r StatusOutput,
}

/// A run that ended and was not reported yet.
pub(crate) struct Measured {
    pub(crate) summary: RunSummary,
    /// What happened when.
    pub(crate) record: TimeRecord,
    /// Single requests with all their times.
    pub(crate) exemplars: RunExemplars,
    /// Its folder, if it has one.
    pub(crate) run_dir: Option<RunDir>,
    /// What only a comparison has.
    pub(crate) comparison: Comparison,
}

impl Measured {
    /// Where a reader finds what a screen leaves out.
    pub(crate) fn rest(&self) -> Rest {
        let path = self.run_dir.as_ref().map(|run_dir| run_dir.path().display().to_string());
        path.map_or(Rest::Flag, Rest::Folder)
    }
}

/// What a comparison has besides its summary and its blocks.
pub(crate) struct Comparison {
    /// By target: when it was taken out, after the run's start.
    pub(crate) taken_out: Vec<Option<Nanos>>,
    /// The CPU time of watched processes over time.
    pub(crate) tracks: Vec<ProcessTrack>,
    /// Why blocks are missing in the file.
    pub(crate) error: Option<String>,
}

/// A run that ended.
pub(crate) struct FinishedRun {
    pub(crate) summary: RunSummary,
    pub(crate) exit: Exit,
    /// Where its report is.
    pub(crate) rest: Rest,
}

impl Session {
    /// Raises the limits of the process, and finds out what the terminal can show.
    pub(crate) fn open(ui: Ui) -> Self {
        let status = StatusOutput::open(ui);
        let fd_limit = FdLimit::raise();
        if let Some(message) = fd_limit.and_then(FdLimit::raised_message) {
            status.info(&message);
        }
        let (control, export) = (Control::new(), Export::default());
        Self { status, control, fd_limit, handles_signals: false, export }
    }

    /// Serves and pushes metrics, as flags say.
    ///
    /// # Errors
    /// [`UsageError`] where the address to serve at cannot be used.
    pub(crate) fn export(&mut self, options: ExportOptions) -> Result<(), UsageError> {
        self.export = Export::open(options, &self.status)?;
        Ok(())
    }

    /// What is served and pushed.
    pub(crate) const fn exported(&self) -> &Export {
        &self.export
    }

    /// Pushes the figures of a run that is over, if that is wanted. They are in its files, too, so
    /// a failure is only told.
    pub(crate) fn push_metrics(&self, run: &str, page: &str) {
        if let Err(error) = self.export.push(run, page) {
            self.status.warn(&error.to_string());
        }
    }

    /// Waits until somebody has read the last metrics, as long as flags say.
    pub(crate) fn linger(&self) {
        self.export.linger(&self.control, &self.status);
    }

    /// The output for messages to the user.
    pub(crate) const fn status(&self) -> &StatusOutput {
        &self.status
    }

    /// Ends runs early when the user interrupts them.
    pub(crate) const fn control(&self) -> &Control {
        &self.control
    }

    /// Runs a plan, prints the report and writes the files.
    ///
    /// # Errors
    /// The run could not be carried out. Errors of the target are in the summary instead.
    pub(crate) fn run_plan(&mut self, plan: Plan, options: &RunOptions) -> Result<FinishedRun> {
        let measured = self.measure(plan, options, &mut |_, _| Ok(None))?;
        self.report(measured, options)
    }

    /// Runs a plan. `before_load` is called when the probe is done, and may end it; what it gives
    /// sees the blocks of a comparison while they come.
    ///
    /// # Errors
    /// As [`Session::run_plan`], and those of `before_load`.
    pub(crate) fn measure(
        &mut self,
        plan: Plan,
        options: &RunOptions,
        before_load: &mut dyn FnMut(&Run, &Probed<'_>) -> Result<Option<BlockWatcher>>,
    ) -> Result<Measured> {
        // First: the CPU time that the hypervisor steals is observed until the load begins.
        let machine = EnvironmentScan::start(self.fd_limit);
        let secrets = Secrets::of(&plan);
        let (thresholds, bands) =
            (run_dir::thresholds(&plan.thresholds)?, run_dir::bands(&plan.bands)?);
        let steps = Steps::passing(&self.status, "preparing the run");
        let mut run = Run::prepare(plan).map_err(plan_error)?;
        drop(steps);
        watch(&mut run, &options.watch)?;
        run.target_is(target_process(run.plan()));
        self.warn_about_fd_limit(run.plan());
        let mut metadata = run.metadata();
        metadata.environment = machine.so_far();
        metadata.run.plan_hash = plan_hash(&serde_json::to_value(run.plan())?);
        metadata.notes = report_notes::before_load(run.plan());
        let output = options.output.as_ref();
        let run_dir = output.map(|output| self.create_run_dir(output, &run, &metadata));
        let run_dir = run_dir.transpose()?;
        let discard = || run_dir.iter().for_each(RunDir::discard);
        let probed = options.probe.then(|| {
            let _shown = Steps::passing(&self.status, "sending a request to see that all is well");
            probe(&run, &secrets)
        });
        let probed = probed.transpose();
        let probed = probed.inspect_err(|_| discard())?;
        let found = Probed { report: probed.as_ref(), status: &self.status };
        let watcher = before_load(&run, &found).inspect_err(|_| discard())?;
        metadata.notes.extend(report_notes::for_probe(probed.as_ref(), run.plan(), &secrets));
        metadata.environment = machine.finish();
        let sink = run_dir.as_ref().map(|run_dir| create_sink(run_dir, &run, &metadata));
        if let (Some(run_dir), true) = (&run_dir, run.pairs().is_some()) {
            run.record_blocks(Box::new(PairFile::create(run_dir, &metadata, watcher)?));
        }
        let mut result = self.load(run, sink.transpose()?.flatten(), &thresholds)?;
        let _shown = Steps::passing(&self.status, "adding up the results");
        let comparison = Comparison {
            taken_out: result.taken_out.clone(),
            tracks: result.tracks.clone(),
            error: result.blocks.error.clone(),
        };
        let kept = std::mem::take(&mut result.exemplars);
        let whole = std::mem::take(&mut result.snapshot);
        let (summary, record) = summarize((result, &whole), metadata, &thresholds, &secrets)?;
        self.export.end(&whole, &summary);
        let exemplars = name_exemplars(&kept, &summary.metadata);
        let summary = summary.with_bands(&bands);
        Ok(Measured { summary, record, exemplars, run_dir, comparison })
    }

    fn warn_about_fd_limit(&self, plan: &Plan) {
        let connections = connections(plan);
        let warning = self.fd_limit.and_then(|fd_limit| fd_limit.warning(connections));
        if let Some(warning) = warning {
            self.status.warn(&warning);
        }
    }

    /// Creates the folder and writes the plan: a folder that cannot be written is found before any
    /// request.
    fn create_run_dir(
        &self,
        output: &RunDirOptions,
        run: &Run,
        metadata: &RunMetadata,
    ) -> Result<RunDir> {
        let started = utc_compact(metadata.run.started_unix_ns);
        let mut run_dir = RunDir::create(output, &started, &metadata.run.name)?;
        let prepared = run_dir::store_plan(&run_dir, run, metadata)
            .and_then(|()| run_dir.reserve(run_dir::space_of_results(metadata)));
        prepared.inspect_err(|_| run_dir.discard())?;
        if let Some(warning) = run_dir.low_disk_warning() {
            self.status.warn(&warning);
        }
        Ok(run_dir)
    }

    /// Runs the load, which Ctrl-C ends early.
    fn load(
        &mut self,
        run: Run,
        sink: Option<Box<dyn SampleSink>>,
        thresholds: &[Threshold],
    ) -> Result<RunResult> {
        self.handle_signals()?;
        let shown = Shown::of(&run, thresholds);
        let targets: Vec<_> = run.plan().targets.iter().map(|target| target.name.clone()).collect();
        let (status, mut told) = (self.status.clone(), 0);
        let live = self.export.begin(run.metadata());
        let mut view = ProgressView::begin(&self.status, &self.control, shown, live);
        Ok(run.start(sink, &self.control, &mut |progress| {
            view.show(progress);
            let out = targets.iter().zip(progress.taken_out);
            let mut out: Vec<_> = out.filter_map(|(name, at)| Some(((*at)?, name))).collect();
            out.sort();
            let new = out.iter().skip(std::mem::replace(&mut told, out.len()));
            new.for_each(|(at, name)| {
                let seconds = at.as_secs_f64();
                status.warn(&format!("{name} was taken out after {seconds:.0} s: {FAILING}"));
            });
        })?)
    }

    /// Lets Ctrl-C end what goes on, and a second one the process.
    ///
    /// # Errors
    /// Where signals cannot be handled.
    pub(crate) fn handle_signals(&mut self) -> Result<()> {
        if !std::mem::replace(&mut self.handles_signals, true) {
            let (control, status) = (self.control.clone(), self.status.clone());
            signal::on_run_signal(move |signal| match signal {
                RunSignal::Interrupt => {
                    control.interrupt();
                    status.interrupted(ENDING);
                }
                signal => status.follow(signal),
            })?;
        }
        Ok(())
    }

    /// Prints the report before it writes the files: a full disk must not lose it.
    fn report(&self, measured: Measured, options: &RunOptions) -> Result<FinishedRun> {
        let rest = measured.rest();
        let Measured { summary, record, exemplars, run_dir, .. } = measured;
        match options.show {
            Show::Screen => console::print_screen(&run_screen(&summary, rest.clone()))?,
            Show::Full => console::print(&text(&summary, console::full_style(FILE_WIDTH)))?,
            Show::Nothing => {}
        }
        if let Some(run_dir) = run_dir {
            run_dir.write_summary(&summary)?;
            run_dir.write_record(&record)?;
            run_dir.write_exemplars(&exemplars)?;
            let (timeline, exemplars) = (Some(&record.timeline), Some(&exemplars));
            let summary = &summary;
            let page =
                plimsoll_page::Input { summary, timeline, exemplars, versus: None, server: &[] };
            run_dir.write_page(&page)?;
        }
        self.push_metrics(&summary.metadata.run.name, &prometheus(&summary));
        if options.show == Show::Full {
            console::print_end(&run_screen(&summary, rest.clone()))?;
        }
        if summary.results.total.counters.completed == 0 {
            self.status.warn("no request was completed outside of warm-up");
        }
        let exit = Exit::of_run(&summary, options.allow_invalid);
        Ok(FinishedRun { summary, exit, rest })
    }
}

/// Has the processes watched that flags name. A page that cannot be read is found before the load.
fn watch(run: &mut Run, watched: &[Watch]) -> Result<(), UsageError> {
    let (mut processes, mut pages) = (Vec::new(), Vec::new());
    for watch in watched.iter().cloned() {
        match watch {
            Watch::Process(process) => processes.push(process),
            Watch::Page(page) => pages.push(page),
        }
    }
    for page in &pages {
        let read = page.check();
        read.map_err(|error| UsageError(format!("--watch {}: {error}", page.name)))?;
    }
    run.watch(processes);
    run.watch_pages(pages);
    Ok(())
}

/// The process of this host that listens at the address of the run's only target.
fn target_process(plan: &Plan) -> Option<u32> {
    let [target] = plan.targets.as_slice() else { return None };
    target.url.is_loopback().then(|| listener(target.url.port()).ok()).flatten()
}

/// A plan that cannot be prepared is wrong usage. Threads and timers are the system's.
pub(crate) fn plan_error(error: EngineError) -> anyhow::Error {
    match error {
        EngineError::Thread(_) | EngineError::Worker(_) | EngineError::WorkerPanicked => {
            error.into()
        }
        error => UsageError(error.to_string()).into(),
    }
}

/// Connections that a plan needs at once, as far as the plan tells: one for each virtual user.
fn connections(plan: &Plan) -> u64 {
    let of_stage = |load: &Load| match *load {
        Load::Closed { from, to } => plan.shard.share(from.max(to).into()),
        Load::Open { .. } | Load::Trace => 0,
    };
    plan.stages.0.iter().map(|stage| of_stage(&stage.load)).max().unwrap_or(0)
}

/// Sends the probe requests. A finding that would make the load pointless is an error.
fn probe(run: &Run, secrets: &Secrets) -> Result<ProbeReport> {
    let report = run.probe()?;
    let fatal = report.findings.iter().filter(|finding| finding.fatal);
    let fatal: Vec<_> =
        fatal.map(|finding| report_notes::describe_finding(finding, run.plan(), secrets)).collect();
    if !fatal.is_empty() {
        bail!(
            "{}\nno load was sent, because the probe failed; --no-probe sends the load anyway",
            fatal.join("\n")
        );
    }
    Ok(report)
}

/// Writes the plan again, now with what the probe found, and creates the file of rows.
fn create_sink(
    run_dir: &RunDir,
    run: &Run,
    metadata: &RunMetadata,
) -> Result<Option<Box<dyn SampleSink>>> {
    run_dir::store_plan(run_dir, run, metadata)?;
    if !run_dir.keeps_rows() {
        return Ok(None);
    }
    let has_agents = run.plan().scenarios.iter().any(|scenario| scenario.agent.is_some());
    Ok(Some(Box::new(RowFile::create(run_dir, metadata.clone(), has_agents)?)))
}

/// The result of the last calibration on this host; `None` also where its record cannot be read.
pub(crate) fn last_calibration() -> Option<CalibrationQuote> {
    let record = Record::load().ok().flatten()?;
    let (passed, failed) = record.counts();
    Some(CalibrationQuote {
        when: utc(record.taken_unix_s.saturating_mul(1_000_000_000)),
        passed,
        failed,
        failed_tests: record.failed_tests(),
        floor_us: record.floor.map(|floor| floor.response_time_p50_us),
        max_rate: record.floor.map(|floor| floor.highest_rate),
    })
}

/// The requests that were kept whole, with their names and ids.
fn name_exemplars(kept: &Exemplars, metadata: &RunMetadata) -> RunExemplars {
    let ids = metadata.run.id_seed();
    RunExemplars::build(kept, metadata, |sample| {
        let conversation = conversation_id(ids, sample.conversation);
        request_id(conversation, sample.turn).as_str().to_owned()
    })
}

fn summarize(
    (result, whole): (RunResult, &Snapshot),
    planned: RunMetadata,
    thresholds: &[Threshold],
    secrets: &Secrets,
) -> Result<(RunSummary, TimeRecord)> {
    let mut metadata = result.metadata;
    metadata.environment = planned.environment;
    metadata.run.plan_hash = planned.run.plan_hash;
    metadata.notes = planned.notes;
    let truncated = result.sink.error.map(|error| format!("results.jsonl is incomplete: {error}"));
    metadata.notes.extend(truncated);
    metadata.notes.extend(report_notes::for_failures(&result.causes, secrets));
    let health = InstrumentHealth { calibration: last_calibration(), ..result.health };
    let summary = RunSummary::build(metadata, health, whole, thresholds)?;
    let summary = summary.with_tasks(&result.tasks)?;
    let (metadata, health) = (&summary.metadata, &summary.health);
    let record = TimeRecord::build(&result.series, metadata, health, &result.tracks)?;
    let (processes, resources) = (result.processes, result.resources);
    let mut summary = RunSummary { processes, resources, ..summary };
    summary.bottleneck = Some(why(&summary).bottleneck());
    Ok((summary, record))
}
