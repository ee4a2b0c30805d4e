//! One run divided among several processes of this host: each is a shard, they begin together, and
//! their results are merged.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::num::NonZero;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{env, fs};

use anyhow::{Context as _, Error, Result, anyhow};
use plimsoll_engine::Control;
use plimsoll_measure::{Nanos, RunId};
use plimsoll_plan::Plan;
use plimsoll_run_files::{RowFormat, ShardProgress, read_shard_progress};
use plimsoll_runner::folder::{self, RunDirOptions, file};
use plimsoll_runner::time::sleep;
use plimsoll_runner::{ChildProcess, CommonStart, StartAt};
use serde::{Deserialize, Serialize};

use crate::command::merge::{self, Asked, Whole};
use crate::console::Show;
use crate::exit::{Exit, TargetError, UsageError, exit_now};
use crate::progress::{ShardsView, Steps, Ui};
use crate::session::{FinishedRun, Launch, RunOptions, Session};

/// Pause between two looks at the processes.
const PAUSE: Duration = Duration::from_millis(50);

/// Runs a plan in this process, or divided among as many as the options say.
///
/// # Errors
/// Same as the errors of a run, and of a divided run.
pub(crate) fn run_plan(
    session: &mut Session,
    plan: Plan,
    options: &RunOptions,
) -> Result<FinishedRun> {
    match options.launch.processes {
        Some(count) => run(session, &plan, count, options),
        None => session.run_plan(plan, options),
    }
}

/// Runs the load in several processes, and prints their merged result.
///
/// # Errors
/// A process cannot begin, or no result can be merged.
fn run(
    session: &mut Session,
    plan: &Plan,
    count: u64,
    options: &RunOptions,
) -> Result<FinishedRun> {
    session.handle_signals()?;
    let run_id = plan.run_id.clone().unwrap_or_else(RunId::random).to_string();
    let place = Place::new(options.output.clone(), &run_id)?;
    let launch = RunId::random().to_string();
    let mut division = Division::start(&place, [&run_id, &launch], count, options)?;
    let begun = division.wait_until_begun(session, &place);
    if let Err(error) = begun {
        division.end();
        place.remove();
        return Err(error);
    }
    // Also for a process that is killed.
    session.status().info(&how_to_merge(&place.run, count));
    division.follow(session, &place.run, options.launch.stop_on_loss);
    for line in lines_of_all(&mut division.processes) {
        session.status().warn(&line);
    }
    let adding = Steps::passing(session.status(), "adding up the results");
    let lost_at_most = options.launch.lost_at_most;
    let asked = Asked { expect: Some(count), launch: Some(&launch), lost_at_most };
    let merged = merge::merge(std::slice::from_ref(&place.run), asked, place.keep.as_ref());
    drop(adding);
    let whole = merged.and_then(|mut whole| {
        whole.summary.ignore(&options.ignored);
        whole.print(options.show, options.junit.as_deref())?;
        whole.check_written()?;
        place.tidy(&whole)?;
        Ok(whole)
    });
    let whole = whole.with_context(|| how_to_merge(&place.run, count))?;
    if let (Some(folder), Some(profile)) = (&whole.folder, &options.profile) {
        folder::replace(folder, file::PROFILE, profile.as_bytes())?;
    }
    session.push_metrics(&whole.summary.metadata.run.name, &whole.result().figures());
    let (exit, rest) = (whole.result().exit(options.allow_invalid), whole.rest());
    Ok(FinishedRun { summary: whole.summary, exit, rest })
}

/// Where the folders of the shards are.
struct Place {
    /// The folder in which each run has its own.
    out: PathBuf,
    /// The folder of this run, which contains the folders of its shards.
    run: PathBuf,
    /// Where the whole is kept, if it is.
    keep: Option<RunDirOptions>,
}

impl Place {
    fn new(keep: Option<RunDirOptions>, run_id: &str) -> Result<Self> {
        let out = match &keep {
            Some(options) => options.out.clone(),
            None => env::temp_dir().join(format!("plimsoll-{}", std::process::id())),
        };
        // The processes have the same folder as this one, wherever they look from.
        fs::create_dir_all(&out).with_context(|| {
            format!(
                "cannot write to the folder {}; choose a writable one with --out",
                out.display()
            )
        })?;
        let run = out.join(run_id);
        if run.exists() {
            let why = format!(
                "{} already exists: this run id was used before; choose another --run-id or --out, or remove the folder",
                run.display()
            );
            return Err(UsageError(why).into());
        }
        Ok(Self { out, run, keep })
    }

