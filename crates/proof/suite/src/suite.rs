//! The suites, one module each, and their shared parts.

mod added;
mod agents;
mod baseline;
pub(crate) mod columns;
mod gateways;
mod layers;
mod own_server;
mod policy;
mod quick;
mod settings;
#[cfg(test)]
mod tests;
mod tiers;

use std::path::Path;
use std::time::Duration;

pub use gateways::{GatewaysFile, GatewaysResult};
pub use layers::layer_part;
use plimsoll_engine::Control;
use plimsoll_measure::Nanos;
use plimsoll_report::format::or_dash;
use plimsoll_report::table::Table;
use serde_json::json;

use crate::baseline_diff;
use crate::child::Child;
use crate::comparison_result::ComparisonResult;
use crate::error::SuiteError;
use crate::host::{Host, Machine};
use crate::measurement::{Length, Measurement};
use crate::options::SuiteOptions;
use crate::report::Report;
use crate::result::MeasurementResult;
use crate::runner::SuiteRunner;
use crate::suite::columns::{CPU, GW_CORE, LOAD_CORE, MEMORY, P50, P99, RPS};
use crate::target::{DIRECT, Gateway, SuiteTarget, slug};

/// A suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    /// A mixed day of chats, tool calls, messages to agents and approvals.
    Agents,
    /// The cheap endpoints of a gateway, under few and many clients.
    Baseline,
    /// Gateways of any project in front of the same upstream.
    Gateways,
    /// A layered gateway: each layer's cost, the full stack, cache, streams, log, stores.
    Layers,
    /// A policy gateway: rising rates, cold and warm, every policy decision checked.
    Policy,
    /// Two runs of one endpoint, moderate and extreme.
    Quick,
    /// Three sizes of chat, streamed and not, up to the knee; the cost of each feature.
    Tiers,
}

