//! The shipped tool in a separate process, for experiments about the whole of it: lateness, result,
//! exit code.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use plimsoll_harness::ChildProcess;
use plimsoll_metrics::{RunSummary, Validity};

use crate::error::CalibrateError;
use crate::runner::Runner;

/// A `plimsoll http` that is running. Dropped, it is ended.
#[derive(Debug)]
pub(crate) struct ToolProcess {
    child: ChildProcess,
    out: PathBuf,
}

/// The result of a run of the tool.
#[derive(Debug)]
pub(crate) struct ToolResult {
    /// The exit code; `None` where a signal ended it.
    pub(crate) exit: Option<i32>,
    pub(crate) summary: RunSummary,
}

impl ToolResult {
    /// Why the run was declared invalid; empty for a valid one.
    pub(crate) fn reasons(&self) -> Vec<&str> {
        match &self.summary.validity {
            Validity::Valid => Vec::new(),
            Validity::Invalid(reasons) => {
                reasons.iter().map(|reason| reason.what.as_str()).collect()
            }
        }
    }
}

impl ToolProcess {
    /// Starts `plimsoll http URL FLAGS` on the generator's core. `name` must be unique.
    pub(crate) fn http(
        runner: &Runner,
        name: &str,
        url: &str,
        flags: &str,
    ) -> Result<Self, CalibrateError> {
        let (exe, out) = (runner.exe()?, runner.temp_dir().join(name));
        let mut command = Command::new(exe);
        command.args(["http", url, "--warmup", "0", "--quiet", "--out"]).arg(&out);
        command.args(flags.split_whitespace());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = runner.on_generator_core(|| {
            ChildProcess::spawn(&mut command)
                .map_err(CalibrateError::system("cannot start the tool"))
        })?;
        Ok(Self { child, out })
    }

    /// Suspends the whole process, whatever it is doing.
    pub(crate) fn suspend(&self) -> Result<(), CalibrateError> {
        self.child.suspend().map_err(CalibrateError::system("cannot suspend the tool"))
    }

    /// Lets it continue.
    pub(crate) fn resume(&self) -> Result<(), CalibrateError> {
        self.child.resume().map_err(CalibrateError::system("cannot resume the tool"))
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.has_ended()
    }

    /// Waits for its end, and reads its summary.
    pub(crate) fn finish(mut self) -> Result<ToolResult, CalibrateError> {
        let status =
            self.child.wait().map_err(CalibrateError::system("cannot wait for the tool"))?;
        Ok(ToolResult { exit: status.code(), summary: read_summary(&self.out)? })
    }
}

/// The summary of the only run in a folder of runs.
pub(crate) fn read_summary(out: &Path) -> Result<RunSummary, CalibrateError> {
    let mut folders = fs::read_dir(out).map_err(CalibrateError::system("no run's folder"))?;
    let folder = folders.find_map(Result::ok);
    let path = folder.map(|folder| folder.path().join("summary.json")).unwrap_or_default();
    let text =
        fs::read_to_string(path).map_err(CalibrateError::system("the tool left no summary"))?;
    Ok(serde_json::from_str(&text)?)
}
