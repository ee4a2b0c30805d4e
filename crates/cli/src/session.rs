//! One run from its plan to its report: what `run`, `demo` and `http` have in common.

use std::path::PathBuf;

use anyhow::Result;
use plimsoll_calibrate::Record;
use plimsoll_compare::plan::hash as plan_hash;
use plimsoll_engine::{Control, Progress, WatchedPage, WatchedProcess, listener};
use plimsoll_export::PushTarget;
use plimsoll_import::{Summary, Tokens};
use plimsoll_measure::Nanos;
use plimsoll_metrics::{
    CalibrationQuote, InstrumentHealth, Limit, ProcessTrack, RunMetadata, RunSummary, TimeRecord,
};
use plimsoll_plan::{Plan, TargetUrl};
use plimsoll_report::format::{count, utc, utc_compact};
use plimsoll_report::levels::{RateFigure, throughput};
use plimsoll_report::screen::{Rest, Screen};
use plimsoll_run_files::ShardStatus;
use plimsoll_runner::facts::FAILING;
use plimsoll_runner::folder::{self, RunDir, RunDirOptions, file};
use plimsoll_runner::{CommonStart, Runner, RunnerError};
use plimsoll_schedule::Load;
use plimsoll_versus::Versus;
use plimsoll_why::why;

use crate::console::{self, Show};
use crate::environment::{EnvironmentScan, FdLimit};
use crate::exit::{self, Exit, RunSignal, TargetError, UsageError};
use crate::progress::{ENDING, ProgressView, Shown, StatusOutput, Steps, Ui};
use crate::run_result::{RunResult, rest};

/// In place of the folder, where a command writes one only when it is asked to.
pub(crate) const NO_FILES: &str = "files: none (--out DIR keeps them)";

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
    /// The files to write; `None` writes no files.
    pub(crate) output: Option<RunDirOptions>,
    /// Whether probe requests are sent before the load.
    pub(crate) probe: bool,
    /// Whether the exit code ignores that the run is invalid.
    pub(crate) allow_invalid: bool,
    /// Codes of rules that are left out.
    pub(crate) ignored: Vec<u16>,
    /// Processes whose CPU and memory use is reported.
    pub(crate) watch: Vec<Watch>,
    /// Servers whose metrics are read.
    pub(crate) servers: Vec<WatchedPage>,
    /// For a shard: the launch that it belongs to.
    pub(crate) launch: Launch,
    /// The profile with every default, for the folder.
    pub(crate) profile: Option<String>,
    /// Whether it ends after the first stage in which the throughput no longer grows.
    pub(crate) until_saturated: bool,
    /// How much of the result is printed.
    pub(crate) show: Show,
    /// The file for the result as `JUnit` XML.
    pub(crate) junit: Option<PathBuf>,
}

/// How a run or a shard is started.
#[derive(Clone, Debug, Default)]
pub(crate) struct Launch {
    /// Distinguishes launches of the same run; empty if the launcher set none.
    pub(crate) id: String,
    /// When it begins, if not as soon as it is ready.
    pub(crate) start: Option<CommonStart>,
    /// Among how many processes of this host the run is divided, if it is.
    pub(crate) processes: Option<u64>,
    /// Whether the load ends when a shard ends early.
    pub(crate) stop_on_loss: bool,
    /// The part of the load that may be lost without making the result invalid.
    pub(crate) lost_at_most: f64,
}

/// The state that several runs of one process share: the terminal, the signals, the limits.
pub(crate) struct Session {
    status: StatusOutput,
    control: Control,
    fd_limit: Option<FdLimit>,
    handles_signals: bool,
    /// Receiver of the results, beside the files.
    push: Option<PushTarget>,
}

/// A run whose load has not begun.
pub(crate) struct PreparedRun {
    pub(crate) runner: Runner,
    machine: EnvironmentScan,
    limits: Vec<Limit>,
    until_saturated: bool,
}

/// A run that ended and was not reported yet.
pub(crate) struct Measured {
    pub(crate) summary: RunSummary,
    /// Timeline of the run.
    pub(crate) record: TimeRecord,
    /// Its folder, if it has one.
    pub(crate) run_dir: Option<RunDir>,
    /// Its last file.
    pub(crate) status: ShardStatus,
    /// Data of a comparison.
    pub(crate) comparison: Comparison,
}

impl Measured {
    /// Whether it is a part of a run.
    pub(crate) fn is_shard(&self) -> bool {
        self.summary.metadata.run.shard != "0/1"
    }

    /// Location of the details that a screen leaves out.
    pub(crate) fn rest(&self) -> Rest {
        rest(self.run_dir.as_ref().map(RunDir::path))
    }

