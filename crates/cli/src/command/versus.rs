//! `plimsoll versus`: what does a gateway add, and which one is better.

mod plan;
mod rounds;
pub(super) mod target;

use anyhow::Result;
use clap::{Args, ValueEnum, ValueHint};
use clap_complete::engine::ArgValueCompleter;
use plimsoll_plan::Plan;
use plimsoll_report::screen::Screen;

use super::completions::profiles;
use crate::exit::Exit;
use crate::flags::{
    ExportFlags, LoadFlags, OutputFlags, ProfileFlags, ProgressFlags, RunFlags, StartFlags,
    VersusFlags,
};
use crate::processes::run_plan;
use crate::session::{RunOptions, Session};
use target::{TargetFlag, parse_direct, parse_target};

const AFTER: &str = include_str!("versus.txt").trim_ascii_end();

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct Flags {
    /// Profile file, or name of a built-in profile [default: short streamed chats]
    #[arg(value_hint = ValueHint::FilePath, add = ArgValueCompleter::new(profiles))]
    profile: Option<String>,
    /// The upstream itself, as reference; options as for --target
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
    load: LoadFlags,
    #[command(flatten)]
    keys: VersusFlags,
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
    let settings = rounds::Settings { thresholds, options };
    Ok(rounds::run(session, plan, &settings)?.screen)
}

/// Compares the targets.
pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let part = flags.start.part(flags.settings.get("shard"))?;
    let mut plan = plan::build(flags, &part)?;
    let thresholds = thresholds(&plan)?;
    let mut options = flags.run.options(Some(flags.output.options()));
    options.watch.extend(target::watched(&plan)?);
    if let Some(order) = part.order {
        let (mut session, options) = order.open(&mut plan, options)?;
        let settings = rounds::Settings { thresholds, options };
        return Ok(rounds::run(&mut session, &plan, &settings)?.exit);
    }
    options.launch = part.launch;
    let mut session = Session::open(flags.progress.ui());
    session.export(flags.export.options())?;
    if flags.start.processes.is_some() {
        let finished = run_plan(&mut session, plan, &options)?;
        session.linger();
        return Ok(finished.exit);
    }
    let settings = rounds::Settings { thresholds, options };
    let exit = rounds::run(&mut session, &plan, &settings)?.exit;
    session.linger();
    Ok(exit)
}
