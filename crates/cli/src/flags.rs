//! Flags that several commands share.

mod keys;
mod load;
mod shards;

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
pub(crate) use keys::{
    HttpFlags, LlmFlags, ProfileFlags, TargetFlags, ThresholdFlags, VersusFlags,
};
pub(crate) use load::{LoadFlags, ReadFlags, TrafficFlags};
use plimsoll_engine::{MetricsPageError, ProcessStat, WatchedPage, WatchedProcess, listener};
use plimsoll_export::PushTarget;
use plimsoll_measure::Nanos;
use plimsoll_metrics::{Level, Rule};
use plimsoll_profile::Profile;
use plimsoll_run_files::RowFormat;
use plimsoll_runner::folder::RunDirOptions;
use serde_json::{Map, Value};
pub(crate) use shards::{Part, SessionFlags};

use crate::console::Show;
use crate::exit::UsageError;
use crate::flags::keys::LabelFlags;
use crate::progress::{Ui, UiFlag};
use crate::session::{Launch, RunOptions, Watch};

/// Flags for the files of a run.
#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputFlags {
    #[command(flatten)]
    folder: FolderFlags,
    /// Do not write results.jsonl, which has one line per request
    #[arg(long)]
    no_jsonl: bool,
    /// Write results.jsonl.zst instead, compressed by zstd: a sixth of the size with many rows
    #[arg(long, conflicts_with = "no_jsonl")]
    zstd: bool,
}

/// Flags for the folder of a result.
#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct FolderFlags {
    /// Parent folder of the results; each has its own, named by time and name
    #[arg(long, value_name = "DIR", default_value = "runs", value_hint = ValueHint::DirPath)]
    out: PathBuf,
    /// Do not write report.html, the page with charts
    #[arg(long)]
    no_html: bool,
}

impl FolderFlags {
    /// The options of the folder.
    pub(crate) fn options(&self, rows: Option<RowFormat>) -> RunDirOptions {
        RunDirOptions { out: self.out.clone(), rows, page: !self.no_html }
    }
}

/// Flags for the probe, the exit code and watched processes.
#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct RunFlags {
    /// Write the verdict, the thresholds and the findings as XML for `JUnit`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    junit: Option<PathBuf>,
    /// Do not send probe requests before the load
    #[arg(long)]
    no_probe: bool,
    /// Do not exit with code 3 when the run is invalid (Plimsoll did not keep up); the report still
    /// says so
    #[arg(long)]
    allow_invalid: bool,
    /// Suppress warnings and notes by their codes, like PL204 (repeatable, comma-separated);
    /// `plimsoll rule` lists them
    #[arg(long, value_name = "CODE", value_delimiter = ',', value_parser = ignored)]
    ignore: Vec<u16>,
    /// Report the CPU and memory use of a process on this host and its children, by its ID like
    /// `gateway=4711` or by the port that it listens on like `gateway=:8080`; on another host its
    /// CPU use, by a page of metrics like `gateway=http://10.0.0.2:9100/metrics` (repeatable). For
    /// `plimsoll why`, name the parts gateway, upstream and store
    #[arg(long, value_name = "NAME=PID|:PORT|URL", value_parser = watch)]
    watch: Vec<Watch>,
    /// Read a server's own metrics once a second: requests running and waiting, KV cache, prefix
    /// hits, preemptions, like `vllm=http://10.0.0.2:8000/metrics`; `#model_name=NAME` behind it
    /// selects series by a label (repeatable). The guide to metrics lists the known servers
    #[arg(long, value_name = "NAME=URL", value_parser = server)]
    server_metrics: Vec<WatchedPage>,
    #[command(flatten)]
    screen: ScreenFlags,
    #[command(flatten)]
    json: JsonFlag,
}

/// The flag for programs that read the result.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct JsonFlag {
    /// Print levels.json instead of the main figures
    #[arg(long, conflicts_with = "full")]
    json: bool,
}

/// Reads the code of a rule that may be left out.
fn ignored(text: &str) -> Result<u16, String> {
    let rule = Rule::find(text).ok_or_else(|| unknown_rule(text))?;
    match rule.level {
        Level::Warning | Level::Note => Ok(rule.code),
        Level::Invalid => Err(format!(
            "{} makes a run invalid and cannot be ignored; --allow-invalid accepts it",
            rule.label()
        )),
        Level::Fail => Err(format!(
            "{} fails a run and cannot be ignored; --allow-failures accepts failed requests",
            rule.label()
        )),
    }
}

