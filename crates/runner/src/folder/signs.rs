//! Small files by which the shards of a launch start and stop together.

use std::path::{Path, PathBuf};

use plimsoll_engine::Control;
use plimsoll_measure::{Clock as _, Moment, MonotonicClock, Nanos};
use plimsoll_run_files::{ShardSign, read_shard_sign, shard_sign_json};

use super::{file, replace};
use crate::error::RunnerError;

/// A sign of this launch; `None` if it is missing or from another launch.
pub(crate) fn read_sign(
    folder: &Path,
    name: &str,
    launch: &str,
) -> Result<Option<ShardSign>, RunnerError> {
    let path = folder.join(name);
    let Ok(bytes) = plimsoll_input::read(&path) else { return Ok(None) };
    match read_shard_sign(&bytes) {
        Ok(sign) => Ok(Some(sign).filter(|sign| sign.launch == launch)),
        // Whoever writes it may be at it.
        Err(_) if !bytes.ends_with(b"\n") => Ok(None),
        Err(error) => Err(RunnerError::BrokenStart(format!("{}: {error}", path.display()))),
    }
}

pub(crate) fn write_sign(
    folder: &Path,
    name: &str,
    launch: &str,
    unix_ns: u64,
) -> Result<(), RunnerError> {
    let sign = ShardSign { launch: launch.to_owned(), unix_ns, ..ShardSign::default() };
    replace(folder, name, shard_sign_json(&sign)?.as_bytes())
}

/// Ends the load of all shards when one of them ends early.
pub(crate) struct CommonStop {
    /// The folder that the shards share.
    pub(crate) run: PathBuf,
    pub(crate) launch: String,
    pub(crate) clock: MonotonicClock,
    /// Between two looks at the folder.
    pub(crate) pause: Nanos,
    /// When it is looked at again.
    pub(crate) next: Moment,
}

impl CommonStop {
    /// Ends the load if another shard stopped, and asks the others to stop if this one was ended.
    pub(crate) fn follow(&mut self, control: &Control) {
        let now = self.clock.now();
        let is_interrupted = control.is_interrupted();
        if !is_interrupted && now < self.next {
            return;
        }
        self.next = now + self.pause;
        let stop = read_sign(&self.run, file::STOP, &self.launch).ok().flatten();
        if stop.is_some() {
            control.interrupt();
        } else if is_interrupted {
            // If the file cannot be written, the other shards continue.
            let unix_ns = self.clock.unix_nanos(now);
            let _ = write_sign(&self.run, file::STOP, &self.launch, unix_ns);
        }
    }
}