/// Properties of a suite.
struct Row {
    /// Its name on the command line.
    name: &'static str,
    /// The port of the reference gateway, where the published benchmark names one.
    usual_port: Option<u16>,
    /// The title of the table of sizes.
    sizes: &'static str,
    run: fn(&mut SuiteRunner<'_>) -> Result<(), SuiteError>,
}

impl Suite {
    const fn row(self) -> Row {
        let sizes = "Instances for a rate";
        let (name, usual_port, sizes, run): (_, _, _, fn(&mut SuiteRunner<'_>) -> _) = match self {
            Self::Agents => ("agents", None, sizes, agents::run),
            Self::Baseline => ("baseline", Some(18_800), sizes, baseline::run),
            Self::Gateways => ("gateways", None, sizes, gateways::run),
            Self::Layers => ("layers", None, "Replicas for a rate, per service", layers::run),
            Self::Policy => ("policy", None, "Nodes for a rate", policy::run),
            Self::Quick => {
                ("quick", Some(8_094), "Instances of the gateway for a rate", quick::run)
            }
            Self::Tiers => ("tiers", None, sizes, tiers::run),
        };
        Row { name, usual_port, sizes, run }
    }

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// Runs the suite. `observe` receives messages about the progress. `control` ends it early; the
    /// report then covers the measurements so far.
    ///
    /// # Errors
    /// Every measurement failed. The report says why single measurements failed.
    pub fn run(
        self,
        options: &SuiteOptions,
        control: &Control,
        observe: &mut dyn FnMut(&str),
    ) -> Result<Report, SuiteError> {
        self.run_on(&mut Machine, options, control, observe)
    }

    /// The same on any host.
    fn run_on(
        self,
        host: &mut dyn Host,
        options: &SuiteOptions,
        control: &Control,
        observe: &mut dyn FnMut(&str),
    ) -> Result<Report, SuiteError> {
        // First: a wrong file must be reported before minutes of load.
        let old = options.against.as_deref().map(|path| baseline_diff::read(path, self.name()));
        let old = old.transpose()?;
        self.check_targets(options)?;
        let Row { name, usual_port, sizes, run } = self.row();
        let report = Report::begin(name, options);
        let mut runner = SuiteRunner::new(report, usual_port, options, host, control, observe);
        for target in runner.targets() {
            runner.reach(&target)?;
            runner.probe_unknown_route(&target)?;
        }
        if let Some(direct) = runner.direct() {
            runner.reach(&direct)?;
        }
        run(&mut runner)?;
        let mut report = runner.finish(sizes);
        remove_rows(&options.folder);
        if let Some(old) = &old {
            let (section, bounds) = if self == Self::Gateways {
                let other = baseline_diff::difference(old, &report);
                gateways::against(old, &report, other.as_deref())
            } else {
                baseline_diff::compare(old, &report)
            };
            report.sections.push(section);
            report.bounds.extend(bounds);
        }
        match &options.gateways {
            Some(file) => Ok(file.hide(report)?),
            None => Ok(report),
        }
    }
}

impl Suite {
    /// Whether the suite can have these targets and settings.
    fn check_targets(self, options: &SuiteOptions) -> Result<(), SuiteError> {
        let SuiteOptions { targets, direct, just_started, .. } = options;
        let name = self.name();
        let rows = [
            (direct.is_some() && matches!(self, Self::Policy | Self::Quick), "--direct"),
            (*just_started && self != Self::Policy, "--just-started"),
            (options.knee_budget.is_some() && self != Self::Tiers, "--knee-budget"),
            (!options.only.is_empty() && self != Self::Layers, "--only"),
            (options.clients.is_some() && self == Self::Agents, "--concurrency"),
            (options.size_for.is_some() && self == Self::Agents, "--size-for"),
        ];
        if targets.len() > 1 && !matches!(self, Self::Policy | Self::Tiers) {
            let given = targets.len();
            return refuse(format!(
                "`suite {name}` measures one target, not {given}: use `suite tiers` or `versus`"
            ));
        }
        if let Some((_, flag)) = rows.iter().find(|(is_wrong, _)| *is_wrong) {
            return refuse(format!("`suite {name}` does not support {flag}"));
        }
        let of_target = [(*just_started, "--just-started"), (direct.is_some(), "--direct")];
        let given = of_target.iter().find(|(is_given, _)| *is_given && targets.is_empty());
        if let Some((_, flag)) = given {
            return refuse(format!("{flag} needs a --target"));
        }
        check_names(options)
    }
}

fn refuse(why: String) -> Result<(), SuiteError> {
    Err(SuiteError::Usage(why))
}

/// Whether several targets can be told apart.
fn check_names(options: &SuiteOptions) -> Result<(), SuiteError> {
    let names: Vec<_> = options.targets.iter().map(|target| &*target.name).collect();
    for (index, name) in names.iter().enumerate().filter(|_| names.len() > 1) {
        if name.is_empty() {
            return refuse(
                "several targets need names: write --target NAME=URL for each".to_owned(),
            );
        }
        if !name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) {
            return refuse(format!(
                "`{name}` cannot be the name of a target: write letters, digits, `-`, `_` and `.`"
            ));
        }
        if names[..index].contains(name) || (*name == DIRECT && options.direct.is_some()) {
            return refuse(format!("two targets have the name `{name}`: give each its own"));
        }
    }
    Ok(())
}

/// Removes the request logs of gateways, which were counted and are gigabytes, and empty files.
fn remove_rows(folder: &Path) {
    let files = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    for file in files.map(|file| file.path()) {
        let is_empty = file.metadata().is_ok_and(|metadata| metadata.len() == 0);
        if is_empty || file.extension().is_some_and(|extension| extension == "jsonl") {
            // A file that cannot be removed only takes space.
            let _ = std::fs::remove_file(&file);
        }
    }
}

/// The length of a suite's measurements: the user's, or a second with `--short`, or `usual`
/// seconds.
fn length(options: &SuiteOptions, usual: u64) -> Length {
    let own = if options.short { Nanos::from_millis(1_000) } else { Nanos::from_secs(usual) };
    Length::new(warmup(options), options.duration.unwrap_or(own))
}

/// The warm-up before a measurement: the user's, or the suite's.
fn warmup(options: &SuiteOptions) -> Nanos {
    let own = if options.short { Nanos::from_millis(300) } else { Nanos::from_secs(2) };
    options.warmup.unwrap_or(own)
}

/// Requests per second and target of a comparison: the rate of `plimsoll versus` where requests are
/// free of charge.
const PAIRS_PER_S: f64 = 100.0;

/// With `--short`, seconds of a comparison of times: an interval needs eight.
const TIMES_SHORT: u64 = 9;
/// The same of a comparison of CPU times, too, whose first and last second are not whole.
const CPU_SHORT: u64 = 12;

/// The length of a comparison: the user's, or `usual` seconds, with `--short` `short` seconds.
fn comparison_length(options: &SuiteOptions, usual: u64, short: u64) -> Length {
    let own = Nanos::from_secs(if options.short { short } else { usual });
    Length { measured: options.duration.unwrap_or(own), ..length(options, usual) }
}

/// The number of passes, unless the user sets one.
const fn passes(options: &SuiteOptions, usual: u32, short: u32) -> u32 {
    if options.short { short } else { usual }
}

/// Time limit until Redis accepts connections.
const READY_TIMEOUT: Duration = Duration::from_secs(5);

/// A Redis server on the loopback interface. Dropping this ends it; its data is lost.
struct RedisServer(Child);

impl RedisServer {
    /// Starts one.
    fn open(runner: &SuiteRunner<'_>) -> Result<Self, String> {
        let folder = runner.options.folder.display().to_string();
        own_server::start(runner, "redis-server", READY_TIMEOUT, |port| {
            let text = format!("--bind 127.0.0.1 --save  --appendonly no --port {port} --dir");
            Ok(text.split(' ').map(str::to_owned).chain([folder.clone()]).collect())
        })
        .map(Self)
    }

