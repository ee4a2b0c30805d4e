//! Helpers: a temporary folder to run the binary in, and a mock to load.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use plimsoll_metrics::{Judgement, RunSummary, ThresholdResult};
use plimsoll_mock::{Mock, MockConfig};
use plimsoll_run_files::read_summary;
use tempfile::TempDir;

/// Configuration of a mock that responds at once.
pub(crate) const FAST: &str = "{}";

pub(crate) struct Fixture {
    pub(crate) folder: TempDir,
    pub(crate) mock: Mock,
}

/// The exit code and output of the binary.
pub(crate) struct ProcessOutput {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl ProcessOutput {
    /// Panics with the output unless the exit code is the expected one.
    pub(crate) fn expect(self, code: i32) -> Self {
        let Self { code: ended, stdout, stderr } = &self;
        assert_eq!(*ended, Some(code), "stdout:\n{stdout}\nstderr:\n{stderr}");
        self
    }
}

impl ProcessOutput {
    /// Panics unless stdout has at most 80 columns and 60 lines, and returns its last line. The
    /// verdict is never cut, and paths, such as those in temporary folders, may be wider.
    #[track_caller]
    pub(crate) fn expect_screen(&self) -> &str {
        let lines: Vec<_> = self.stdout.lines().collect();
        let (last, above) = lines.split_last().unwrap();
        let wide = above
            .iter()
            .find(|line: &&&str| line.chars().count() > 80 && !line.starts_with("files: "));
        assert!(lines.len() <= 60 && wide.is_none(), "{wide:?}:\n{}", self.stdout);
        last
    }
}

impl From<Output> for ProcessOutput {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Fixture {
    /// A folder, and a mock with this configuration (YAML).
    pub(crate) fn with(config: &str) -> Self {
        let config = MockConfig::from_yaml(config).unwrap();
        let mock = Mock::spawn(&config, SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        Self { folder: tempfile::tempdir().unwrap(), mock }
    }

    pub(crate) fn target(&self) -> String {
        format!("http://{}", self.mock.addr())
    }

    /// Runs the binary to its end.
    pub(crate) fn plimsoll(&self, args: &[&str]) -> ProcessOutput {
        command(self.folder.path(), args).output().unwrap().into()
    }

    /// Runs `plimsoll run --quiet` against the mock.
    pub(crate) fn run(&self, args: &[&str]) -> ProcessOutput {
        self.plimsoll(&self.run_args(args).iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Starts the same without waiting for its end.
    pub(crate) fn start(&self, args: &[&str]) -> Child {
        let args = self.run_args(args);
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        command(self.folder.path(), &args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Runs a command without `--quiet` and the like; the host may still make its run invalid.
    ///
    /// Expects exit code 0 from a run that its own summary calls valid, and 3 from any other.
    pub(crate) fn run_as_its_summary_says(&self, args: &[&str]) -> ProcessOutput {
        let output = self.plimsoll(args);
        let summary = self.summary();
        let sound = summary.is_valid()
            && summary.thresholds.iter().all(|threshold: &ThresholdResult| {
                !matches!(threshold.judgement, Judgement::Inconclusive(_))
            });
        output.expect(if sound { 0 } else { 3 })
    }

    fn run_args(&self, args: &[&str]) -> Vec<String> {
        let target = self.target();
        // Tests share the machine, so their runs may be invalid.
        let fixed = ["run", "--target", &target, "--key", "any", "--quiet", "--allow-invalid"];
        fixed.iter().chain(args).map(ToString::to_string).collect()
    }

    /// Waits until the mock has received this many requests.
    pub(crate) fn wait_for_requests(&self, count: u64) {
        let arrived = wait_until(|| self.mock.stats().requests >= count);
        assert!(arrived, "too few requests arrived: {:?}", self.mock.stats());
    }

    /// The folders of the runs, sorted by name.
    pub(crate) fn runs(&self) -> Vec<PathBuf> {
        let runs = fs::read_dir(self.folder.path().join("runs"));
        let mut all: Vec<_> =
            runs.into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
        all.sort();
        all
    }

    /// The folder of the only run.
    pub(crate) fn only_run(&self) -> PathBuf {
        let runs = self.runs();
        assert_eq!(runs.len(), 1, "{runs:?}");
        runs.into_iter().next().unwrap()
    }

    /// The summary of the only run.
    pub(crate) fn summary(&self) -> RunSummary {
        summary(&self.only_run())
    }
}

pub(crate) fn summary(run: &Path) -> RunSummary {
    read_summary(&fs::read(run.join("summary.json")).unwrap()).unwrap()
}

/// The binary, run in a folder, without the variables that override profiles.
pub(crate) fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.current_dir(folder).args(args);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PLIMSOLL_")) {
        command.env_remove(name);
    }
    command
}

/// Waits for a condition, for a minute at most: hosts of tests may be many times as slow as others.
/// Returns whether it was met.
pub(crate) fn wait_until(mut met: impl FnMut() -> bool) -> bool {
    (0..12_000).any(|_| {
        let is_met = met();
        if !is_met {
            pause();
        }
        is_met
    })
}

/// Runs a check up to `times` times, because a pause of the host may change its facts, and panics
/// with the last reason if all attempts fail.
pub(crate) fn attempt(times: u32, mut once: impl FnMut() -> Result<(), String>) {
    let mut why = String::new();
    for _ in 0..times {
        match once() {
            Ok(()) => return,
            Err(error) => why = error,
        }
    }
    panic!("{times} attempts: {why}");
}

#[expect(clippy::disallowed_methods, reason = "a test waits for another process")]
pub(crate) fn pause() {
    std::thread::sleep(Duration::from_millis(5));
}
