//! One run divided among several processes of this host: each is a shard, they begin together, and
//! their results are merged.

mod child;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use plimsoll_measure::RunId;
use plimsoll_plan::Plan;
use plimsoll_run_files::{ShardProgress, read_shard_progress};
use plimsoll_runner::folder::{self, RunDirOptions, file};
use plimsoll_runner::time::sleep;

pub(crate) use self::child::ChildOrder;
use self::child::{Process, lines_of_all};
use crate::command::merge::{self, Asked, Whole};
use crate::exit::UsageError;
use crate::progress::{ShardsView, Steps};
use crate::session::{FinishedRun, RunOptions, Session};

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
                "{} is there already: this run id has run; choose another --run-id or --out, or remove the folder",
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
        let (name, how) = (process.name(), child::how(ended));
        session.status().warn(&format!("lost shard {name}: it {how}"));
    }
    is_lost
}
