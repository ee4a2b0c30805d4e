//! The common start of shards: one instant for all of them, and never one's own.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_engine::{Control, StartGate};
use plimsoll_measure::{Clock as _, Moment, MonotonicClock, Nanos, Stripe};
use plimsoll_run_files::{
    ShardReady, ShardStart, read_shard_start, shard_ready_json, shard_start_json,
};

use crate::folder::{self, file};
use crate::time::sleep;
use crate::waited::Waited;

/// Pause between two looks for the others.
const PAUSE: Nanos = Nanos::from_millis(10);
/// The last part of the wait is the workers' own: their timers are exact.
const LEAD: Nanos = Nanos::from_millis(20);

/// When a run begins, if not as soon as it is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartAt {
    /// At a wall-clock time, in nanoseconds since 1970 UTC.
    Unix(u64),
    /// So long after it was asked for.
    After(Nanos),
    /// So long after all shards are ready. `start.json` beside their folders says when; shard 0
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

/// Waits for the common start.
#[derive(Debug)]
pub(crate) struct StartWait {
    start: CommonStart,
    shard: Stripe,
    folder: Option<PathBuf>,
    waited: Arc<Mutex<Waited>>,
}

impl StartWait {
    /// A wait that has not begun; `folder` is that of the shard.
    pub(crate) fn new(start: CommonStart, shard: Stripe, folder: Option<PathBuf>) -> Self {
        Self { start, shard, folder, waited: Arc::default() }
    }

    /// Where its outcome will be.
    pub(crate) fn outcome(&self) -> Arc<Mutex<Waited>> {
        Arc::clone(&self.waited)
    }

    fn start(&self, clock: &MonotonicClock, control: &Control) -> Result<ShardStart, Waited> {
        let unix_ns = match self.start.at {
            StartAt::Unix(unix_ns) => unix_ns,
            StartAt::After(after) => clock.unix_nanos(Moment::EPOCH + after),
            StartAt::AllReady(lead) => return self.agree(lead, clock, control),
        };
        Ok(ShardStart { unix_ns, ..ShardStart::default() })
    }

    /// Says that this shard is ready, and waits for the sign of the start.
    fn agree(
        &self,
        lead: Nanos,
        clock: &MonotonicClock,
        control: &Control,
    ) -> Result<ShardStart, Waited> {
        let folder = self.folder.as_deref().unwrap_or_else(|| Path::new("."));
        let run = folder.parent().unwrap_or(folder);
        self.say_ready(folder, clock).map_err(Waited::Broken)?;
        let end = clock.now() + self.start.limit;
        loop {
            if let Some(start) = read_start(run)? {
                return Ok(start);
            }
            let missing = not_ready(run, self.shard.count());
            if self.shard.index() == 0 && missing.is_empty() {
                write_start(run, clock.unix_nanos(clock.now() + lead))?;
            } else if control.is_interrupted() {
                return Err(Waited::Interrupted);
            } else if clock.now() >= end {
                return Err(Waited::NotReady(missing));
            } else {
                sleep(PAUSE);
            }
        }
    }

    fn say_ready(&self, folder: &Path, clock: &MonotonicClock) -> Result<(), String> {
        let ready = ShardReady {
            shard: format!("{}/{}", self.shard.index(), self.shard.count()),
            unix_ns: clock.unix_nanos(clock.now()),
            pid: std::process::id(),
            ..ShardReady::default()
        };
        let json = shard_ready_json(&ready).map_err(|error| error.to_string())?;
        folder::replace(folder, file::READY, json.as_bytes()).map_err(|error| error.to_string())
    }

    /// Waits until the workers' own timers can take over.
    fn wait_until(
        &self,
        start: ShardStart,
        clock: &MonotonicClock,
        control: &Control,
    ) -> Result<(ShardStart, Moment), Waited> {
        // One reading of the wall clock, when the run was prepared; from there the monotonic one.
        let epoch = clock.unix_nanos(Moment::EPOCH);
        let (at, now) = (start.unix_ns.saturating_sub(epoch), clock.now());
        let at = Moment::from_nanos(at);
        if now > at {
            let late = clock.unix_nanos(now).saturating_sub(start.unix_ns);
            return Err(Waited::Late(start, Nanos::new(late)));
        }
        if at.since(now) > self.start.limit {
            return Err(Waited::TooFar(at.since(now)));
        }
        while clock.now() + LEAD < at {
            if control.is_interrupted() {
                return Err(Waited::Interrupted);
            }
            let left = (at - LEAD).since(clock.now());
            sleep(left.min(PAUSE));
        }
        Ok((start, at))
    }
}

impl StartGate for StartWait {
    fn wait(&mut self, clock: &MonotonicClock, control: &Control) -> Option<Moment> {
        let start = self.start(clock, control);
        let start = start.and_then(|start| self.wait_until(start, clock, control));
        let (waited, at) = match start {
            Ok((start, at)) => (Waited::Began(start), Some(at)),
            Err(waited) => (waited, None),
        };
        *self.waited.lock().unwrap_or_else(PoisonError::into_inner) = waited;
        at
    }
}

fn read_start(run: &Path) -> Result<Option<ShardStart>, Waited> {
    let path = run.join(file::START);
    let Ok(bytes) = plimsoll_input::read(&path) else { return Ok(None) };
    match read_shard_start(&bytes) {
        Ok(start) => Ok(Some(start)),
        // Whoever writes it may be at it.
        Err(_) if !bytes.ends_with(b"\n") => Ok(None),
        Err(error) => Err(Waited::Broken(format!("{}: {error}", path.display()))),
    }
}

fn write_start(run: &Path, unix_ns: u64) -> Result<(), Waited> {
    let start = ShardStart { unix_ns, ..ShardStart::default() };
    let json = shard_start_json(&start).map_err(|error| Waited::Broken(error.to_string()))?;
    folder::replace(run, file::START, json.as_bytes())
        .map_err(|error| Waited::Broken(error.to_string()))
}

/// The shards that have not said that they are ready.
fn not_ready(run: &Path, count: u64) -> Vec<u64> {
    (0..count)
        .filter(|index| !run.join(folder::shard_name(*index, count)).join(file::READY).exists())
        .collect()
}
