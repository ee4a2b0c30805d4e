//! `plimsoll fleet`: the hosts that a load needs, from its measured cost on this host.

use anyhow::{Context as _, Result};
use clap::{ArgGroup, Args};
use nix::sys::resource::{Resource, getrlimit};
use plimsoll_calibrate::{Costs, Record};
use plimsoll_measure::Nanos;
use plimsoll_report::format::{bytes, digits, seconds, time};
use plimsoll_suite::HEADROOM;
use serde::Serialize;

use crate::exit::{Exit, UsageError};
use crate::flags::{parse_rate, parse_time};
use crate::{console, environment};

const AFTER: &str = include_str!("fleet.txt").trim_ascii_end();

/// The rate of the streams may differ from --rate by this part.
const CLOSE: f64 = 0.02;

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
#[command(group = ArgGroup::new("load").args(["rate", "streams"]).required(true).multiple(true))]
pub(crate) struct Flags {
    /// Requests per second of the whole load [default: as many as keep --streams open]
    #[arg(long, value_name = "N", value_parser = parse_rate)]
    rate: Option<f64>,
    /// Streams open at the same time [default: none, the requests are plain]
    #[arg(long, value_name = "N", value_parser = parse_rate)]
    streams: Option<f64>,
    /// Tokens per second of one stream
    #[arg(long, value_name = "N", default_value = "50", value_parser = parse_rate)]
    tokens_per_s: f64,
    /// Tokens of each prompt
    #[arg(long, value_name = "N", default_value = "550", value_parser = parse_rate)]
    isl: f64,
    /// Tokens of each answer
    #[arg(long, value_name = "N", default_value = "150", value_parser = parse_rate)]
    osl: f64,
    /// Length of the load
    #[arg(short, long, value_name = "TIME", default_value = "10m", value_parser = parse_time)]
    duration: Nanos,
    /// Price of a host for an hour, in any currency
    #[arg(long, value_name = "N", value_parser = parse_rate)]
    price: Option<f64>,
    #[command(flatten)]
    host: HostFlags,
    /// Print JSON
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// Resources of a host of the fleet.
#[derive(Args, Debug)]
#[command(next_help_heading = "Hosts of the fleet")]
struct HostFlags {
    /// Cores [default: this host's]
    #[arg(long, value_name = "N", value_parser = parse_rate)]
    cores: Option<f64>,
    /// Memory in GiB [default: this host's]
    #[arg(long, value_name = "GIB", value_parser = parse_rate)]
    memory: Option<f64>,
    /// Network in Mbit/s [default: this host's, or 10,000 if unknown]
    #[arg(long, value_name = "MBIT", value_parser = parse_rate)]
    link: Option<f64>,
    /// Files that a process may open [default: this host's limit]
    #[arg(long, value_name = "N", value_parser = parse_rate)]
    open_files: Option<f64>,
    /// Local ports for connections to one address of the target [default: this host's range]
    #[arg(long, value_name = "N", value_parser = parse_rate)]
    ports: Option<f64>,
    /// Addresses of the target: each pair of addresses has all ports
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_rate)]
    targets: f64,
    /// Number of source addresses of each host (profile key `bind`)
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_rate)]
    bind: f64,
}

/// Computes the fleet and prints it.
pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    if flags.duration == Nanos::ZERO {
        return Err(
            UsageError("--duration is zero: write a length of time, like 10m".to_owned()).into()
        );
    }
    let record = Record::load()?.context(
        "no calibration of this host is stored, or it was made on another kernel or CPU: run `plimsoll calibrate`, or at least `plimsoll calibrate --only T29 --record ~/.local/state/plimsoll/calibration.json`",
    )?;
    let costs = record.costs.context(
        "the stored calibration has no costs (T29): run `plimsoll calibrate` of this version",
    )?;
    let streams = flags.streams.unwrap_or(0.0);
    let of_streams = streams * flags.tokens_per_s / flags.osl;
    let rate = flags.rate.unwrap_or(of_streams);
    if streams > 0.0 && (rate / of_streams - 1.0).abs() > CLOSE {
        let why = format!(
            "--rate {rate} and --streams {streams} contradict each other: at {} of {} tokens/s, that many streams make {of_streams:.1} requests/s; omit one of them",
            flags.osl, flags.tokens_per_s
        );
        return Err(UsageError(why).into());
    }
    let load = Load {
        rate,
        streams,
        events_per_s: streams * flags.tokens_per_s,
        input_tokens: if flags.streams.is_some() { flags.isl } else { 0.0 },
        seconds: flags.duration.as_secs_f64(),
    };
    let fleet = Fleet::new(load, costs, flags.host.limits(), flags.price);
    if flags.json {
        console::print_line(&serde_json::to_string_pretty(&fleet)?)?;
    } else {
        console::print(&fleet.text(record.debug_build))?;
    }
    Ok(Exit::Pass)
}

