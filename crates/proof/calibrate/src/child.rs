//! The shipped tool in a process of its own, where the test is about the whole of it: lateness, result, exit code.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::Signal;
use plimsoll_metrics::RunSummary;

use crate::bench::Bench;
use crate::error::CalibrateError;
use crate::server::send;

/// A `plimsoll http` that is running. Dropped, it is ended.
#[derive(Debug)]
pub(crate) struct Tool {
    child: Child,
    out: PathBuf,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct ChildResult {
    /// The exit code; `None` where a signal ended it.
    pub(crate) exit: Option<i32>,
    pub(crate) summary: RunSummary,
}

impl ChildResult {
    /// What the run was declared invalid for; empty for a valid one.
    pub(crate) fn reasons(&self) -> Vec<&str> {
        match &self.summary.validity {
            plimsoll_metrics::Validity::Valid => Vec::new(),
            plimsoll_metrics::Validity::Invalid(reasons) => {
                reasons.iter().map(|reason| reason.what.as_str()).collect()
            }
        }
    }
}

impl Tool {
    /// Starts `plimsoll http URL FLAGS` on the generator's core. `name` is of its own for each run.
    pub(crate) fn http(
        bench: &Bench,
        name: &str,
        url: &str,
        flags: &str,
    ) -> Result<Self, CalibrateError> {
        let (exe, out) = (bench.exe()?, bench.scratch().join(name));
        let mut command = Command::new(exe);
        command.args(["http", url, "--warmup", "0", "--quiet", "--out"]).arg(&out);
        command.args(flags.split_whitespace());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = bench.on_generator_core(|| {
            command.spawn().map_err(CalibrateError::system("cannot start the tool"))
        })?;
        Ok(Self { child, out })
    }

    /// Stops the whole process, whatever it is doing.
    pub(crate) fn stop(&self) -> Result<(), CalibrateError> {
        send(&self.child, Signal::SIGSTOP)
    }

    /// Lets it go on.
    pub(crate) fn go_on(&self) -> Result<(), CalibrateError> {
        send(&self.child, Signal::SIGCONT)
    }

    /// Has it ended by itself?
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for its end, and reads its summary.
    pub(crate) fn finish(mut self) -> Result<ChildResult, CalibrateError> {
        let status =
            self.child.wait().map_err(CalibrateError::system("cannot wait for the tool"))?;
        let mut folders =
            fs::read_dir(&self.out).map_err(CalibrateError::system("no run's folder"))?;
        let folder = folders.find_map(Result::ok);
        let path = folder.map(|folder| folder.path().join("summary.json")).unwrap_or_default();
        let text =
            fs::read_to_string(path).map_err(CalibrateError::system("the tool left no summary"))?;
        Ok(ChildResult { exit: status.code(), summary: serde_json::from_str(&text)? })
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        // Where it has ended, there is nothing to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
