//! Flags that several commands share.

mod export;
mod shards;

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use plimsoll_engine::{MetricsPageError, ProcessStat, WatchedPage, WatchedProcess, listener};
use plimsoll_measure::Nanos;
use plimsoll_plan::{ConnectTo, ProxyUrl};
use plimsoll_profile::Overrides;
use plimsoll_run_files::RowFormat;
use plimsoll_runner::folder::RunDirOptions;

use crate::console::Show;
use crate::exit::UsageError;
use crate::progress::{Ui, UiFlag};
use crate::session::{Launch, RunOptions, Watch};
pub(crate) use export::{ExportFlags, PushFlags, ServeFlags};
pub(crate) use shards::{Part, ShardFlag, StartFlags};

/// The flag for the only target of a run.
#[derive(Args, Debug)]
#[command(next_help_heading = "Profile settings")]
pub(crate) struct TargetFlags {
    /// Base URL of the target, like `https://gateway.example` [default: the profile's]
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    target: Option<String>,
}

/// Flags that override settings of a profile, whatever its targets.
#[derive(Args, Debug)]
#[command(next_help_heading = "Profile settings")]
pub(crate) struct ProfileFlags {
    /// API key, for every target that has none of its own; never shown. The variable `PLIMSOLL_KEY`
    /// also keeps it out of the process list
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Model to request [default: the profile's]
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Protocol of every scenario: openai-chat, openai-completions, openai-responses,
    /// openai-embeddings, anthropic-messages, mcp, a2a, websocket, http [default: the profile's]
    #[arg(long, value_name = "NAME")]
    pub(crate) protocol: Option<String>,
    /// Load [default: the profile's]: `10:30s` is 10 virtual users for 30 s, `@50:30s` 50 arrivals
    /// per second, `@5..50:30s` a ramp; `w` in front makes it a warm-up, commas separate stages
    #[arg(long, value_name = "STAGES")]
    pub(crate) stages: Option<String>,
    #[command(flatten)]
    limits: LimitFlags,
    /// Add a header to every request (repeatable)
    #[arg(long = "header", short = 'H', value_name = "'NAME: VALUE'")]
    headers: Vec<String>,
    /// Set any key of the profile, like `timeout=30s` or `scenarios.simple.weight=3` (repeatable)
    #[arg(long = "set", value_name = "PATH=VALUE")]
    sets: Vec<String>,
    /// Seed of all random numbers, a whole number [default: the profile's]
    #[arg(long, value_name = "N")]
    seed: Option<String>,
    /// Id of the run, from which the ids of its requests and its cache-busting markers follow: with
    /// the same seed and run id a run repeats exactly [default: a random one]
    #[arg(long, value_name = "ID")]
    run_id: Option<String>,
    #[command(flatten)]
    pub(crate) shard: ShardFlag,
    /// Name of the run [default: the profile's]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    tls: TlsFlags,
    #[command(flatten)]
    reach: ReachFlags,
}

/// Flags that end a run before its stages do.
#[derive(Args, Clone, Debug)]
pub(crate) struct LimitFlags {
    /// End the run after N requests have been sent; those of a warm-up do not count
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_requests: Option<u64>,
    /// End the run when so many tokens are spent, of input and output together, warm-up included;
    /// what is in flight then comes on top
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_tokens: Option<u64>,
    /// End the run when so much money is spent, by the prices of --price
    #[arg(long, value_name = "MONEY", requires = "price", value_parser = parse_money)]
    pub(crate) max_cost: Option<f64>,
    /// Prices of a million tokens of input and of output, like `0.15,0.6`
    #[arg(long, value_name = "IN,OUT", value_parser = parse_prices)]
    pub(crate) price: Option<Prices>,
    /// End the run when more than this share of the requests, like `50%`, got no good answer
    /// (looked at every second, once 100 have ended); exit code 1
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    pub(crate) abort_on_errors: Option<f64>,
    /// Do not fail a run in which more than half of the requests failed, and keep sending when none
    /// has succeeded for 10 seconds
    #[arg(long)]
    pub(crate) allow_failures: bool,
}

/// Flags for TLS connections to the target.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "TLS")]
pub(crate) struct TlsFlags {
    /// Trust the root certificates in this PEM file instead of the system's
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) ca_file: Option<String>,
    /// The client's own certificate, PEM, for targets that ask for one
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) cert: Option<String>,
    /// The private key of --cert, PEM [default: it is in the same file]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "cert")]
    pub(crate) cert_key: Option<String>,
    /// Do not verify the target's certificate; the report says so
    #[arg(long, short = 'k')]
    pub(crate) insecure: bool,
    /// Do not resume TLS sessions: every handshake is a full one
    #[arg(long)]
    pub(crate) no_resumption: bool,
}