impl HostFlags {
    fn limits(&self) -> HostLimits {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let host = environment::read(None);
        let memory = host.memory_bytes.unwrap_or(0) as f64;
        let ports = host.port_range.map_or(28_232, |(low, high)| u32::from(high - low) + 1);
        HostLimits {
            cores: self.cores.unwrap_or(cores as f64),
            memory_bytes: self.memory.map_or(memory, |gib| gib * f64::from(1 << 30)),
            link_mbit: self.link.or(host.link_mbit).unwrap_or(10_000.0),
            link_assumed: self.link.or(host.link_mbit).is_none(),
            open_files: self.open_files.unwrap_or_else(open_files),
            ports: self.ports.unwrap_or_else(|| f64::from(ports)) * self.targets * self.bind,
        }
    }
}

fn open_files() -> f64 {
    getrlimit(Resource::RLIMIT_NOFILE).map_or(1024.0, |(_, hard)| hard as f64)
}

// From a load and its costs to hosts.

/// The part of the memory that is planned for.
const USABLE_MEMORY: f64 = 0.8;
/// Bytes on the wire of an event of a stream, of a head, and of a token of a prompt.
const EVENT_BYTES: f64 = 320.0;
const HEAD_BYTES: f64 = 500.0;
const TOKEN_BYTES: f64 = 4.0;
/// Files that a process needs besides its connections.
const OTHER_FILES: f64 = 64.0;
/// A row of results.jsonl.
const ROW_BYTES: f64 = 700.0;

/// The whole load.
#[derive(Clone, Copy, Debug, Serialize)]
struct Load {
    /// Requests per second.
    rate: f64,
    /// Streams open at the same time; 0 for plain requests.
    streams: f64,
    /// Events of all streams per second.
    events_per_s: f64,
    /// Tokens of each prompt.
    input_tokens: f64,
    /// Its length.
    seconds: f64,
}

/// Resources of a host.
#[derive(Clone, Copy, Debug, Serialize)]
struct HostLimits {
    cores: f64,
    memory_bytes: f64,
    link_mbit: f64,
    /// Whether the network speed is an assumption.
    link_assumed: bool,
    /// Open-file limit of one process.
    open_files: f64,
    /// To all addresses of the target.
    ports: f64,
}

/// A resource of hosts: demand of the whole load, and capacity of one host.
#[derive(Clone, Copy, Debug, Serialize)]
struct Need {
    resource: &'static str,
    needed: f64,
    of_one_host: f64,
    unit: &'static str,
    /// A remedy to try before adding hosts.
    #[serde(skip)]
    remedy: &'static str,
}

impl Need {
    fn hosts(&self) -> f64 {
        self.needed / self.of_one_host
    }
}

/// Resources that a load needs.
#[derive(Clone, Debug, Serialize)]
struct Fleet {
    load: Load,
    host: HostLimits,
    costs: Costs,
    needs: Vec<Need>,
    /// The resource that asks for the most hosts.
    first_limit: &'static str,
    hosts: f64,
    /// Processes per host, to stay within the open-file limit.
    processes_per_host: f64,
    /// Time to merge all shards, without rows, in seconds.
    merge_s: f64,
    /// Bytes of rows that each host writes per second, and that all leave.
    row_bytes_per_s_of_host: f64,
    row_bytes: f64,
    /// Price of the hosts for the length of the load.
    #[serde(skip_serializing_if = "Option::is_none")]
    price: Option<f64>,
}

