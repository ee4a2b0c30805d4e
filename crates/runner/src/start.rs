//! The common start of shards: one instant for all of them, and never one's own.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_engine::{Control, StartGate};
use plimsoll_measure::{Clock as _, Moment, MonotonicClock, Nanos, Stripe};
use plimsoll_rules::number::time;
use plimsoll_run_files::ShardSign;

use crate::error::{RunnerError, names};
use crate::folder::{self, file, read_sign, write_sign};
use crate::time::sleep;

/// Longest sleep before a look at Ctrl-C.
const PAUSE: Nanos = Nanos::from_millis(10);
/// The last part of the wait is the workers' own: their timers are exact.
const LEAD: Nanos = Nanos::from_millis(20);
/// All shards but the first together look for its sign so often: the folder may be on a shared
/// disk.
const LOOK: Nanos = Nanos::from_millis(10);
/// Number of shards that shard 0 checks before it sleeps, and the length of this sleep.
const AT_ONCE: usize = 12;
const BETWEEN: Nanos = Nanos::from_millis(160);

/// When a run begins, if not as soon as it is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartAt {
    /// At a wall-clock time, in nanoseconds since 1970 UTC.
    Unix(u64),
    /// Delay after the request.
    After(Nanos),
    /// Delay after all shards are ready. `start.json` beside their folders has the time; shard 0
    /// writes it once it sees the folders of all others, unless a launcher does.
    AllReady(Nanos),
}

/// When a run begins, and how long it waits for that at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommonStart {
    /// When.
    pub at: StartAt,
    /// The longest wait.
    pub limit: Nanos,
}

/// Result of the wait; `None` while waiting.
pub(crate) type Waited = Arc<Mutex<Option<Result<ShardSign, RunnerError>>>>;

/// Waits for the common start.
#[derive(Debug)]
pub(crate) struct StartWait {
    pub(crate) start: CommonStart,
    pub(crate) shard: Stripe,
    /// The launch of the shard: it ignores the start of any other.
    pub(crate) launch: String,
    /// The folder of the shard.
    pub(crate) folder: Option<PathBuf>,
    pub(crate) waited: Waited,
}

impl StartWait {
    /// Checks before the first request that a start that is known already can be kept.
    pub(crate) fn check(&self, clock: &MonotonicClock) -> Result<(), RunnerError> {
        let start = match self.start.at {
            StartAt::AllReady(_) => read_sign(self.folders().1, file::START, &self.launch)?,
            StartAt::Unix(unix_ns) => Some(at(unix_ns)),
            StartAt::After(after) => Some(at(clock.unix_nanos(Moment::EPOCH + after))),
        };
        start.map_or(Ok(()), |start| self.moment(&start, clock).map(drop))
    }

    /// The folder of the shard, and the folder that the shards share.
    fn folders(&self) -> (&Path, &Path) {
        let folder = self.folder.as_deref().unwrap_or_else(|| Path::new("."));
        (folder, folder.parent().unwrap_or(folder))
    }

    fn start(&self, clock: &MonotonicClock, control: &Control) -> Result<ShardSign, RunnerError> {
        match self.start.at {
            StartAt::Unix(unix_ns) => Ok(at(unix_ns)),
            StartAt::After(after) => Ok(at(clock.unix_nanos(Moment::EPOCH + after))),
            StartAt::AllReady(lead) => self.agree(lead, clock, control),
        }
    }

    /// Says that this shard is ready, and waits for the sign of the start. Shard 0 alone looks for
    /// the others.
    fn agree(
        &self,
        lead: Nanos,
        clock: &MonotonicClock,
        control: &Control,
    ) -> Result<ShardSign, RunnerError> {
        let (folder, run) = self.folders();
        write_sign(folder, file::READY, &self.launch, clock.unix_nanos(clock.now()))?;
        let (end, count) = (clock.now() + self.start.limit, self.shard.count());
        let mut missing: Vec<_> = (0..count).filter(|_| self.shard.index() == 0).collect();
        loop {
            if let Some(start) = read_sign(run, file::START, &self.launch)? {
                return Ok(start);
            }
            if clock.now() >= end {
                missing.retain(|index| !is_ready(run, *index, count));
                return Err(RunnerError::NotReady { who: names(&missing, count) });
            }
            let mut looked = missing.split_off(missing.len().saturating_sub(AT_ONCE));
            let pause = if self.shard.index() == 0 { BETWEEN } else { times(LOOK, count) };
            sleep_until(end.min(clock.now() + pause), clock, control)?;
            looked.retain(|index| !is_ready(run, *index, count));
            missing.splice(..0, looked);
            if self.shard.index() == 0 && missing.is_empty() {
                // The others look for it so often.
                let at = clock.now() + lead + times(LOOK, count);
                write_sign(run, file::START, &self.launch, clock.unix_nanos(at))?;
            }
        }
    }

    /// When a start is by our own clock.
    fn moment(&self, start: &ShardSign, clock: &MonotonicClock) -> Result<Moment, RunnerError> {
        // One reading of the wall clock, when the run was prepared; from there the monotonic one.
        let epoch = clock.unix_nanos(Moment::EPOCH);
        let (at, now) = (start.unix_ns.saturating_sub(epoch), clock.now());
        let at = Moment::from_nanos(at);
        if now > at {
            let late = Nanos::new(clock.unix_nanos(now).saturating_sub(start.unix_ns));
            let who = format!("shard {}/{}", self.shard.index(), self.shard.count());
            let who = if self.shard == Stripe::WHOLE { "the run".to_owned() } else { who };
            let start = Box::new(start.clone());
            return Err(RunnerError::Late { who, late: shown(late), start, late_by: late });
        }
        if at.since(now) > self.start.limit {
            return Err(RunnerError::TooFar { ahead: shown(at.since(now)) });
        }
        Ok(at)
    }
}

impl StartGate for StartWait {
    fn wait(&mut self, clock: &MonotonicClock, control: &Control) -> Option<Moment> {
        let waited = self.start(clock, control).and_then(|start| {
            let at = self.moment(&start, clock)?;
            // The workers' own timers take over.
            sleep_until(at - LEAD, clock, control)?;
            Ok((start, at))
        });
        let at = waited.as_ref().ok().map(|(_, at)| *at);
        let waited = waited.map(|(start, _)| start);
        *self.waited.lock().unwrap_or_else(PoisonError::into_inner) = Some(waited);
        at
    }
}

fn shown(length: Nanos) -> String {
    time(length.as_millis_f64())
}

/// A start at a time of the wall clock.
fn at(unix_ns: u64) -> ShardSign {
    ShardSign { unix_ns, ..ShardSign::default() }
}

/// Sleeps until then, unless the user ends the wait.
fn sleep_until(at: Moment, clock: &MonotonicClock, control: &Control) -> Result<(), RunnerError> {
    while clock.now() < at {
        if control.is_interrupted() {
            return Err(RunnerError::InterruptedBeforeStart);
        }
        sleep(at.since(clock.now()).min(PAUSE));
    }
    Ok(())
}

fn times(length: Nanos, count: u64) -> Nanos {
    Nanos::new(length.as_u64().saturating_mul(count))
}

/// Whether a shard has said that it is ready.
fn is_ready(run: &Path, index: u64, count: u64) -> bool {
    run.join(folder::shard_name(index, count)).join(file::READY).exists()
}
