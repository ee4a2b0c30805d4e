//! One run from its plan to its report: what `run`, `demo` and `http` have in common.

use anyhow::{Result, bail};
use plimsoll_calibrate::Record;
use plimsoll_engine::{
    Control, EngineError, ProbeReport, Run, RunResult, SampleSink, WatchedProcess,
};
use plimsoll_measure::Nanos;
use plimsoll_metrics::{CalibrationQuote, InstrumentHealth, RunMetadata, RunSummary, Threshold};
use plimsoll_profile::Plan;
use plimsoll_report::format::utc_compact;
use plimsoll_report::text;
use plimsoll_schedule::Load;

use crate::console;
use crate::environment;
use crate::exit::{Exit, Usage};
use crate::fd_limit::FdLimit;
use crate::progress::{Live, Screen};
use crate::report_notes;
use crate::run_dir::{self, RowFile, RunDir, RunDirOptions};
use crate::secrets::Secrets;
use crate::signal;

/// How a run is carried out, besides its plan.
pub(crate) struct RunOptions {
    /// What is kept of it; `None` for nothing.
    pub(crate) keep: Option<RunDirOptions>,
    /// Is the target tried before the load?
    pub(crate) probe: bool,
    /// Does the exit code accept an instrument that was not good enough?
    pub(crate) allow_invalid: bool,
    /// Processes whose use of the machine is told.
    pub(crate) watch: Vec<WatchedProcess>,
}

/// What several runs of one process share: the terminal, the signals, the limits.
pub(crate) struct Session {
    screen: Screen,
    control: Control,
    fd_limit: Option<FdLimit>,
    listening: bool,
}

/// A run that was carried out.
pub(crate) struct Finished {
    pub(crate) summary: RunSummary,
    pub(crate) exit: Exit,
}

impl Session {
    /// Prepares the process: raises its limits, and finds out what the terminal can show.
    pub(crate) fn open(quiet: bool) -> Self {
        let screen = Screen::of_stderr(quiet);
        let fd_limit = FdLimit::raise();
        if let Some(told) = fd_limit.and_then(FdLimit::told) {
            screen.tell(&told);
        }
        Self { screen, control: Control::new(), fd_limit, listening: false }
    }

    /// Where to tell the user something.
    pub(crate) const fn screen(&self) -> &Screen {
        &self.screen
    }

    /// What ends runs early when the user asks for it.
    pub(crate) const fn control(&self) -> &Control {
        &self.control
    }

    /// Carries a plan out, and keeps and shows what came of it.
    ///
    /// # Errors
    /// Where there could be no run; what the target did is in the summary.
    pub(crate) fn carry_out(&mut self, plan: Plan, options: &RunOptions) -> Result<Finished> {
        // First, as what the hypervisor takes is watched until the load begins.
        let machine = environment::Reading::begin(self.fd_limit);
        let secrets = Secrets::of(&plan);
        let (thresholds, bands) =
            (run_dir::thresholds(&plan.thresholds)?, run_dir::bands(&plan.bands)?);
        let mut run = Run::prepare(plan).map_err(plan_error)?;
        run.watch(options.watch.clone());
        self.warn_of(run.plan());
        let mut facts = run.metadata();
        facts.environment = machine.so_far();
        facts.notes = report_notes::before(run.plan());
        let run_dir = options.keep.as_ref().map(|keep| self.make_folder(keep, &run, &facts));
        let run_dir = run_dir.transpose()?;
        let probed = options.probe.then(|| probe(&run, &secrets)).transpose();
        let probed = probed.inspect_err(|_| run_dir.iter().for_each(RunDir::discard))?;
        facts.notes.extend(report_notes::of_probe(probed.as_ref(), run.plan(), &secrets));
        facts.environment = machine.finish();
        let sink =
            run_dir.as_ref().map(|run_dir| open(run_dir, &run, &facts)).transpose()?.flatten();
        let result = self.load(run, sink)?;
        let summary = sum_up(result, facts, &thresholds, &secrets)?.with_bands(&bands);
        self.conclude(summary, run_dir.as_ref(), options.allow_invalid)
    }

    fn warn_of(&self, plan: &Plan) {
        let connections = connections(plan);
        let warning = self.fd_limit.and_then(|fd_limit| fd_limit.warning(connections));
        if let Some(warning) = warning {
            self.screen.warn(&warning);
        }
    }

    /// The folder with the plan in it, which shows that it can be written to.
    fn make_folder(&self, keep: &RunDirOptions, run: &Run, facts: &RunMetadata) -> Result<RunDir> {
        let run_dir =
            RunDir::create(keep, &utc_compact(facts.run.started_unix_ns), &facts.run.name)?;
        run_dir::store_plan(&run_dir, run, facts)?;
        if let Some(warning) = run_dir.warning() {
            self.screen.warn(&warning);
        }
        Ok(run_dir)
    }