impl Fleet {
    fn new(load: Load, costs: Costs, host: HostLimits, price: Option<f64>) -> Self {
        let needs = needs(load, costs, host);
        let first = needs.iter().copied().max_by(|a, b| a.hosts().total_cmp(&b.hosts()));
        let first_limit = first.map_or("", |need| need.resource);
        let hosts = first.map_or(1.0, |need| need.hosts().ceil().max(1.0));
        let files = (host.open_files - OTHER_FILES).max(1.0);
        let processes_per_host = (connections(load) / hosts / files).ceil().max(1.0);
        Self {
            load,
            host,
            costs,
            needs,
            first_limit,
            hosts,
            processes_per_host,
            merge_s: hosts * processes_per_host * costs.merge_ms_per_shard / 1e3,
            row_bytes_per_s_of_host: load.rate / hosts * ROW_BYTES,
            row_bytes: load.rate * load.seconds * ROW_BYTES,
            price: price.map(|price| price * hosts * load.seconds / 3_600.0),
        }
    }

    /// The answer for people, at most 80 columns wide.
    fn text(&self, debug_build: bool) -> String {
        let header = ["", "the load needs", "one host gives", "hosts"].map(str::to_owned);
        let rows = self.needs.iter().map(|need| {
            let [needed, given] = [need.needed, need.of_one_host]
                .map(|amount| format!("{} {}", short(amount), need.unit));
            [need.resource.to_owned(), needed, given, digits(need.hosts())]
        });
        let table = [header].into_iter().chain(rows);
        let table = table.map(|[of, needed, given, hosts]| {
            format!("{of:<10} {needed:>16} {given:>16} {hosts:>10}")
        });
        let merge = time(self.merge_s * 1e3);
        let (files, processes) = (short(self.host.open_files), short(self.processes_per_host));
        let [rate, rows] = [self.row_bytes_per_s_of_host, self.row_bytes].map(bytes);
        let (price, length) = (self.price.unwrap_or_default(), seconds(self.load.seconds));
        let (hosts, first) = (short(self.hosts), self.first_limit);
        let remedy = self.needs.iter().find(|need| need.resource == first).map_or("", |n| n.remedy);
        let notes = [
            (
                self.processes_per_host > 1.0,
                format!(
                    "open files: {files} per process; use --processes {processes} on each host"
                ),
            ),
            (
                self.host.link_assumed,
                "network: link speed unknown; assuming 10 Gbit/s (--link)".into(),
            ),
            (true, format!("merge: {merge} without rows, one shard at a time in memory")),
            (
                true,
                format!("rows: {rate}/s on each host, {rows} in all; --no-jsonl leaves them out"),
            ),
            (
                self.price.is_some(),
                format!("price: {price:.2} for {length}, without start-up and merging"),
            ),
            (
                debug_build,
                "! costs measured with a debug build: a release build needs far less".into(),
            ),
            (true, format!("{first}: raise the limit with {remedy}")),
        ];
        let notes = notes.into_iter().filter(|(is_told, _)| *is_told).map(|(_, note)| note);
        let s = if self.hosts > 1.0 { "s" } else { "" };
        let end = format!("{hosts} host{s} like this: the first limit is {first}\n");
        let blank = || std::iter::once(String::new());
        let lines = std::iter::once(self.title()).chain(blank()).chain(table).chain(blank());
        lines.chain(notes).chain(blank()).chain([end]).collect::<Vec<_>>().join("\n")
    }

    fn title(&self) -> String {
        let (load, rate) = (self.load, short(self.load.rate));
        if load.streams > 0.0 {
            let (streams, events) = (short(load.streams), short(load.events_per_s));
            return format!("{streams} streams at once: {rate} requests/s, {events} events/s");
        }
        format!("{rate} plain requests/s")
    }
}

/// Connections open at once; plain requests are assumed to take a hundred milliseconds.
fn connections(load: Load) -> f64 {
    load.streams.max(load.rate * 0.1)
}

