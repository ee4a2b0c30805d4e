//! One of the processes of a run: its start, and its work.

use std::collections::BTreeMap;
use std::env;
use std::io::{self, Read as _};
use std::num::NonZero;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};

use anyhow::{Error, Result, anyhow};
use plimsoll_engine::Control;
use plimsoll_measure::Nanos;
use plimsoll_plan::Plan;
use plimsoll_run_files::RowFormat;
use plimsoll_runner::folder::RunDirOptions;
use plimsoll_runner::{ChildProcess, CommonStart, StartAt};
use serde::{Deserialize, Serialize};

use crate::console::Show;
use crate::exit::{Exit, TargetError, UsageError};
use crate::progress::Ui;
use crate::session::{Launch, RunOptions, Session};
use crate::signal::exit_now;

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
pub(super) struct Process {
    pub(super) index: u64,
    pub(super) count: u64,
    child: ChildProcess,
    /// Closed when this process ends, however it does: the other one then ends its load.
    _alive: Option<ChildStdin>,
    /// Whether it was told that it ended.
    told: bool,
    /// Output of the process.
    said: Option<JoinHandle<String>>,
}

impl Process {
    pub(super) fn start(order: &ChildOrder) -> Result<Self> {
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
    pub(super) fn name(&self) -> String {
        format!("{}/{}", self.index, self.count)
    }

    /// Exit status; `None` while the process is running.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.ended()
    }

    /// The same, once.
    pub(super) fn newly_ended(&mut self) -> Option<ExitStatus> {
        let ended = self.ended()?;
        (!std::mem::replace(&mut self.told, true)).then_some(ended)
    }

    /// Hands Ctrl-C on.
    pub(super) fn interrupt(&self) {
        // It may have ended.
        let _ = self.child.interrupt();
    }

    pub(super) fn wait(&mut self) {
        // It is gone in either case.
        let _ = self.child.wait();
    }

    /// The lines that it said, once it has ended.
    fn said(&mut self) -> Vec<String> {
        let said = self.said.take().and_then(|said| said.join().ok()).unwrap_or_default();
        said.lines().map(str::to_owned).collect()
    }

    /// Before the common start a process that has ended is an error.
    pub(super) fn still_waits(&mut self) -> Result<()> {
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
pub(super) fn how(ended: ExitStatus) -> String {
    match (ended.code(), ended.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (_, Some(signal)) => format!("was killed by signal {signal}"),
        _ => "ended".to_owned(),
    }
}

/// Output of the processes: each line once, with the processes that printed it unless all did.
pub(super) fn lines_of_all(processes: &mut [Process]) -> Vec<String> {
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
