//! The shipped tool in a separate process, for experiments about the whole of it: lateness, result,
//! exit code.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use plimsoll_measure::{Clock as _, Moment, MonotonicClock};
use plimsoll_metrics::{
    BoundedFigure, DistributionSummary, Finding, Level, Metric, QUANTILES, RunSummary,
};
use plimsoll_runner::ChildProcess;
use plimsoll_runner::time::sleep;

use crate::error::CalibrateError;
use crate::runner::Runner;

/// A run of the tool that is going on. Dropped, it is ended.
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
    pub(crate) fn reasons(&self) -> Vec<String> {
        self.summary.of_level(Level::Invalid).map(Finding::label).collect()
    }

    /// A percentile of the measured stages in milliseconds, with its limit; `None` if there are too
    /// few requests for it.
    pub(crate) fn percentile(&self, metric: Metric, percentile: &str) -> Option<BoundedFigure> {
        let quantile = QUANTILES.iter().find(|quantile| quantile.key == percentile)?;
        self.times(metric)?.figure(quantile)
    }

    /// Completed requests per second of the measured stages, with their limit.
    pub(crate) fn throughput(&self) -> Option<BoundedFigure> {
        self.summary.results.total.named_rate("throughput")
    }

    /// The times of the measured stages.
    pub(crate) fn times(&self, metric: Metric) -> Option<&DistributionSummary> {
        self.summary.results.total.distribution(metric)
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
        let flags = flags.split_whitespace().map(str::to_owned);
        let command = ["http", url, "--warmup", "0"].map(str::to_owned).into_iter().chain(flags);
        Self::start(runner, name, command)
    }

    /// Starts `plimsoll run PROFILE` with one worker, with a name that must be unique.
    pub(crate) fn profile(
        runner: &Runner,
        name: &str,
        url: &str,
        profile: &str,
    ) -> Result<Self, CalibrateError> {
        let file = runner.temp_dir().join(format!("{name}.yaml"));
        let text =
            format!("name: {name}\ntarget: {url}\nmodel: mock\nkey: test\nworkers: 1\n{profile}\n");
        fs::write(&file, text).map_err(CalibrateError::system("cannot write a profile"))?;
        let command = ["run".to_owned(), file.display().to_string(), "--no-probe".to_owned()];
        Self::start(runner, name, command.into_iter())
    }

    fn start(
        runner: &Runner,
        name: &str,
        args: impl Iterator<Item = String>,
    ) -> Result<Self, CalibrateError> {
        let (exe, out) = (runner.exe()?, runner.temp_dir().join(name));
        let mut command = Command::new(exe);
        command.args(args).args(["--quiet", "--out"]).arg(&out);
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

    /// Suspends it for a time, and returns how long it really was, in milliseconds.
    pub(crate) fn suspend_for(&self, length: Duration) -> Result<f64, CalibrateError> {
        let clock = MonotonicClock::start();
        self.suspend()?;
        sleep(length);
        self.resume()?;
        Ok(clock.now().since(Moment::EPOCH).as_millis_f64())
    }

    /// Lets it continue.
    pub(crate) fn resume(&self) -> Result<(), CalibrateError> {
        self.child.resume().map_err(CalibrateError::system("cannot resume the tool"))
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> String {
        self.child.pid().to_string()
    }

    /// Whether the process has ended without a signal from us.
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
fn read_summary(out: &Path) -> Result<RunSummary, CalibrateError> {
    let mut folders = fs::read_dir(out).map_err(CalibrateError::system("no run's folder"))?;
    let folder = folders.find_map(Result::ok);
    let path = folder.map(|folder| folder.path().join("summary.json")).unwrap_or_default();
    let text =
        fs::read_to_string(path).map_err(CalibrateError::system("the tool left no summary"))?;
    Ok(serde_json::from_str(&text)?)
}
