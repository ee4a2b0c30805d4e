//! The options of a suite, as the user gives them.

use std::path::PathBuf;

use plimsoll_measure::Nanos;
use plimsoll_metrics::{CalibrationQuote, Environment};

use crate::suite::GatewaysFile;
use crate::target::SuiteTarget;

/// The user's choices.
#[derive(Clone, Debug, Default)]
pub struct SuiteOptions {
    /// The `plimsoll` binary, which also runs as gateway and provider.
    pub exe: PathBuf,
    /// The user's gateways, in place of the reference gateway.
    pub targets: Vec<SuiteTarget>,
    /// The gateways of `suite gateways`.
    pub gateways: Option<GatewaysFile>,
    /// The upstream, which they are measured against.
    pub direct: Option<SuiteTarget>,
    /// Short measurements: the whole suite within three minutes or so on two cores.
    pub short: bool,
    /// Length of each measurement, in place of the suite's own.
    pub duration: Option<Nanos>,
    /// Warm-up before each measurement that has one, in place of the suite's own.
    pub warmup: Option<Nanos>,
    /// Clients of each measurement, in place of the suite's own.
    pub clients: Option<u32>,
    /// Passes of each measurement, in place of the suite's own.
    pub passes: Option<u32>,
    /// Port of the reference gateway, 0 for any free one; `None` for the suite's own.
    pub port: Option<u16>,
    /// Threads of the load, in place of one for each core.
    pub threads: Option<u16>,
    /// The parts of `layers` that are measured; empty for all.
    pub only: Vec<&'static str>,
    /// The user's notes on the environment: name and value.
    pub notes: Vec<(String, String)>,
    /// Other facts about the machine: name and value.
    pub machine: Vec<(String, String)>,
    /// Whether the user's gateways were started just now, so that `policy` may show a cold run.
    pub just_started: bool,
    /// The client that policy requests name.
    pub client_id: Option<String>,
    /// Folder for the files of the suite; it exists.
    pub folder: PathBuf,
    /// The machine.
    pub environment: Environment,
    /// The last calibration on this host.
    pub calibration: Option<CalibrationQuote>,
    /// An earlier `suite.json` to compare with.
    pub against: Option<PathBuf>,
    /// Time for the search of each knee, in place of the suite's own; zero for no search.
    pub knee_budget: Option<Nanos>,
    /// A further rate for which the report sizes the number of instances.
    pub size_for: Option<f64>,
    /// The command line, to repeat the suite, with the variables that it was given.
    pub command: String,
    /// Wall-clock time of the start, `YYYYMMDDThhmmssZ`.
    pub started: String,
}
