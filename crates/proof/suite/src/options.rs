//! The options of a suite, as the user gives them.

use std::path::PathBuf;

use plimsoll_measure::Nanos;
use plimsoll_metrics::{CalibrationQuote, Environment};
use plimsoll_plan::redacted_path;

/// The user's gateway.
#[derive(Clone, Default)]
pub struct ExternalTarget {
    /// Its name in the report, where there are several: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Base URL; its query may have credentials, see [`ExternalTarget::shown_url`].
    pub url: String,
    /// Its key, sent as `Authorization: Bearer`.
    pub key: Option<String>,
    /// Headers of every request, `NAME: VALUE`.
    pub headers: Vec<String>,
    /// Model asked for in chats.
    pub model: Option<String>,
    /// Whether its certificate is accepted without verification.
    pub insecure: bool,
    /// Whether HTTP/2 is spoken: by ALPN over TLS, by prior knowledge over plain TCP.
    pub http2: bool,
    /// Its process, if it runs on this host: its CPU time and memory are then measured.
    pub pid: Option<u32>,
}

impl ExternalTarget {
    /// The URL as outputs show it.
    pub fn shown_url(&self) -> String {
        redacted_path(&self.url)
    }
}

/// Shows the address alone: key and headers are secrets.
impl std::fmt::Debug for ExternalTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExternalTarget").field("url", &self.shown_url()).finish_non_exhaustive()
    }
}

/// The user's choices.
#[derive(Clone, Debug)]
pub struct SuiteOptions {
    /// The `plimsoll` binary, which also runs as gateway and provider.
    pub exe: PathBuf,
    /// The user's gateways, in place of the reference gateway.
    pub targets: Vec<ExternalTarget>,
    /// What is behind them, which they are measured against.
    pub direct: Option<ExternalTarget>,
    /// Short measurements: the whole suite within two minutes on two cores.
    pub short: bool,
    /// Length of each measurement, in place of the suite's own.
    pub duration: Option<Nanos>,
    /// Clients of each measurement, in place of the suite's own.
    pub clients: Option<u32>,
    /// Passes of each measurement, in place of the suite's own.
    pub passes: Option<u32>,
    /// Port of the reference gateway, 0 for any free one; `None` for the suite's own.
    pub port: Option<u16>,
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