    /// The result, including the comparison made from its blocks.
    pub(crate) const fn result<'r>(&'r self, versus: Option<&'r Versus>) -> RunResult<'r> {
        RunResult { summary: &self.summary, versus }
    }
}

/// Data of a comparison besides its summary and its blocks.
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
    /// Raises the limits of the process, and detects the capabilities of the terminal.
    pub(crate) fn open(ui: Ui) -> Self {
        let status = StatusOutput::open(ui);
        let fd_limit = FdLimit::raise();
        if let Some(message) = fd_limit.and_then(FdLimit::raised_message) {
            status.info(&message);
        }
        Self { status, control: Control::new(), fd_limit, handles_signals: false, push: None }
    }

    /// Pushes the results to this, too.
    pub(crate) fn push_to(&mut self, target: Option<&PushTarget>) {
        self.push = target.cloned();
    }

    /// Pushes the figures of a run that is over, if that is wanted.
    pub(crate) fn push_metrics(&self, run: &str, page: &str) {
        push(self.push.as_ref(), run, page, &self.status);
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
    /// The run could not start or finish. Errors of the target are in the summary instead.
    pub(crate) fn run_plan(&mut self, plan: Plan, options: &RunOptions) -> Result<FinishedRun> {
        let prepared = self.prepare(plan, options)?;
        let mut measured = self.measure(prepared)?;
        measured.summary.ignore(&options.ignored);
        self.report(&measured, None, options)?;
        let (exit, rest) = (measured.result(None).exit(options.allow_invalid), measured.rest());
        Ok(FinishedRun { summary: measured.summary, exit, rest })
    }

    /// Prepares a plan: its folder, and its probe.
    ///
    /// # Errors
    /// The plan or a page to watch cannot be used, the folder cannot be written, or the probe found
    /// that the load would be pointless.
    pub(crate) fn prepare(&self, plan: Plan, options: &RunOptions) -> Result<PreparedRun> {
        // First: the CPU time that the hypervisor steals is observed until the load begins.
        let machine = EnvironmentScan::start(self.fd_limit);
        let limits = folder::limits(&plan.thresholds)?;
        let steps = Steps::passing(&self.status, "preparing the run");
        let target = target_process(&plan);
        let runner = Runner::new(plan).map_err(runner_error)?;
        drop(steps);
        let mut runner = watch(runner, options)?.target_is(target);
        self.warn_about_fd_limit(runner.prepared().plan());
        for (file, trace) in runner.prepared().plan().traffic_files() {
            let screen = traffic_screen(trace.summary());
            self.status.info(&format!("{}\n{}", file.display(), screen.trim_end()));
        }
        let hash = plan_hash(&serde_json::to_value(runner.prepared().plan())?);
        let metadata = runner.metadata_mut();
        metadata.environment = machine.so_far();
        metadata.run.plan_hash = hash;
        env!("PLIMSOLL_BUILD").clone_into(&mut metadata.run.build);
        metadata.run.launch.clone_from(&options.launch.id);
        if let Some(output) = &options.output {
            let started = utc_compact(metadata.run.started_unix_ns);
            runner.create_folder(output, &started).map_err(runner_error)?;
        }
        if let Some(warning) = runner.folder().and_then(RunDir::low_disk_warning) {
            self.status.warn(&warning);
        }
        if let Some(start) = options.launch.start {
            runner.start_at(start).map_err(runner_error)?;
        }
        if options.launch.stop_on_loss {
            runner.stop_on_loss();
        }
        if options.probe {
            self.probe(&mut runner)?;
        }
        Ok(PreparedRun { runner, machine, limits, until_saturated: options.until_saturated })
    }

    /// Sends the probe requests. A finding that would make the load pointless is an error.
    fn probe(&self, runner: &mut Runner) -> Result<()> {
        let _shown = Steps::passing(&self.status, "checking the target with one request");
        runner.probe()?;
        let fatal = runner.fatal_findings();
        if !fatal.is_empty() {
            let (all, no_load) =
                (fatal.join("\n"), "no load was sent (use --no-probe to send it anyway)");
            return Err(TargetError(format!("{all}; {no_load}")).into());
        }
        Ok(())
    }

    /// Carries out a prepared run, which Ctrl-C ends early.
    ///
    /// # Errors
    /// The load could not run.
    pub(crate) fn measure(&mut self, prepared: PreparedRun) -> Result<Measured> {
        let PreparedRun { mut runner, machine, limits, until_saturated } = prepared;
        self.handle_signals()?;
        runner.metadata_mut().environment = machine.finish();
        let run = runner.prepared();
        let shown = Shown::new(run, &limits);
        let targets = run.plan().targets.iter().map(|target| target.name.clone()).collect();
        let mut view = RunView {
            progress: ProgressView::begin(&self.status, &self.control, shown),
            status: self.status.clone(),
            targets,
            told: 0,
            saturation: until_saturated.then(|| Saturation::new(run.metadata())),
            control: self.control.clone(),
            stopped: None,
        };
        let mut finished = runner.run(&self.control, &mut |progress| view.interval(progress))?;
        if let Some(reason) = view.stopped {
            finished.result.stopped = Some(reason.to_owned());
            // The next level may have begun before the decision; its few answers measure nothing.
            let judged = view.saturation.as_ref().map_or(usize::MAX, |sweep| sweep.level);
            let later = finished.result.metadata.stages.iter_mut().skip(judged);
            later.for_each(|stage| stage.warmup = stage.duration_s > 0.0);
        }
        drop(view);
        let _shown = Steps::passing(&self.status, "adding up the results");
        finished.result.health.calibration = last_calibration();
        let mut summary = finished.summary(&limits)?;
        summary.bottleneck = why(&summary).bottleneck();
        let record = finished.record(&summary)?;
        let comparison = Comparison {
            taken_out: finished.result.taken_out,
            tracks: finished.result.tracks,
            error: finished.result.blocks.error,
        };
        summary.add_time_facts(&record.facts);
        let (run_dir, status) = (finished.folder, finished.status);
        Ok(Measured { summary, record, run_dir, status, comparison })
    }

    fn warn_about_fd_limit(&self, plan: &Plan) {
        let connections = connections(plan);
        let warning = self.fd_limit.and_then(|fd_limit| fd_limit.warning(connections));
        if let Some(warning) = warning {
            self.status.warn(&warning);
        }
    }

    /// Makes Ctrl-C end the current load, and a second one the process.
    ///
    /// # Errors
    /// Where signals cannot be handled.
    pub(crate) fn handle_signals(&mut self) -> Result<()> {
        if !std::mem::replace(&mut self.handles_signals, true) {
            let (control, status) = (self.control.clone(), self.status.clone());
            exit::on_run_signal(move |signal| match signal {
                RunSignal::Interrupt => {
                    control.interrupt();
                    status.interrupted(ENDING);
                }
                signal => status.follow(signal),
            })?;
        }
        Ok(())
    }

    /// Prints the report before it writes the files, because a full disk must not lose it. Gives
    /// the screen.
    ///
    /// # Errors
    /// The report cannot be printed, or the files cannot be written.
    pub(crate) fn report(
        &self,
        measured: &Measured,
        versus: Option<&Versus>,
        options: &RunOptions,
    ) -> Result<Screen> {
        let result = measured.result(versus);
        let mut screen = result.screen(measured.rest());
        if measured.run_dir.is_none() {
            screen.file(NO_FILES);
        }
        result.print(&screen, options.show)?;
        console::write_junit(options.junit.as_deref(), &screen)?;
        if let Some(run_dir) = &measured.run_dir {
            result.write(run_dir, &measured.record)?;
            if let Some(profile) = &options.profile {
                run_dir.write(file::PROFILE, profile.as_bytes())?;
            }
            run_dir.commit(&measured.status)?;
        }
        self.push_metrics(&measured.summary.metadata.run.name, &result.figures());
        if options.show == Show::Full {
            console::print_end(&screen)?;
        }
        Ok(screen)
    }
}