    /// The load itself, which Ctrl-C ends early.
    fn load(&mut self, run: Run, sink: Option<Box<dyn SampleSink>>) -> Result<RunResult> {
        self.listen()?;
        let stages = run.metadata().stages;
        let length = stages.iter().map(|stage| stage.duration_s).sum();
        let names = stages.into_iter().map(|stage| stage.name).collect();
        let length = Nanos::from_secs_f64(length);
        let mut live = Live::begin(&self.screen, &self.control, names, length);
        Ok(run.start(sink, &self.control, &mut |progress| live.show(progress))?)
    }

    fn listen(&mut self) -> Result<()> {
        if !std::mem::replace(&mut self.listening, true) {
            let (control, screen) = (self.control.clone(), self.screen.clone());
            signal::listen(move || {
                control.interrupt();
                screen.interrupt("finishing; press Ctrl-C again to stop at once");
            })?;
        }
        Ok(())
    }

    /// Shows the report before it is written: a full disk must not take it away.
    fn conclude(
        &self,
        summary: RunSummary,
        run_dir: Option<&RunDir>,
        allow_invalid: bool,
    ) -> Result<Finished> {
        console::print(&text(&summary, console::style()))?;
        if let Some(run_dir) = run_dir {
            run_dir.write_summary(&summary)?;
            console::print_line(&format!("\nfiles: {}", run_dir.path().display()))?;
        }
        if summary.results.total.counters.completed == 0 {
            self.screen.warn("no request was completed outside of warm-up");
        }
        let exit = Exit::of_run(&summary, allow_invalid);
        Ok(Finished { summary, exit })
    }
}

/// What keeps a plan from being prepared is in the plan; only threads and timers are the machine's
/// business.
fn plan_error(error: EngineError) -> anyhow::Error {
    match error {
        EngineError::Thread(_) | EngineError::Worker(_) | EngineError::WorkerPanicked => {
            error.into()
        }
        error => Usage(error.to_string()).into(),
    }
}

/// Connections that a plan needs at once, as far as it says so: one for each virtual user.
fn connections(plan: &Plan) -> u64 {
    let of_stage = |load: &Load| match *load {
        Load::Closed { from, to } => plan.shard.share(from.max(to).into()),
        Load::Open { .. } | Load::Trace => 0,
    };
    plan.stages.0.iter().map(|stage| of_stage(&stage.load)).max().unwrap_or(0)
}

/// Tries the target. A finding that would make the load pointless is an error.
fn probe(run: &Run, secrets: &Secrets) -> Result<ProbeReport> {
    let report = run.probe()?;
    let fatal = report.findings.iter().filter(|finding| finding.fatal);
    let fatal: Vec<_> =
        fatal.map(|finding| report_notes::of_finding(finding, run.plan(), secrets)).collect();
    if !fatal.is_empty() {
        bail!("{}\nno load was sent; --no-probe sends it all the same", fatal.join("\n"));
    }
    Ok(report)
}

/// Writes the plan anew, with what the probe found, and makes the file of rows.
fn open(run_dir: &RunDir, run: &Run, facts: &RunMetadata) -> Result<Option<Box<dyn SampleSink>>> {
    run_dir::store_plan(run_dir, run, facts)?;
    let file = run_dir.wants_rows().then(|| RowFile::create(run_dir, facts.clone())).transpose()?;
    Ok(file.map(|file| Box::new(file) as Box<dyn SampleSink>))
}

/// What the last calibration on this host found. A record that cannot be read is as good as none.
pub(crate) fn last_calibration() -> Option<CalibrationQuote> {
    let record = Record::load().ok().flatten()?;
    let (passed, failed) = record.counts();
    Some(CalibrationQuote {
        when: utc_compact(record.taken_unix_s.saturating_mul(1_000_000_000)),
        passed,
        failed,
        floor_us: record.floor.map(|floor| floor.response_time_p50_us),
        max_rate: record.floor.map(|floor| floor.highest_rate),
    })
}

fn sum_up(
    result: RunResult,
    planned: RunMetadata,
    thresholds: &[Threshold],
    secrets: &Secrets,
) -> Result<RunSummary> {
    let mut facts = result.metadata;
    facts.environment = planned.environment;
    facts.notes = planned.notes;
    let cut = result.sink.error.map(|error| format!("results.jsonl is cut short: {error}"));
    facts.notes.extend(cut);
    facts.notes.extend(report_notes::of_causes(&result.causes, secrets));
    let health = InstrumentHealth { calibration: last_calibration(), ..result.health };
    let summary = RunSummary::build(facts, health, &result.snapshot, thresholds)?;
    Ok(RunSummary { processes: result.processes, ..summary })
}