/// Error for an unknown rule, with the correct name.
pub(crate) fn unknown_rule(text: &str) -> String {
    format!("unknown rule `{text}`: expected a code such as PL204 (`plimsoll rule` lists them)")
}

/// Reads `NAME=PID`, `NAME=:PORT` or `NAME=URL`.
fn watch(text: &str) -> Result<Watch, String> {
    match text.split_once('=').filter(|(_, place)| place.contains("://")) {
        Some(_) => server(text).map(Watch::Page),
        None => watched_process(text).map(Watch::Process),
    }
}

/// Reads `NAME=URL`.
fn server(text: &str) -> Result<WatchedPage, String> {
    let named = text.split_once('=').filter(|(name, _)| !name.is_empty() && !name.contains("://"));
    let (name, url) = named.ok_or("the name is missing; write NAME=URL")?;
    let page = url.parse().map_err(|error: MetricsPageError| error.to_string())?;
    Ok(WatchedPage { name: name.to_owned(), page })
}

/// Reads `NAME=PID` or `NAME=:PORT`.
pub(crate) fn watched_process(text: &str) -> Result<WatchedProcess, String> {
    let fix = "write NAME=PID or NAME=:PORT, like gateway=4711 or gateway=:8080";
    let (name, process) = text.split_once('=').ok_or(fix)?;
    if name.is_empty() {
        return Err(format!("the name is empty; {fix}"));
    }
    let pid = match process.strip_prefix(':') {
        Some(port) => {
            let port = port.parse().ok().filter(|port| *port > 0);
            let port = port.ok_or_else(|| format!("`{process}` is not a port; {fix}"))?;
            listener(port).map_err(|error| error.to_string())?
        }
        None => process.parse().map_err(|_| format!("`{process}` is not a process ID; {fix}"))?,
    };
    if ProcessStat::read(pid).is_none() {
        return Err(format!("no process has the ID {pid}; find it with `pgrep -a NAME`"));
    }
    Ok(WatchedProcess { name: name.to_owned(), pid })
}

/// The flag for the end of a command.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct ScreenFlags {
    /// Print the full report, like report.txt, instead of its main figures
    #[arg(long)]
    pub(crate) full: bool,
}

impl ScreenFlags {
    /// How much is printed.
    pub(crate) const fn show(self) -> Show {
        if self.full { Show::Full } else { Show::Screen }
    }
}

/// The flags for progress.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct ProgressFlags {
    /// Progress display on stderr
    #[arg(long, value_enum, default_value_t)]
    ui: UiFlag,
    /// Do not show progress on stderr
    #[arg(long, short)]
    quiet: bool,
}

impl ProgressFlags {
    /// The form of progress for this process.
    pub(crate) fn ui(self) -> Ui {
        Ui::for_process(self.ui, self.quiet)
    }
}

/// Parses a length of time: a number and a unit, or a number of seconds.
pub(crate) fn parse_time(text: &str) -> Result<Nanos, String> {
    let with_unit = if text.parse::<f64>().is_ok() { format!("{text}s") } else { text.to_owned() };
    with_unit.parse().map_err(|error| format!("{error}"))
}

/// Parses a rate: a number above 0.
pub(crate) fn parse_rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0);
    rate.ok_or_else(|| "write a number of requests per second above 0".to_owned())
}

/// A URL as typed; `http://` is added if it has no scheme.
pub(crate) fn with_scheme(text: &str) -> String {
    if text.contains("://") { text.to_owned() } else { format!("http://{text}") }
}

/// Escapes `$`, which is special in profiles but not on the command line.
pub(crate) fn literal(text: &str) -> Value {
    text.replace('$', "$$").into()
}

/// The profile that flags make.
pub(crate) fn command_line_profile(keys: Map<String, Value>) -> Profile {
    let text = Value::Object(keys).to_string();
    Profile::new(Path::new("command line"), text.into_bytes())
}

/// Parses a share: `50%` or `0.5`.
pub(crate) fn parse_share(text: &str) -> Result<f64, String> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse().map(|percent: f64| percent / 100.0),
        None => text.parse(),
    };
    let share = share.ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "write a share like 50% or 0.5".to_owned())
}

/// A percentage as a share, with or without the sign: `1.5%` and `1.5` are 0.015.
pub(crate) fn percent(text: &str) -> Option<f64> {
    let percent: f64 = text.strip_suffix('%').unwrap_or(text).trim().parse().ok()?;
    Some(percent / 100.0)
}