/// Has the processes watched that flags name. A page that cannot be read is found before the load.
fn watch(runner: Runner, options: &RunOptions) -> Result<Runner, UsageError> {
    let (mut processes, mut pages) = (Vec::new(), Vec::new());
    for watch in options.watch.iter().cloned() {
        match watch {
            Watch::Process(process) => processes.push(process),
            Watch::Page(page) => pages.push(page),
        }
    }
    for page in &pages {
        let read = page.check();
        read.map_err(|error| UsageError(format!("--watch {}: {error}", page.name)))?;
    }
    // The servers are the same for all shards.
    let reads = runner.prepared().plan().shard.index() == 0;
    let servers = options.servers.iter().filter(|_| reads).cloned().collect();
    Ok(runner.watch(processes).watch_pages(pages, servers))
}

/// The process of this host that listens at the address of the run's only target.
fn target_process(plan: &Plan) -> Option<u32> {
    let [target] = plan.targets.as_slice() else { return None };
    listens_at(&target.url)
}

/// The process of this host that listens at a URL.
pub(crate) fn listens_at(url: &TargetUrl) -> Option<u32> {
    url.is_loopback().then(|| listener(url.port()).ok()).flatten()
}

/// A plan that cannot be prepared is wrong usage.
pub(crate) fn runner_error(error: RunnerError) -> anyhow::Error {
    if error.is_usage() { UsageError(error.to_string()).into() } else { error.into() }
}