fn needs(load: Load, costs: Costs, host: HostLimits) -> Vec<Need> {
    let of_request =
        if load.streams > 0.0 { costs.cpu_us_per_chat } else { costs.cpu_us_per_request };
    let cpu = (load.rate * of_request + load.events_per_s * costs.cpu_us_per_event) / 1e6;
    let sent = load.rate * (HEAD_BYTES + load.input_tokens * TOKEN_BYTES);
    let received = load.rate * HEAD_BYTES + load.events_per_s * EVENT_BYTES;
    let open = connections(load);
    let gib = f64::from(1 << 30);
    let memory = [open * costs.bytes_per_stream / gib, host.memory_bytes * USABLE_MEMORY / gib];
    let network = [sent.max(received) * 8.0 / 1e6, host.link_mbit * HEADROOM];
    let rows = [
        ("CPU", [cpu, host.cores * HEADROOM], "cores", "hosts with more cores"),
        ("memory", memory, "GiB", "hosts with more memory"),
        ("ports", [open, host.ports], "", "more addresses of the target or in `bind`"),
        ("network", network, "Mbit/s", "hosts with a faster network"),
    ];
    rows.map(|(resource, [needed, of_one_host], unit, remedy)| Need {
        resource,
        needed,
        of_one_host,
        unit,
        remedy,
    })
    .into()
}

/// A number of three digits; a whole one without decimals: `1,200`, `0.25`, `4`.
fn short(value: f64) -> String {
    if value.fract() == 0.0 && value < 100.0 { format!("{value:.0}") } else { digits(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: Costs = Costs {
        cpu_us_per_request: 10.0,
        cpu_us_per_chat: 100.0,
        cpu_us_per_event: 5.0,
        bytes_per_stream: 32.0 * 1024.0,
        merge_ms_per_shard: 2.0,
    };
    const HOST: HostLimits = HostLimits {
        cores: 10.0,
        memory_bytes: 64.0 * 1_073_741_824.0,
        link_mbit: 10_000.0,
        link_assumed: false,
        open_files: 20_064.0,
        ports: 28_000.0,
    };

    fn plain(rate: f64) -> Load {
        Load { rate, streams: 0.0, events_per_s: 0.0, input_tokens: 0.0, seconds: 600.0 }
    }

    fn chats(streams: f64) -> Load {
        let events_per_s = streams * 50.0;
        Load {
            rate: events_per_s / 150.0,
            streams,
            events_per_s,
            input_tokens: 550.0,
            ..plain(0.0)
        }
    }

    #[test]
    fn a_million_plain_requests_need_the_cores_that_the_costs_say() {
        let fleet = Fleet::new(plain(1e6), COSTS, HOST, Some(2.0));
        // 1e6 x 10 us are 10 cores, and a host has 7 to use; 100,000 connections need 3.6 hosts'
        // ports, which is more.
        assert_eq!((fleet.first_limit, fleet.hosts), ("ports", 4.0));
        let wide = HostLimits { ports: 280_000.0, ..HOST };
        let fleet = Fleet::new(plain(1e6), COSTS, wide, Some(2.0));
        assert_eq!((fleet.first_limit, fleet.hosts), ("CPU", 2.0));
        // Two hosts for ten minutes at 2.00 an hour.
        assert_eq!(fleet.price.map(|price| (price * 1e6).round() / 1e6), Some(0.666_667));
        // 50,000 connections on each host, 20,000 in a process.
        assert!((fleet.processes_per_host - 3.0).abs() < f64::EPSILON);
        assert!((fleet.merge_s - 0.012).abs() < 1e-12);
    }

    #[test]
    fn a_million_streams_are_limited_by_their_events() {
        let fleet = Fleet::new(chats(1e6), COSTS, HOST, None);
        // 50e6 events x 5 us and 333,333 chats x 100 us are 283 cores, and a host has 7 to use.
        assert_eq!((fleet.first_limit, fleet.hosts), ("CPU", 41.0));
        let text = fleet.text(false);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.ends_with("41 hosts like this: the first limit is CPU\n"), "{text}");
        let slow = HostLimits { link_mbit: 1_000.0, ..HOST };
        // 50e6 x 320 bytes and 333,333 heads are 129 Gbit/s, and a host has 0.7 to use.
        let fleet = Fleet::new(chats(1e6), COSTS, slow, None);
        assert_eq!((fleet.first_limit, fleet.hosts), ("network", 185.0));
    }

    #[test]
    fn a_small_load_needs_one_host_and_every_line_fits() {
        let fleet = Fleet::new(plain(10.0), COSTS, HostLimits { link_assumed: true, ..HOST }, None);
        assert_eq!((fleet.hosts, fleet.processes_per_host), (1.0, 1.0));
        let text = fleet.text(true);
        assert!(text.contains("1 host like this") && text.contains("debug build"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