    /// Removes the folders of a run that did not begin.
    fn remove(&self) {
        // A leftover folder does no harm.
        let _ = fs::remove_dir_all(&self.run);
        if self.keep.is_none() {
            let _ = fs::remove_dir(&self.out);
        }
    }

    /// Moves the shards into the folder of the merged run; without one, deletes them.
    fn tidy(&self, whole: &Whole) -> Result<()> {
        let Some(whole) = &whole.folder else {
            self.remove();
            return Ok(());
        };
        let shards = whole.join("shards");
        fs::rename(&self.run, &shards)
            .with_context(|| format!("cannot move {} to {}", self.run.display(), shards.display()))
    }
}

/// The processes of a run.
struct Division {
    processes: Vec<Process>,
    count: u64,
    interrupted: bool,
}

impl Division {
    fn start(
        place: &Place,
        [run_id, launch]: [&str; 2],
        count: u64,
        options: &RunOptions,
    ) -> Result<Self> {
        let mut processes = Vec::new();
        for index in 0..count {
            let order = ChildOrder {
                index,
                count,
                run_id: run_id.to_owned(),
                launch: launch.to_owned(),
                out: place.out.clone(),
                stop_on_loss: options.launch.stop_on_loss,
                rows: place.keep.as_ref().and_then(|options| options.rows),
            };
            let started = Process::start(&order);
            processes.push(started.context("cannot start a process of the run")?);
        }
        Ok(Self { processes, count, interrupted: false })
    }

    /// Waits until the common start is fixed. A process that ends before that ends the run.
    fn wait_until_begun(&mut self, session: &Session, place: &Place) -> Result<()> {
        let text = format!("waiting until {} processes are ready", self.count);
        let _shown = Steps::passing(session.status(), &text);
        let start = place.run.join(file::START);
        while !start.exists() {
            self.forward_interrupt(session);
            self.processes.iter_mut().try_for_each(Process::still_waits)?;
            sleep(PAUSE);
        }
        Ok(())
    }

    /// Shows the progress until all have ended.
    fn follow(&mut self, session: &Session, run: &Path, stop_on_loss: bool) {
        let mut view = ShardsView::begin(session.status(), self.count);
        loop {
            self.forward_interrupt(session);
            let (mut running, mut is_lost) = (0, false);
            for process in &mut self.processes {
                running += u64::from(process.ended().is_none());
                is_lost |= tell_of_loss(session, process, run);
            }
            if is_lost && stop_on_loss {
                session.control().interrupt();
            }
            view.show(&self.progress(run), running);
            if running == 0 {
                return;
            }
            sleep(PAUSE);
        }
    }

    fn progress(&self, run: &Path) -> Vec<ShardProgress> {
        (0..self.count)
            .filter_map(|index| {
                let path = run.join(folder::shard_name(index, self.count)).join(file::PROGRESS);
                read_shard_progress(&plimsoll_input::read(&path).ok()?).ok()
            })
            .collect()
    }

    /// Hands the user's Ctrl-C on, once; a second one ends this process and thereby the others.
    fn forward_interrupt(&mut self, session: &Session) {
        if session.control().is_interrupted() && !std::mem::replace(&mut self.interrupted, true) {
            self.processes.iter().for_each(Process::interrupt);
        }
    }

    /// Ends all of them.
    fn end(&mut self) {
        self.processes.iter().for_each(Process::interrupt);
        self.processes.iter_mut().for_each(Process::wait);
    }
}

/// Location of the shards, and the command to merge them if this process cannot.
fn how_to_merge(run: &Path, count: u64) -> String {
    let run = run.display();
    format!("the shards are in {run}; merge them: plimsoll merge {run} --expect {count}")
}

/// Reports at once, and only once, that a process exited without its last file: the load no longer
/// follows the plan.
fn tell_of_loss(session: &Session, process: &mut Process, run: &Path) -> bool {
    let Some(ended) = process.newly_ended() else { return false };
    let folder = run.join(folder::shard_name(process.index, process.count));
    let is_lost = !folder.join(file::SHARD).exists();
    if is_lost {
        let (name, how) = (process.name(), how(ended));
        session.status().warn(&format!("lost shard {name}: it {how}"));
    }
    is_lost
}