    /// Its process id.
    fn pid(&self) -> Option<u32> {
        self.0.pid()
    }

    fn url(&self) -> String {
        format!("redis://{}", self.0.address())
    }

    /// The setting of a gateway that keeps its state here. Its own time limit of 50 ms would take a
    /// pause of this host for a Redis that is gone, and refuse requests.
    fn setting(&self) -> String {
        format!("store={}", json!({"redis": self.url(), "timeout": "2s"}))
    }
}

/// Variants, measured.
struct Variants {
    /// Results of each variant loaded alone.
    alone: Vec<MeasurementResult>,
    /// Overhead of each variant over the first.
    added: ComparisonResult,
}

/// The load of a comparison of variants.
struct VariantsLoad<'a> {
    /// The name of the comparison.
    label: &'a str,
    /// Clients of each variant when loaded alone.
    clients: u32,
    length: Length,
    /// Requests per second that go to each of them.
    per_s: f64,
}

impl Variants {
    /// All variants run at once. First they are loaded by themselves, in turn; then beside each
    /// other. `request` makes a request with a label.
    fn measure(
        runner: &mut SuiteRunner<'_>,
        gateways: &[(&str, Gateway)],
        load: &VariantsLoad<'_>,
        request: impl Fn(&str, &SuiteTarget) -> Measurement,
    ) -> Self {
        let VariantsLoad { label, clients, length, per_s } = *load;
        let alone: Vec<_> = gateways
            .iter()
            .map(|(name, gateway)| request(name, &gateway.target).clients(clients, length))
            .collect();
        let alone = runner.measure(&alone, passes(runner.options, 3, 1));
        let targets: Vec<_> =
            gateways.iter().map(|(name, gateway)| (slug(name), gateway.target.clone())).collect();
        let pairs = comparison_length(runner.options, 60, CPU_SHORT);
        let added =
            runner.compare(request(label, &targets[0].1).rate(per_s, pairs), &targets, true);
        Self { alone, added }
    }

    /// CPU time per request that the last variant adds, as a share of the first one's.
    ///
    /// # Errors
    /// Why it is not known.
    fn cpu_share_of_last(&self) -> Result<[f64; 3], String> {
        let last = self.alone.last().map(|last| slug(&last.label)).unwrap_or_default();
        self.added.cpu_share(&last)
    }
}

/// The table of each variant's overhead, and of its throughput alone.
fn table<'v>(what: &str, all: impl IntoIterator<Item = &'v Variants>) -> Table {
    let own = [RPS, CPU, MEMORY, P50, P99, GW_CORE, LOAD_CORE];
    let heads = [what, "added, median", "added CPU/req"];
    let mut table = Table::new(heads.into_iter().chain(own.map(|column| column.0)));
    for Variants { alone, added } in all {
        for (index, result) in alone.iter().enumerate() {
            let name = slug(&result.label);
            let added = Some(added).filter(|_| index > 0);
            let fixed = [
                columns::marked(result, &result.label),
                or_dash(added, |added| added.marked(added.added_cell(&name))),
                or_dash(added, |added| added.marked(added.cpu_cell(&name))),
            ];
            table.row(fixed.into_iter().chain(own.map(|column| (column.1)(result))));
        }
    }
    table
}