/// Flags for the way to the target.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Connections")]
pub(crate) struct ReachFlags {
    /// Connect to HOST2:PORT2 for HOST1:PORT1; an empty part is any, or the same (repeatable).
    /// Names in requests and certificates stay
    #[arg(long, value_name = "HOST1:PORT1:HOST2:PORT2", value_parser = place)]
    connect_to: Vec<String>,
    /// Connect to this Unix socket, in place of TCP
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    unix_socket: Option<String>,
    /// Go through a proxy, `http://HOST:PORT` or `socks5://HOST:PORT`; `USER:PASSWORD@` before the
    /// host gives credentials
    #[arg(long, short = 'x', value_name = "URL", value_parser = proxy)]
    proxy: Option<String>,
}

fn place(text: &str) -> Result<String, String> {
    text.parse().map(|_: ConnectTo| text.to_owned()).map_err(|error| error.to_string())
}

fn proxy(text: &str) -> Result<String, String> {
    text.parse().map(|_: ProxyUrl| text.to_owned()).map_err(|error| format!("it {error}"))
}

impl ReachFlags {
    /// The settings of a profile.
    pub(crate) fn sets(&self) -> impl Iterator<Item = String> {
        let places = (!self.connect_to.is_empty())
            .then(|| format!("connect_to={}", serde_json::json!(self.connect_to)));
        // `$` begins a variable in a profile.
        let others = [("unix_socket", &self.unix_socket), ("proxy", &self.proxy)];
        let others = others.into_iter().filter_map(|(key, value)| {
            Some(format!("{key}={}", value.as_ref()?.replace('$', "$$")))
        });
        places.into_iter().chain(others)
    }
}

impl TargetFlags {
    /// The overrides of a run on this target.
    pub(crate) fn overrides(&self, settings: &ProfileFlags) -> Overrides {
        self.on(settings.overrides())
    }

    /// Overrides of settings, and the target.
    pub(crate) fn on(&self, settings: Overrides) -> Overrides {
        Overrides { target: self.target.clone(), ..settings }
    }
}

/// The flag for bounds.
#[derive(Args, Debug)]
pub(crate) struct ThresholdFlags {
    /// A bound that the run must keep, like `response_time: p(95)<200ms`, `ttft: p(50)<500ms` or
    /// `error_rate: <1%` (repeatable); exit code 1 if it does not. It replaces the profile's bounds
    /// on the same metric
    #[arg(long = "threshold", value_name = "METRIC: BOUND", value_parser = parse_threshold)]
    thresholds: Vec<ThresholdFlag>,
}

impl ThresholdFlags {
    /// The settings of a profile: one for each metric.
    pub(crate) fn sets(&self) -> Vec<String> {
        threshold_sets(&self.thresholds)
    }
}

impl ProfileFlags {
    /// The overrides, as `plimsoll_profile::load` takes them; the target is another flag's.
    pub(crate) fn overrides(&self) -> Overrides {
        self.overrides_with(Vec::new())
    }

    /// The same where other flags set keys of the profile, too.
    pub(crate) fn overrides_with(&self, sets: Vec<String>) -> Overrides {
        let name = self.name.iter().map(|name| format!("name={name}"));
        // An explicit `--set name=...` comes last and wins.
        let sets = name
            .chain(sets)
            .chain(self.limits.sets())
            .chain(self.reach.sets())
            .chain(self.sets.iter().cloned());
        Overrides {
            key: self.key.clone(),
            model: self.model.clone(),
            protocol: self.protocol.clone(),
            stages: self.stages.clone(),
            seed: self.seed.clone(),
            headers: self.headers.clone(),
            sets: sets.collect(),
            run_id: self.run_id.clone(),
            shard: self.shard.shard.clone(),
            ..overrides_of(&self.limits, &self.tls)
        }
    }
}

