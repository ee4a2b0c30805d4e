//! `plimsoll versus`: what does a gateway add, and which one is better.

mod plan;
mod rounds;
pub(super) mod target;
mod upstream;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum, ValueHint};
use plimsoll_measure::Nanos;
use plimsoll_plan::Plan;
use plimsoll_report::screen::Screen;

use crate::exit::{Exit, UsageError};
use crate::flags::{
    ExportFlags, OutputFlags, ProfileFlags, ProgressFlags, RunFlags, StartFlags, parse_rate,
    parse_share,
};
use crate::processes;
use crate::session::{RunOptions, Session};
use target::{TargetFlag, parse_direct, parse_target};

const AFTER: &str = "\
Examples:
  plimsoll versus --direct http://127.0.0.1:9000 --target a=http://127.0.0.1:8080
  plimsoll versus chat.yaml --direct https://api.example,key=API_KEY \\
      --target a=https://a.example,key=A_KEY --target b=https://b.example,key=B_KEY --margin 5%
  plimsoll versus --direct http://127.0.0.1:9000/items --target a=http://127.0.0.1:8080/items --protocol http
  plimsoll versus targets.yaml --schedule turns --rounds 5 --every 10m

Every request goes to every target, with the same content but for an id, in a random and balanced order. What a target adds is the difference request by request, with a 95 % interval; a sentence is printed only where all of them together hold at 5 %. Where the reference costs nothing it is loaded twice: it must not differ from itself.

Without PROFILE: short streamed chats for a minute, 100 per second and target where all targets have private addresses, else 5 per second. Targets that the profile lists (`targets:`) need no flags.

Of a target, `key=` names an environment variable that holds its key, and `watch=` its process on this host (`:8080` by port, or `pid:4711`).

The run's folder contains versus.json, versus.csv and pairs.bin besides the files of any run. Ctrl-C ends the load and still compares what there is.

Exit codes:
    0  compared, whether or not there is a difference
    1  a threshold failed, a target is worse than the best one by more than --margin, or one was
       down: it failed half of its requests, or every one from some time on
    2  wrong usage
    3  invalid (the control differs, Plimsoll did not keep up) or inconclusive
  130  interrupted";

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct Flags {
    /// Profile file, or name of a built-in profile [default: short streamed chats]
    #[arg(value_hint = ValueHint::FilePath)]
    profile: Option<String>,
    /// The upstream itself, which the targets are measured against; options as for --target
    #[arg(long, value_name = "URL[,OPTION=VALUE]...", value_parser = parse_direct)]
    direct: Option<TargetFlag>,
    /// A target: its name, its URL, and if needed its `key` (name of a variable), `model`,
    /// `protocol` and `watch`, and for the report the size of its `image` and its `startup`
    /// (repeatable)
    #[arg(long = "target", value_name = "NAME=URL[,OPTION=VALUE]...", value_parser = parse_target)]
    targets: Vec<TargetFlag>,
    #[command(flatten)]
    comparison: ComparisonFlags,
    #[command(flatten)]
    settings: ProfileFlags,
    #[command(flatten)]
    start: StartFlags,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    run: RunFlags,
    #[command(flatten)]
    export: ExportFlags,
    #[command(flatten)]
    progress: ProgressFlags,
}

/// How the targets are compared.
#[derive(Args, Debug)]
#[command(next_help_heading = "Comparison")]
pub(crate) struct ComparisonFlags {
    /// How targets share the time. Each target has its own virtual users, at the same time or in
    /// `turns` [default: spread]
    #[arg(long, value_enum)]
    schedule: Option<Schedule>,
    /// Load the reference twice, to see that the measurement is right [default: off]. Its process
    /// then has twice the load of the others
    #[arg(long, value_enum)]
    control: Option<Switch>,
    /// Name of the target that the others are measured against [default: `direct`, else the first]
    #[arg(long, value_name = "NAME")]
    reference: Option<String>,
    /// How much worse than the best one a target may be, like `5%`; beyond it: exit code 1
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    margin: Option<f64>,
    /// Requests per second and target; arrivals are evenly spaced
    #[arg(long, value_name = "N", value_parser = parse_rate, allow_negative_numbers = true)]
    #[arg(conflicts_with = "stages")]
    rate: Option<f64>,
    /// Length of the load without its warm-up [default: the profile's, or 60s, and longer for
    /// `turns`]
    #[arg(long = "for", value_name = "TIME", conflicts_with = "stages")]
    length: Option<Nanos>,
    /// End as soon as it is decided which target is slower, or with --margin that they differ by
    /// less; not before 20 s. Intervals are then wider, and hold although the data chose the end
    #[arg(long)]
    decide: bool,
    /// The log of the mock behind the targets (`log: {file: FILE}`): counts how often each target
    /// calls it. With `log_text: true` also for targets that replace request ids
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    upstream_log: Option<PathBuf>,
    /// Repeat the comparison; the result is then the mean over the rounds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// From the start of one round to the start of the next [default: no pause]
    #[arg(long, value_name = "TIME")]
    every: Option<Nanos>,
}

/// How targets share the time.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Schedule {
    /// One request after another, evenly spaced.
    Spread,
    /// All requests of a block at once: for targets that share no host.
    Together,
    /// Each target alone for some seconds, in turn.
    Turns,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Switch {
    On,
    Off,
}

pub(super) use plan::thresholds;

/// Compares the targets of a plan once, and gives the screen of the result.
pub(super) fn compare(
    session: &mut Session,
    plan: &Plan,
    options: RunOptions,
) -> Result<Option<Screen>> {
    let thresholds = thresholds(plan)?;
    let settings = rounds::Settings { thresholds, options, upstream_log: None };
    Ok(rounds::run(session, plan, &settings)?.screen)
}

/// Compares the targets.
pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let part = flags.start.part(flags.settings.shard.shard.as_deref())?;
    let mut plan = plan::build(flags, &part)?;
    let thresholds = thresholds(&plan)?;
    let upstream_log = flags.comparison.upstream_log.as_deref();
    if upstream_log.is_some() && (part.is_shard() || flags.start.processes.is_some()) {
        let why = "--upstream-log counts the calls of a whole comparison: leave it out of a part";
        return Err(UsageError(why.to_owned()).into());
    }
    let mut options = flags.run.options(Some(flags.output.options()));
    options.watch.extend(target::watched(&plan)?);
    if let Some(order) = part.order {
        let (mut session, options) = order.open(&mut plan, options)?;
        let settings = rounds::Settings { thresholds, options, upstream_log };
        return Ok(rounds::run(&mut session, &plan, &settings)?.exit);
    }
    options.launch = part.launch;
    let mut session = Session::open(flags.progress.ui());
    session.export(flags.export.options())?;
    if let Some(count) = flags.start.processes {
        let finished = processes::run(&mut session, &plan, count, &options)?;
        session.linger();
        return Ok(finished.exit);
    }
    let settings = rounds::Settings { thresholds, options, upstream_log };
    let exit = rounds::run(&mut session, &plan, &settings)?.exit;
    session.linger();
    Ok(exit)
}
