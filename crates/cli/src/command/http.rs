//! `plimsoll http`: load for any endpoint, without a profile.

mod intent;
mod table;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum, ValueHint};
use plimsoll_measure::Nanos;

use crate::console;
use crate::exit::Exit;
use crate::flags::{ProgressFlags, RunFlags, Tls};
use crate::run_dir::RunDirOptions;
use crate::session::Session;

const AFTER: &str = "\
Examples:
  plimsoll http http://127.0.0.1:8080/health -c 128 -d 30s
  plimsoll http https://api.example/v1/items --rate 5000 --arrivals poisson
  plimsoll http http://127.0.0.1:8080/echo --body @request.json -H 'accept: */*'
  plimsoll http http://127.0.0.1:8080/ http://127.0.0.1:8081/    one by one, and compared

With -c alone each connection sends its next request when the answer is there (closed model). With --rate requests start when the schedule says, whatever the target does (open model); -c is then the most under way at once.

`{{uuid}}`, `{{seq}}` and `{{random N}}` in the URL's path, in headers and in the body are replaced in each request.";

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct Flags {
    /// What to load, one after another
    #[arg(required = true, value_name = "URL", value_hint = ValueHint::Url)]
    urls: Vec<String>,
    #[command(flatten)]
    load: Load,
    #[command(flatten)]
    request: Request,
    #[command(flatten)]
    tls: Tls,
    /// Keep the files of each run in a folder of its own below this one
    #[arg(long, value_name = "DIR", help_heading = "What comes out", value_hint = ValueHint::DirPath)]
    out: Option<PathBuf>,
    #[command(flatten)]
    manners: RunFlags,
    #[command(flatten)]
    talk: ProgressFlags,
}

/// How much.
#[derive(Args, Debug)]
#[command(next_help_heading = "Load")]
pub(crate) struct Load {
    /// Connections [default: 64]
    #[arg(short, long, value_name = "N")]
    connections: Option<u32>,
    /// Speak HTTP/2, with so many requests at once on each connection
    #[arg(long, value_name = "STREAMS", num_args = 0..=1, default_missing_value = "10")]
    http2: Option<u32>,
    /// Requests per second, in place of as many as the connections carry
    #[arg(short, long, value_name = "N")]
    rate: Option<f64>,
    /// How --rate spaces requests
    #[arg(long, value_enum, default_value_t = Spacing::Constant)]
    arrivals: Spacing,
    /// How long
    #[arg(short, long, value_name = "TIME", default_value = "10s")]
    duration: Nanos,
    /// Before that, the same load, not counted; 0 for none
    #[arg(long, value_name = "TIME", default_value = "2s")]
    warmup: Nanos,
    /// Seed of every random draw
    #[arg(long, value_name = "N")]
    seed: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Spacing {
    Constant,
    Poisson,
}

/// What is sent.
#[derive(Args, Debug)]
#[command(next_help_heading = "What is sent")]
pub(crate) struct Request {
    /// Method [default: GET, or POST with a body]
    #[arg(short, long, value_name = "NAME")]
    method: Option<String>,
    /// Body, or `@FILE` for the content of a file
    #[arg(short, long, value_name = "TEXT")]
    body: Option<String>,
    /// Header of every request (repeatable)
    #[arg(short = 'H', long = "header", value_name = "'NAME: VALUE'")]
    headers: Vec<String>,
    /// Time limit of a request
    #[arg(long, value_name = "TIME", default_value = "30s")]
    timeout: Nanos,
}

/// Loads the endpoints one after another, and compares them.
pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    // All of them first: a mistake in the last must not come to light after the first has run.
    let plans =
        flags.urls.iter().map(|url| intent::plan(flags, url)).collect::<Result<Vec<_>>>()?;
    let mut session = Session::open(flags.talk.quiet);
    let keep = flags.out.clone().map(|out| RunDirOptions { out, rows: true });
    let options = flags.manners.options(keep);
    let (mut exit, mut summaries) = (Exit::Pass, Vec::new());
    for plan in plans {
        if exit == Exit::Interrupted {
            break;
        }
        let finished = session.carry_out(plan, &options)?;
        exit = exit.and(finished.exit);
        summaries.push(finished.summary);
    }
    if flags.urls.len() > 1 {
        console::print(&table::side_by_side(flags.urls.iter().zip(&summaries)))?;
    }
    Ok(exit)
}