/// The overrides that these flags make.
pub(crate) fn overrides_of(limits: &LimitFlags, tls: &TlsFlags) -> Overrides {
    Overrides {
        max_requests: limits.max_requests.map(|most| most.to_string()),
        abort_on_error_rate: limits.abort_on_errors.map(|share| share.to_string()),
        ca_file: tls.ca_file.clone(),
        cert_file: tls.cert.clone(),
        key_file: tls.cert_key.clone(),
        insecure: tls.insecure,
        no_resumption: tls.no_resumption,
        ..Overrides::default()
    }
}

/// Flags for the files of a run.
#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
#[expect(clippy::struct_excessive_bools, reason = "flags, as they are typed")]
pub(crate) struct OutputFlags {
    /// Folder in which each run creates its own, named by time and name
    #[arg(long, value_name = "DIR", default_value = "runs", value_hint = ValueHint::DirPath)]
    out: PathBuf,
    /// Do not write results.jsonl, which has one line per request
    #[arg(long)]
    no_jsonl: bool,
    /// Write results.jsonl.zst instead, compressed by zstd: a sixth of the size where rows are many
    #[arg(long, conflicts_with = "no_jsonl")]
    zstd: bool,
    /// Do not write report.html, the page with charts
    #[arg(long)]
    no_html: bool,
}

/// Flags for the probe, the exit code and watched processes.
#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct RunFlags {
    /// Do not send probe requests before the load
    #[arg(long)]
    no_probe: bool,
    /// Do not exit with code 3 when the run is invalid (Plimsoll did not keep up); the report still
    /// says so
    #[arg(long)]
    allow_invalid: bool,
    /// Report the CPU and memory use of a process on this host and its children, by its ID like
    /// `gateway=4711` or by the port that it listens on like `gateway=:8080`; on another host its
    /// CPU use, by a page of metrics like `gateway=http://10.0.0.2:9100/metrics` (repeatable). For
    /// `plimsoll why`, name the parts gateway, provider and store
    #[arg(long, value_name = "NAME=PID|:PORT|URL", value_parser = watch)]
    watch: Vec<Watch>,
    #[command(flatten)]
    screen: ScreenFlags,
    #[command(flatten)]
    json: JsonFlag,
}

/// The flag for programs that read the result.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct JsonFlag {
    /// Print summary.json instead of the main figures
    #[arg(long, conflicts_with = "full")]
    json: bool,
}

/// Reads `NAME=PID`, `NAME=:PORT` or `NAME=URL`.
fn watch(text: &str) -> Result<Watch, String> {
    match text.split_once('=').filter(|(_, place)| place.contains("://")) {
        Some(("", _)) => Err("the name is empty; write NAME=URL".to_owned()),
        Some((name, url)) => {
            let page = url.parse().map_err(|error: MetricsPageError| error.to_string())?;
            Ok(Watch::Page(WatchedPage { name: name.to_owned(), page }))
        }
        None => watched_process(text).map(Watch::Process),
    }
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
    /// Print the whole report, as report.txt holds it, instead of its main figures
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

/// A bound on a figure, and the figure.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ThresholdFlag {
    /// As in `thresholds` of a profile.
    metric: String,
    /// As in `thresholds` of a profile.
    bound: String,
}

/// Parses `METRIC: BOUND`. Also without the colon, and with `METRIC.p95<BOUND`, which other places
/// write.
fn parse_threshold(text: &str) -> Result<ThresholdFlag, String> {
    let fix = "write METRIC: BOUND, like 'response_time: p(95)<20ms' or 'error_rate: <1%'";
    let name = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    // Braces choose a stage, a scenario or a target.
    let end = if text[name..].starts_with('{') {
        text[name..].find('}').map(|end| name + end + 1).ok_or(fix)?
    } else {
        name
    };
    let (metric, bound) = text.split_at(end);
    let bound = bound.trim_start_matches([':', '.', ' ']);
    let bound = match bound.strip_prefix('p').and_then(|rest| rest.split_once('<')) {
        Some((q, most)) if q.starts_with(|c: char| c.is_ascii_digit()) => {
            format!("p({})<{most}", q.trim().replace('_', "."))
        }
        _ => bound.to_owned(),
    };
    if metric.is_empty() || bound.is_empty() {
        return Err(fix.to_owned());
    }
    Ok(ThresholdFlag { metric: metric.to_owned(), bound })
}