// One of the processes of a run: its start, and its work.

/// The variable with a process's order; its command line is the one of the whole run.
const VARIABLE: &str = "PLIMSOLL_PROCESS";
/// Between the readiness of all processes and the start.
const LEAD: Nanos = Nanos::from_millis(300);
/// Time limit for the wait for other processes: a failed process ends the run much earlier.
const LONGEST_WAIT: Nanos = Nanos::from_secs(600);

/// Work order for one process of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ChildOrder {
    /// Its part, from 0.
    pub(crate) index: u64,
    /// All parts.
    pub(crate) count: u64,
    /// The id of the run.
    pub(crate) run_id: String,
    /// The launch of the run.
    pub(crate) launch: String,
    /// The folder in which each run has its own.
    pub(crate) out: PathBuf,
    /// Whether it stops when another one ends early.
    pub(crate) stop_on_loss: bool,
    /// Format of the file with a row for each request; `None` if the process writes none.
    pub(crate) rows: Option<RowFormat>,
}

impl ChildOrder {
    /// The order of this process, if another Plimsoll process started it.
    pub(crate) fn from_environment() -> Result<Option<Self>> {
        let Ok(text) = env::var(VARIABLE) else { return Ok(None) };
        let order = serde_json::from_str(&text);
        Ok(Some(order.map_err(|_| {
            UsageError(format!("{VARIABLE} is set by --processes for its own processes: unset it"))
        })?))
    }

    /// The part, `k/n`.
    pub(crate) fn shard(&self) -> String {
        format!("{}/{}", self.index, self.count)
    }

    /// Runs the part. Only warnings and errors are printed; the folder is the result.
    ///
    /// # Errors
    /// Same as the errors of any run.
    pub(crate) fn carry_out(&self, mut plan: Plan, options: RunOptions) -> Result<Exit> {
        let (mut session, options) = self.open(&mut plan, options)?;
        Ok(session.run_plan(plan, &options)?.exit)
    }

    /// Session and options for a part: a session that prints only warnings and errors, and options
    /// with the folder and the common start.
    ///
    /// # Errors
    /// The process cannot follow its parent.
    pub(crate) fn open(
        &self,
        plan: &mut Plan,
        options: RunOptions,
    ) -> Result<(Session, RunOptions)> {
        share_cores(plan, self.count);
        let session = Session::open(Ui::Quiet);
        follow_parent(session.control().clone())?;
        let output = RunDirOptions { out: self.out.clone(), rows: self.rows, page: false };
        let start = Some(CommonStart { at: StartAt::AllReady(LEAD), limit: LONGEST_WAIT });
        let (id, stop_on_loss) = (self.launch.clone(), self.stop_on_loss);
        let launch = Launch { id, start, stop_on_loss, ..Launch::default() };
        let (output, show) = (Some(output), Show::Nothing);
        let options = RunOptions { output, launch, show, junit: None, ..options };
        Ok((session, options))
    }
}

/// Gives all processes together one worker for each core. With more processes than cores, workers
/// do not spin for deadlines, because a spinning worker would delay another process.
fn share_cores(plan: &mut Plan, processes: u64) {
    let cores = thread::available_parallelism().map_or(1, NonZero::get) as u64;
    let own = u16::try_from(cores / processes).unwrap_or(u16::MAX).max(1);
    plan.limits.workers.get_or_insert(own);
    if processes > cores {
        plan.instrument.spin = Nanos::ZERO;
    }
}

/// Ends the load when the process that ordered it is gone: its end of the pipe closes.
fn follow_parent(control: Control) -> io::Result<()> {
    thread::Builder::new()
        .name("plimsoll-parent".to_owned())
        .spawn(move || {
            // The parent never writes to the pipe.
            let _ = io::stdin().read(&mut [0]);
            if control.is_interrupted() {
                exit_now();
            }
            control.interrupt();
        })
        .map(drop)
}

/// A process of a run.
struct Process {
    index: u64,
    count: u64,
    child: ChildProcess,
    /// Closed when this process ends, however it does: the other one then ends its load.
    _alive: Option<ChildStdin>,
    /// Whether its end was reported.
    told: bool,
    /// Output of the process.
    said: Option<JoinHandle<String>>,
}

