//! `plimsoll llm`: load on an LLM endpoint, without a profile.

mod plan;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueHint};

use crate::console;
use crate::exit::{Exit, UsageError};
use crate::flags::{
    ExportFlags, LlmFlags, LoadFlags, OutputFlags, ProgressFlags, RunFlags, StartFlags,
    TrafficFlags,
};
use crate::processes::run_plan;
use crate::session::Session;

const AFTER: &str = include_str!("llm.txt").trim_ascii_end();

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct Flags {
    /// Base URL of the endpoint, without `/v1/chat/completions`
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    url: String,
    #[command(flatten)]
    load: Load,
    #[command(flatten)]
    keys: LlmFlags,
    #[command(flatten)]
    request: Request,
    #[command(flatten)]
    traffic: TrafficFlags,
    #[command(flatten)]
    start: StartFlags,
    /// Print the profile and send nothing
    #[arg(long, help_heading = "Output")]
    print_profile: bool,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    run: RunFlags,
    #[command(flatten)]
    export: ExportFlags,
    #[command(flatten)]
    progress: ProgressFlags,
}

/// The load.
#[derive(Args, Debug)]
#[command(next_help_heading = "Load")]
struct Load {
    #[command(flatten)]
    levels: LoadFlags,
    /// Double the users from one on, until the throughput grows by less than 5 %
    #[arg(long, conflicts_with_all = ["concurrency", "rate"])]
    sweep: bool,
}

/// The requests.
#[derive(Args, Debug)]
#[command(next_help_heading = "Request")]
#[expect(clippy::struct_excessive_bools, reason = "flags are independent")]
struct Request {
    /// Model to request; of several each gets an equal share of the requests [default: the first
    /// that the endpoint lists at /v1/models]
    #[arg(short, long = "model", value_name = "NAME,...", value_delimiter = ',')]
    models: Vec<String>,
    /// Input tokens of each request [default: 550]
    #[arg(long, value_name = "TOKENS", conflicts_with = "prompts")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    isl: Option<u32>,
    /// Standard deviation of the input tokens: --isl is their mean
    #[arg(long, value_name = "TOKENS", conflicts_with = "prompts")]
    isl_stddev: Option<u32>,
    /// Standard deviation of the most output tokens: --osl is their mean
    #[arg(long, value_name = "TOKENS")]
    osl_stddev: Option<u32>,
    /// Most output tokens of each request, unless its record has a limit
    #[arg(long, alias = "max-tokens", value_name = "TOKENS", default_value_t = 150)]
    #[arg(alias = "max-completion-tokens")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    osl: u32,
    /// Recorded traffic or prompts, in a format that `plimsoll import` reads: a random session for
    /// each conversation, whole. Prompts get no marker unless --bust
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    prompts: Option<PathBuf>,
    /// Send each session of --prompts once, in the order of the file, and end after the last one
    #[arg(long, requires = "prompts")]
    in_order: bool,
    /// Reject a file of --prompts with unsupported members, instead of listing them
    #[arg(long, requires = "prompts")]
    strict: bool,
    /// Ask for whole answers instead of streams; without TTFT then
    #[arg(long)]
    no_stream: bool,
}

/// Runs the levels and prints their table.
pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let part = flags.start.part(flags.keys.get("shard"))?;
    if flags.load.sweep && (part.is_shard() || flags.start.processes.is_some()) {
        let why = "--sweep needs a single process: give levels with -c";
        return Err(UsageError(why.to_owned()).into());
    }
    let stages = plan::stages(&flags.load, flags.keys.get("max-requests").is_some())?.to_string();
    let mut request = plan::LlmProfile::new(flags, &part)?;
    if flags.print_profile {
        console::print(&request.text(&stages)?)?;
        return Ok(Exit::Pass);
    }
    // A mistake must show before the first load.
    let first = request.plan(&stages)?;
    if let Some(order) = &part.order {
        return order.carry_out(first, flags.run.options(None));
    }
    let mut session = Session::open(flags.progress.ui());
    session.export(flags.export.options())?;
    let mut options = flags.run.options(Some(flags.output.options()));
    options.launch = part.launch;
    options.until_saturated = flags.load.sweep;
    let run = run_plan(&mut session, first, &options)?;
    session.linger();
    Ok(run.exit)
}