/// Connections that a plan needs at once, as far as the plan tells: one for each virtual user.
fn connections(plan: &Plan) -> u64 {
    let users = plan.stages.0.iter().map(|stage| match stage.load {
        Load::Closed { from, to } => plan.shard.share(from.max(to).into()),
        Load::Open { .. } | Load::Trace => 0,
    });
    users.max().unwrap_or(0)
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

/// Pushes the figures of a run or of a suite, if that is wanted. They are in its files, too, so a
/// failure is only told.
pub(crate) fn push(target: Option<&PushTarget>, run: &str, page: &str, status: &StatusOutput) {
    let Some(target) = target else { return };
    let host = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    if let Err(error) = target.push(run, &host.unwrap_or_default(), page) {
        status.warn(&error.to_string());
    }
}

/// Shows the progress of a run, and reports targets that were dropped from a comparison.
struct RunView {
    progress: ProgressView,
    status: StatusOutput,
    targets: Vec<String>,
    /// Number of dropped targets that were reported.
    told: usize,
    /// Saturation of a sweep that ends early.
    saturation: Option<Saturation>,
    control: Control,
    /// Why the sweep ended.
    stopped: Option<&'static str>,
}

impl RunView {
    fn interval(&mut self, progress: &Progress<'_>) {
        self.progress.show(progress);
        if self.stopped.is_none() {
            self.stopped = self.saturation.as_mut().and_then(|sweep| sweep.reason(progress));
            self.stopped.iter().for_each(|_| self.control.decide());
        }
        let out = self.targets.iter().zip(progress.taken_out);
        let mut out: Vec<_> = out.filter_map(|(name, at)| Some(((*at)?, name))).collect();
        out.sort();
        for (at, name) in out.iter().skip(self.told) {
            let seconds = at.as_secs_f64();
            self.status.warn(&format!("{name} was dropped after {seconds:.0} s: {FAILING}"));
        }
        self.told = out.len();
    }
}

/// A level that gives less than this more than the one before, beyond their intervals, shows
/// saturation.
const LEAST_GAIN: f64 = 1.05;
/// A level with a larger share of failed requests is the last.
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

// The contents of a file of recorded traffic, as text.

/// The screen of recorded traffic: its contents, and every member that the import does not use.
pub(crate) fn traffic_screen(summary: &Summary) -> String {
    let Summary { format, why, also, sessions, requests, most_turns, unused, .. } = summary;
    let span = summary.span_ms.map(|ms| format!("{:.3} s", ms / 1e3));
    let mut rows = vec![("format", format!("{format}: {why}"))];
    if let Some(stages) = &summary.stages {
        let requests = "the requests are `GET /` unless a profile has others";
        rows.push(("stages", format!("{stages}; {requests}")));
    } else {
        let most = count(*most_turns);
        rows.extend([
            ("sessions", count(*sessions)),
            ("requests", format!("{} (at most {most} in a session)", count(*requests))),
            ("input tokens", tokens(summary.in_tokens)),
            ("output tokens", tokens(summary.out_tokens)),
            ("time span", span.unwrap_or_else(|| "no times".to_owned())),
        ]);
    }
    if !also.is_empty() {
        rows.insert(1, ("also fits", format!("--as {}", also.join(", --as "))));
    }
    if summary.failed > 0 {
        rows.push(("failed", format!("{} with status 400 or higher; sent", count(summary.failed))));
    }
    if summary.skipped > 0 {
        let first = summary.skipped_first.join("; ");
        rows.push(("broken", format!("{} skipped: {first}", count(summary.skipped))));
    }
    if unused.is_empty() {
        rows.push(("not used", "nothing".to_owned()));
    }
    let names = ["not used"].into_iter().chain(std::iter::repeat(""));
    let unused = unused.iter().map(|(member, times)| format!("{:>7} {member}", count(*times)));
    rows.extend(names.zip(unused));
    let lines = rows.iter().map(|(name, value)| format!("{name:<14} {value}"));
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

fn tokens(Tokens { stated, unknown }: Tokens) -> String {
    match (stated, unknown) {
        (0, 1..) => "not recorded".to_owned(),
        (_, 0) => count(stated),
        _ => format!("{}; not recorded for {} requests", count(stated), count(unknown)),
    }
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

    #[test]
    fn a_file_with_a_load_alone_has_no_counts_of_requests() {
        let summary = Summary { stages: Some("@10:5s".to_owned()), ..Summary::default() };
        let screen = traffic_screen(&summary);
        let is_named = |name: &str| screen.lines().any(|line| line.starts_with(name));
        assert!(screen.contains("stages         @10:5s; the requests are `GET /`"), "{screen}");
        for name in ["sessions", "requests", "input tokens", "output tokens", "time span"] {
            assert!(!is_named(name), "{screen}");
        }
    }
}
