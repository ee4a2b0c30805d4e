//! `plimsoll fleet`: the hosts that a load needs, from its measured cost on this host.

mod model;

use anyhow::{Context as _, Result};
use clap::{ArgGroup, Args};
use nix::sys::resource::{Resource, getrlimit};
use plimsoll_calibrate::Record;
use plimsoll_measure::Nanos;

use self::model::{Fleet, HostLimits, Load};
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
    /// Streams that are open at once [default: none, the requests are plain]
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
            "--rate {rate} and --streams {streams} contradict each other: at {} of {} tokens/s, so many streams are {of_streams:.1} requests/s; leave one of the two out",
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