/// The settings of a profile for thresholds of the command line: one for each metric.
fn threshold_sets(thresholds: &[ThresholdFlag]) -> Vec<String> {
    let mut metrics: Vec<_> = thresholds.iter().map(|threshold| &threshold.metric).collect();
    metrics.sort();
    metrics.dedup();
    let sets = metrics.into_iter().map(|metric| {
        let own = thresholds.iter().filter(|threshold| threshold.metric == *metric);
        let bounds: Vec<_> = own.map(|threshold| threshold.bound.as_str()).collect();
        format!("thresholds.{metric}={}", serde_json::json!(bounds))
    });
    sets.collect()
}

/// Parses a rate: a number above 0.
pub(crate) fn parse_rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0);
    rate.ok_or_else(|| "write a number of requests per second above 0".to_owned())
}

/// Prices of a million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Prices {
    input: f64,
    output: f64,
}

/// Parses `IN,OUT`.
fn parse_prices(text: &str) -> Result<Prices, String> {
    let (input, output) = text
        .split_once(',')
        .ok_or_else(|| "write two prices, of input and of output, like 0.15,0.6".to_owned())?;
    Ok(Prices { input: parse_money(input.trim())?, output: parse_money(output.trim())? })
}

/// Parses an amount of money: a number, 0 or more.
fn parse_money(text: &str) -> Result<f64, String> {
    let amount = text.trim_start_matches(['$', '€']).parse().ok();
    let amount = amount.filter(|amount: &f64| amount.is_finite() && *amount >= 0.0);
    amount.ok_or_else(|| "write a number, 0 or more, like 2.50".to_owned())
}

impl LimitFlags {
    /// The settings of a profile for what may be spent, and for failures.
    pub(crate) fn sets(&self) -> impl Iterator<Item = String> {
        let mut budget = serde_json::Map::new();
        if let Some(tokens) = self.max_tokens {
            budget.insert("tokens".to_owned(), tokens.into());
        }
        if let Some(cost) = self.max_cost {
            budget.insert("cost".to_owned(), cost.into());
        }
        if let (false, Some(Prices { input, output })) = (budget.is_empty(), self.price) {
            budget.insert("input_price".to_owned(), input.into());
            budget.insert("output_price".to_owned(), output.into());
        }
        let text = serde_json::Value::Object(budget);
        let budget = (text != serde_json::json!({})).then(|| format!("budget={text}"));
        budget.into_iter().chain(self.allow_failures.then(|| "allow_failures=true".to_owned()))
    }
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
        let rows = (!self.no_jsonl).then_some(format);
        RunDirOptions { out: self.out.clone(), rows, page: !self.no_html }
    }
}

impl RunFlags {
    /// The options of a run that writes its files as `output` says, or none.
    pub(crate) fn options(&self, output: Option<RunDirOptions>) -> RunOptions {
        let watch = self.watch.clone();
        RunOptions {
            output,
            probe: !self.no_probe,
            allow_invalid: self.allow_invalid,
            watch,
            launch: Launch::default(),
            profile: None,
            show: if self.json.json { Show::Json } else { self.screen.show() },
        }
    }
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
    fn a_threshold_is_a_metric_and_a_bound_in_every_notation() {
        for (text, metric, bound) in [
            ("response_time: p(95)<20ms", "response_time", "p(95)<20ms"),
            ("response_time p(95)<20ms", "response_time", "p(95)<20ms"),
            ("ttft.p99_9<1s", "ttft", "p(99.9)<1s"),
            ("ttft.p50 < 1s", "ttft", "p(50)< 1s"),
            ("error_rate<1%", "error_rate", "<1%"),
            ("ttft{scenario:chat}: p(50)<1s", "ttft{scenario:chat}", "p(50)<1s"),
        ] {
            let parsed = parse_threshold(text).unwrap();
            assert_eq!((&*parsed.metric, &*parsed.bound), (metric, bound), "{text}");
        }
        for text in ["", "ttft", ": p(95)<1s", "ttft{stage:a"] {
            assert!(parse_threshold(text).is_err(), "{text}");
        }
        let two = ["ttft: p(50)<1s", "ttft: p(95)<2s"].map(|text| parse_threshold(text).unwrap());
        assert_eq!(threshold_sets(&two), [r#"thresholds.ttft=["p(50)<1s","p(95)<2s"]"#]);
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
        for text in ["=http://h/metrics", "gw=ftp://h/metrics", "gw=http://h/#cpus=many"] {
            assert!(watch(text).unwrap_err().contains("write "), "{text}");
        }
    }
}