impl Process {
    fn start(order: &ChildOrder) -> Result<Self> {
        let mut command = Command::new(env::current_exe()?);
        command
            .args(env::args_os().skip(1))
            .env(VARIABLE, serde_json::to_string(order)?)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            // Ctrl-C reaches it through this process, once.
            .process_group(0);
        let mut child = ChildProcess::spawn(&mut command)?;
        let said = child.stderr().map(|mut stderr| {
            thread::spawn(move || {
                let mut said = Vec::new();
                // Output that was read before an error is kept.
                let _ = stderr.read_to_end(&mut said);
                String::from_utf8_lossy(&said).into_owned()
            })
        });
        let (index, count, alive) = (order.index, order.count, child.stdin());
        Ok(Self { index, count, child, _alive: alive, told: false, said })
    }

    /// Its part, `k/n`.
    fn name(&self) -> String {
        format!("{}/{}", self.index, self.count)
    }

    /// Exit status; `None` while the process is running.
    fn ended(&mut self) -> Option<ExitStatus> {
        self.child.ended()
    }

    /// The same, once.
    fn newly_ended(&mut self) -> Option<ExitStatus> {
        let ended = self.ended()?;
        (!std::mem::replace(&mut self.told, true)).then_some(ended)
    }

    /// Hands Ctrl-C on.
    fn interrupt(&self) {
        // It may have ended.
        let _ = self.child.interrupt();
    }

    fn wait(&mut self) {
        // It is gone in either case.
        let _ = self.child.wait();
    }

    /// The lines that it said, once it has ended.
    fn said(&mut self) -> Vec<String> {
        let said = self.said.take().and_then(|said| said.join().ok()).unwrap_or_default();
        said.lines().map(str::to_owned).collect()
    }

    /// Before the common start a process that has ended is an error.
    fn still_waits(&mut self) -> Result<()> {
        self.ended().map_or(Ok(()), |ended| Err(self.why_not_begun(ended)))
    }

    /// Why a process ended before the common start: its own words, and its exit code.
    fn why_not_begun(&mut self, ended: ExitStatus) -> Error {
        let (name, lines) = (self.name(), self.said());
        let from = lines.iter().position(|line| unlabelled(line).is_some()).unwrap_or(0);
        let said: Vec<_> = lines[from..]
            .iter()
            .map(|line| unlabelled(line).unwrap_or_else(|| line.clone()))
            .collect();
        let said = said.join("\n");
        let why = match (ended.code(), said.is_empty()) {
            (Some(_), false) => format!("{said}\n(process {name} of the run; no load was sent)"),
            _ => format!(
                "process {name} of the run {} before the load; nothing was sent",
                how(ended)
            ),
        };
        match ended.code() {
            Some(code) if code == i32::from(Exit::Usage.number()) => UsageError(why).into(),
            Some(code) if code == i32::from(Exit::Fail.number()) => TargetError(why).into(),
            _ => anyhow!(why),
        }
    }
}

/// How the lines of a failed process begin.
const LABELS: [&str; 2] = ["error: ", "FAIL: "];

/// How a process ended, as a verb.
fn how(ended: ExitStatus) -> String {
    match (ended.code(), ended.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (_, Some(signal)) => format!("was killed by signal {signal}"),
        _ => "ended".to_owned(),
    }
}

/// Output of the processes: each line once, with the processes that printed it unless all did.
fn lines_of_all(processes: &mut [Process]) -> Vec<String> {
    let (mut order, mut by_line) = (Vec::new(), BTreeMap::<String, Vec<String>>::new());
    for process in processes.iter_mut() {
        for line in process.said() {
            let line = line.strip_prefix("warning: ").unwrap_or(&line).to_owned();
            let sayers = by_line.entry(line.clone()).or_default();
            if sayers.is_empty() {
                order.push(line);
            }
            sayers.push(process.name());
        }
    }
    let all = processes.len();
    let told = order.into_iter().map(|line| match by_line.get(&line) {
        Some(sayers) if sayers.len() < all => format!("shard {}: {line}", sayers.join(", ")),
        _ => line,
    });
    told.collect()
}

/// A line without its label, if it has one.
fn unlabelled(line: &str) -> Option<String> {
    LABELS.iter().find_map(|label| line.strip_prefix(label).map(str::to_owned))
}