/// Parses an address to listen on. Host names are resolved.
pub(crate) fn parse_listen_address(text: &str) -> Result<SocketAddr, String> {
    let found = text
        .to_socket_addrs()
        .map_err(|error| format!("{error}; write HOST:PORT, like 127.0.0.1:9000"));
    found?.next().ok_or_else(|| "this host name has no IP address".to_owned())
}

/// Reads the file of `--config`.
pub(crate) fn read_config(path: &Path) -> Result<String, UsageError> {
    plimsoll_input::read_text(path).map_err(|error| {
        let path = path.display();
        UsageError(format!("cannot read {path}: {error}; name a readable YAML file with --config"))
    })
}

impl OutputFlags {
    /// The options of the run's folder.
    pub(crate) fn options(&self) -> RunDirOptions {
        let format = if self.zstd { RowFormat::Zstd } else { RowFormat::Plain };
        self.folder.options((!self.no_jsonl).then_some(format))
    }
}

impl RunFlags {
    /// The options of a run that writes its files according to `output`, or no files.
    pub(crate) fn options(&self, output: Option<RunDirOptions>) -> RunOptions {
        let (watch, servers) = (self.watch.clone(), self.server_metrics.clone());
        RunOptions {
            output,
            probe: !self.no_probe,
            allow_invalid: self.allow_invalid,
            ignored: self.ignore.clone(),
            watch,
            servers,
            launch: Launch::default(),
            profile: None,
            until_saturated: false,
            show: if self.json.json { Show::Json } else { self.screen.show() },
            junit: self.junit.clone(),
        }
    }
}

/// The flags of commands with runs.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Metrics")]
pub(crate) struct ExportFlags {
    #[command(flatten)]
    pub(crate) push: PushFlags,
    #[command(flatten)]
    pub(crate) labels: LabelFlags,
}

/// The flag of every command with results.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Metrics")]
pub(crate) struct PushFlags {
    /// Push the results to this Pushgateway, as in metrics.prom. A failed push is a warning and
    /// does not change the exit code
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) push_metrics: Option<PushTarget>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_without_a_unit_is_in_seconds() {
        assert_eq!(parse_time("10"), Ok(Nanos::from_secs(10)));
        assert_eq!(parse_time("1.5"), parse_time("1500ms"));
        assert!(parse_time("soon").is_err() && parse_time("-1").is_err());
    }

    #[test]
    fn a_rate_is_a_number_above_zero() {
        assert_eq!(parse_rate("2.5"), Ok(2.5));
        for text in ["0", "-5", "many", "inf", "NaN", ""] {
            assert!(parse_rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_share_is_a_percentage_or_a_number_up_to_one() {
        assert_eq!((parse_share("50%"), parse_share("0.25")), (Ok(0.5), Ok(0.25)));
        for text in ["50", "-1%", "101%", "half", "NaN", ""] {
            assert!(parse_share(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_listen_address_is_a_host_and_a_port() {
        assert_eq!(parse_listen_address("127.0.0.1:0"), Ok(SocketAddr::from(([127, 0, 0, 1], 0))));
        assert!(parse_listen_address("127.0.0.1").unwrap_err().contains("write HOST:PORT"));
    }

    #[test]
    fn a_watched_process_has_a_name_and_exists() {
        let own = std::process::id();
        assert_eq!(watched_process(&format!("me={own}")).unwrap().name, "me");
        let listening = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listening.local_addr().unwrap().port();
        assert_eq!(watched_process(&format!("me=:{port}")).unwrap().pid, own);
        drop(listening);
        let closed = format!("me=:{port}");
        for (text, part) in [
            ("me", "NAME=PID"),
            ("me=x", "not a process ID"),
            ("=1", "empty"),
            ("me=:0", "not a port"),
            ("me=:x", "not a port"),
            (closed.as_str(), "nothing listens on port"),
        ] {
            assert!(watched_process(text).unwrap_err().contains(part), "{text}");
        }
        let page = watch("gw=http://10.0.0.2:9100/metrics#cpus=4").unwrap();
        assert!(matches!(page, Watch::Page(page) if page.name == "gw"));
        assert_eq!(server("vllm=http://h:8000/metrics").unwrap().name, "vllm");
        for text in ["http://h/metrics", "http://h/metrics?a=b", "=http://h/metrics", "a=ftp://h"] {
            assert!(server(text).unwrap_err().contains("write "), "{text}");
        }
        for text in ["=http://h/metrics", "gw=ftp://h/metrics", "gw=http://h/#cpus=many"] {
            assert!(watch(text).unwrap_err().contains("write "), "{text}");
        }
    }
}
