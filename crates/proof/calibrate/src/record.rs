//! The calibration record: results of the experiments on this host. Later runs quote it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::CalibrateError;
use crate::finding::{ExperimentResult, Finding};

/// Version of the record's layout.
pub const SCHEMA: &str = "plimsoll.calibration/2";

/// The machine on which a calibration holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Operating system and kernel version.
    pub kernel: String,
    /// CPU model.
    pub cpu: String,
    /// Cores that the calibration could use.
    pub cores: usize,
}

impl Host {
    /// This machine.
    pub fn read() -> Self {
        let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        Self {
            name: trimmed_file("/proc/sys/kernel/hostname"),
            kernel: trimmed_file("/proc/sys/kernel/osrelease"),
            cpu: model.map_or_else(String::new, |(_, model)| model.trim().to_owned()),
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        }
    }
}

fn trimmed_file(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// The instrument's own limits on this host, from T1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Floor {
    /// Median response time of an idle server, one request at a time, in microseconds.
    pub response_time_p50_us: f64,
    /// The same, 99th percentile.
    pub response_time_p99_us: f64,
    /// Requests per second of one worker over 64 connections.
    pub highest_rate: f64,
}

/// Cost of load on this host, from T29.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// CPU time of a plain HTTP request, in microseconds.
    pub cpu_us_per_request: f64,
    /// The same of a chat with 550 tokens of input and a whole answer.
    pub cpu_us_per_chat: f64,
    /// CPU time of an event of a stream, in microseconds.
    pub cpu_us_per_event: f64,
    /// Memory of an open stream, in bytes.
    pub bytes_per_stream: f64,
    /// Time to read and add the counts of a shard, in milliseconds.
    pub merge_ms_per_shard: f64,
}

/// The findings of a calibration, when and where they were made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of the tool.
    pub tool_version: String,
    /// When, in seconds since 1970 UTC.
    pub taken_unix_s: u64,
    /// Where.
    pub host: Host,
    /// Whether the generator and the reference server had a core each.
    pub separate_cores: bool,
    /// Whether this is a debug build: it is slower, so its results do not apply to a release build.
    pub debug_build: bool,
    /// The instrument's own limits, if T1 ran.
    pub floor: Option<Floor>,
    /// Cost of load on this host, if T29 ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub costs: Option<Costs>,
    /// Every experiment that was asked for.
    pub findings: Vec<Finding>,
}

impl Record {
    /// `$XDG_STATE_HOME/plimsoll/calibration.json`, else below `~/.local/state`; `None` without a
    /// home directory.
    pub fn default_path() -> Option<PathBuf> {
        let state = path_of_variable("XDG_STATE_HOME")
            .or_else(|| Some(path_of_variable("HOME")?.join(".local/state")))?;
        Some(state.join("plimsoll/calibration.json"))
    }

    /// The record at the usual place; `None` if this host was never calibrated, or the record was
    /// made on another host or has another layout.
    ///
    /// # Errors
    /// A record that is there and cannot be read.
    pub fn load() -> Result<Option<Self>, CalibrateError> {
        Self::default_path().map_or(Ok(None), |path| Self::load_from(&path))
    }

    /// The same from any file.
    ///
    /// # Errors
    /// Same as [`Record::load`].
    pub fn load_from(path: &Path) -> Result<Option<Self>, CalibrateError> {
        Self::read(path).map_err(unusable(path))
    }

    fn read(path: &Path) -> io::Result<Option<Self>> {
        let text = match plimsoll_input::read_text(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read?,
        };
        let value: serde_json::Value = serde_json::from_str(&text)?;
        if value.get("schema").is_none_or(|schema| schema != SCHEMA) {
            return Ok(None);
        }
        let record: Self = serde_json::from_value(value)?;
        Ok((record.host == Host::read()).then_some(record))
    }

    /// Writes the record, whole or not at all.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn store(&self, path: &Path) -> Result<(), CalibrateError> {
        let text = serde_json::to_string_pretty(self)?;
        let fresh = path.with_extension("json.new");
        path.parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| fs::write(&fresh, text + "\n"))
            .and_then(|()| fs::rename(&fresh, path))
            .map_err(unusable(path))
    }

    /// Whether every experiment passed. An experiment that could not run did not pass.
    pub fn passed(&self) -> bool {
        !self.findings.is_empty() && self.failed().next().is_none()
    }

    /// Numbers of experiments that passed, and that failed or could not run.
    pub fn counts(&self) -> (u32, u32) {
        let failed = self.failed().count();
        let [passed, failed] = [self.findings.len() - failed, failed]
            .map(|number| u32::try_from(number).unwrap_or(u32::MAX));
        (passed, failed)
    }

    /// Names of the experiments that failed or could not run, such as `T4 known stall`.
    pub fn failed_tests(&self) -> Vec<String> {
        let names = self.failed().map(|test| format!("{} {}", test.experiment, test.title));
        names.collect()
    }

    fn failed(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.result != ExperimentResult::Pass)
    }
}

fn unusable(path: &Path) -> impl FnOnce(io::Error) -> CalibrateError {
    CalibrateError::system(format!("cannot use the calibration record {}", path.display()))
}

fn path_of_variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}
