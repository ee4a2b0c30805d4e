//! `plimsoll http`: load on any HTTP endpoint, without a profile.

mod body;
mod plan;
mod table;
mod urls;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueHint};
use plimsoll_report::levels::Levels;
use plimsoll_run_files::RowFormat;
use plimsoll_runner::folder::RunDirOptions;
use plimsoll_workload::StatusSet;

use crate::console::{self, Show};
use crate::exit::{Exit, UsageError};
use crate::flags::{
    ExportFlags, HttpFlags, LoadFlags, Part, ProgressFlags, RunFlags, StartFlags, with_scheme,
};
use crate::processes::run_plan;
use crate::run_result::levels_json;
use crate::session::Session;

const AFTER: &str = include_str!("http.txt").trim_ascii_end();

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct Flags {
    /// URLs to load, one after another
    #[arg(required_unless_present = "urls_file", value_name = "URL", value_hint = ValueHint::Url)]
    urls: Vec<String>,
    /// Load the requests of a file, each as often as its weight says; all of one server. A line for
    /// each: `[METHOD] URL [WEIGHT]`, or an object with `url`, and perhaps `method`, `body`,
    /// `headers` and `weight`
    #[arg(long = "urls", value_name = "FILE", conflicts_with_all = ["urls", "body", "method"])]
    #[arg(value_hint = ValueHint::FilePath)]
    urls_file: Option<PathBuf>,
    #[command(flatten)]
    load: LoadFlags,
    /// Use HTTP/2 with this many concurrent streams per connection [default: HTTP/1.1; 10 streams
    /// if no number is given]
    #[arg(long, value_name = "STREAMS", num_args = 0..=1, default_missing_value = "10")]
    #[arg(help_heading = "Connections")]
    http2: Option<u32>,
    #[command(flatten)]
    keys: HttpFlags,
    #[command(flatten)]
    request: Request,
    #[command(flatten)]
    start: StartFlags,
    /// Write the files of each run to a new folder in this one [default: no files]
    #[arg(long, value_name = "DIR", help_heading = "Output", value_hint = ValueHint::DirPath)]
    out: Option<PathBuf>,
    #[command(flatten)]
    run: RunFlags,
    #[command(flatten)]
    export: ExportFlags,
    #[command(flatten)]
    progress: ProgressFlags,
}

/// The request.
#[derive(Args, Debug)]
#[command(next_help_heading = "Request")]
pub(crate) struct Request {
    /// HTTP method [default: GET, or POST with --body]
    #[arg(short = 'X', short_alias = 'm', long, value_name = "NAME")]
    method: Option<String>,
    /// Request body, or `@FILE` for the content of a file, `@-` for standard input [default: none].
    /// Non-UTF-8 content is sent as is
    #[arg(short, long, value_name = "TEXT")]
    body: Option<String>,
    /// User and password of basic authentication
    #[arg(short = 'a', long, value_name = "USER:PASSWORD")]
    basic_auth: Option<String>,
    /// Statuses of answers that are measured as good ones, like `200,304,404`, `2xx` or `any`
    /// [default: 2xx and 304]
    #[arg(long, value_name = "STATUSES")]
    expect: Option<StatusSet>,
}

/// Loads the endpoints one after another and compares them.
pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    // All plans first: a mistake in the last URL must show before the first load.
    let part = flags.start.part(flags.keys.get("shard"))?;
    check_division(flags, &part)?;
    let body = body::Body::read(flags.request.body.as_deref(), &flags.keys.overrides().headers)?;
    let mut urls: Vec<_> = flags.urls.iter().map(|url| with_scheme(url)).collect();
    let mut plans = Vec::new();
    for url in &urls {
        plans.push(plan::build(flags, url, &body, &part)?);
    }
    if let Some(file) = &flags.urls_file {
        let requests = urls::read(file)?;
        urls.push(requests.origin.clone());
        plans.push(plan::build_of(flags, &requests, &part)?);
    }
    if let (Some(order), Some(plan)) = (&part.order, plans.pop_if(|_| part.order.is_some())) {
        return order.carry_out(plan, flags.run.options(None));
    }
    let mut session = Session::open(flags.progress.ui());
    if let Some(sentence) = body.guess() {
        session.status().info(&sentence);
    }
    session.export(flags.export.options())?;
    let output = flags.out.clone().map(|out| RunDirOptions {
        out,
        rows: Some(RowFormat::default()),
        page: true,
    });
    let mut options = flags.run.options(output);
    options.launch = part.launch;
    let several = urls.len() > 1;
    let json = options.show == Show::Json;
    let junit = if several { options.junit.take() } else { None };
    if several && options.show != Show::Full {
        options.show = Show::Nothing;
    }
    let (mut exit, mut finished, mut failed) = (Exit::Pass, Vec::new(), None);
    for plan in plans {
        if exit == Exit::Interrupted || failed.is_some() {
            break;
        }
        match run_plan(&mut session, plan, &options) {
            Ok(run) => {
                exit = exit.max(run.exit);
                finished.push(run);
            }
            Err(error) => failed = Some(error),
        }
    }
    // Measured results are shown even if a later run failed.
    if several && !finished.is_empty() {
        let both = table::side_by_side(&urls, &finished);
        console::write_junit(junit.as_deref(), &both)?;
        if json {
            let levels: Vec<_> = finished.iter().map(|run| Levels::new(&run.summary)).collect();
            console::print(&levels_json(&levels)?)?;
        } else {
            console::print_screen(&both)?;
        }
    }
    session.linger();
    failed.map_or(Ok(exit), Err)
}

/// Only a single run can be divided, because its parts find each other.
fn check_division(flags: &Flags, part: &Part) -> Result<(), UsageError> {
    let divided = part.is_shard() || flags.start.processes.is_some();
    let why = if divided && flags.urls.len() > 1 {
        "--shard and --processes divide one run, and several URLs are several: give one URL"
    } else if divided && flags.request.body.as_deref() == Some("@-") {
        "only one process can read the standard input: give the body as a file"
    } else if part.is_shard() && part.order.is_none() && flags.out.is_none() {
        "a shard leaves its counts in its folder: say where with --out DIR"
    } else {
        return Ok(());
    };
    Err(UsageError(why.to_owned()))
}
