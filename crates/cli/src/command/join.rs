//! `plimsoll join`: does the gateway's own log say the same as the run?

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, thread};

use anyhow::Result;
use clap::{Args, ValueEnum, ValueHint};
use plimsoll_join::{
    Join, JoinError, LogOf, Map, MapChoice, Mapping, Options, Reading, RunChoice, Verdict, join,
    preset_names, text,
};
use plimsoll_measure::{Clock as _, MonotonicClock, Nanos};
use plimsoll_runner::folder::{file, replace};

use super::report::found::{Found, Kind, find};
use crate::console;
use crate::exit::{Exit, UsageError};
use crate::flags::percent;
use crate::progress::{StatusOutput, Steps, Ui, UiFlag};

const AFTER: &str = include_str!("join.txt").trim_ascii_end();

/// Default time that a join waits for missing rows, and the age of a run up to which it waits.
const WAIT: Nanos = Nanos::from_secs(5);
const SOON_AFTER: Duration = Duration::from_mins(1);
/// Time between two looks at a log that is still written.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct Flags {
    /// Folder of the run, or a folder of such folders: the latest
    #[arg(value_hint = ValueHint::DirPath)]
    run: PathBuf,
    /// The gateway's log
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    log: PathBuf,
    #[command(flatten)]
    rules: Rules,
    #[command(flatten)]
    output: Output,
}

/// How the log is read.
#[derive(Args, Debug)]
#[command(next_help_heading = "Log")]
struct Rules {
    /// Meaning of a column, like `id=request_id` or `total=took:ms`; `total=` for none (repeatable)
    #[arg(long = "map", value_name = "FIELD=COLUMN", value_delimiter = ',', value_parser = parse_mapping)]
    map: Vec<Mapping>,
    /// Use the columns of a known log format instead of detecting it
    #[arg(long, value_name = "NAME", value_parser = clap::builder::PossibleValuesParser::new(preset_names()))]
    preset: Option<String>,
    /// Component that wrote the log [default: the gateway; the mock's log is an upstream's]
    #[arg(long, value_enum)]
    log_of: Option<Place>,
    /// Time to wait for rows that the gateway has not written yet [default: 5s within a minute
    /// after the run, else 0s]
    #[arg(long, value_name = "TIME", value_parser = parse_wait)]
    wait: Option<Nanos>,
    /// Match by this recorded response header instead of the id that was sent
    #[arg(long, value_name = "HEADER")]
    id_header: Option<String>,
    /// In a run with several targets, the target that wrote the log
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
    /// Share of requests that may be missing in the log, like 0.01%
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent, default_value = "0%")]
    allow_lost: f64,
}

/// The files of a join.
#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
struct Output {
    /// Print join.json instead of the text; the file is written to the run's folder in any case
    #[arg(long)]
    json: bool,
    /// Also write joined.jsonl to the run's folder: a line for each request, with its match and the
    /// parts of its time
    #[arg(long)]
    rows: bool,
    /// No progress on stderr
    #[arg(short, long)]
    quiet: bool,
}

/// Where a log was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Place {
    /// By the target: it has every request
    Gateway,
    /// By the upstream: it has no request that the target answered by itself
    Upstream,
}

/// Matches run and log, prints the result and writes join.json.
pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let Flags { run, log, rules, output } = flags;
    let run = &run_folder(run);
    let mut options = rules.options();
    options.rows = output.rows.then(|| run.join(file::JOINED));
    let joined = join_when_written(flags, run, log, &options).map_err(join_error)?;
    let json = serde_json::to_string_pretty(&joined)? + "\n";
    replace(run, file::JOIN, json.as_bytes())?;
    console::print(&if output.json { json } else { text(&joined) })?;
    Ok(exit(&joined))
}

/// The folder itself, or the latest run in it. For any other folder, the join reports the error.
fn run_folder(folder: &Path) -> PathBuf {
    match find(folder) {
        Ok(Found { kind: Kind::Run, folder, note }) => {
            if let Some(note) = note {
                console::eprint_line(&note);
            }
            folder
        }
        _ => folder.to_owned(),
    }
}

/// Joins again until the log has every request or the time to wait is over.
#[expect(clippy::disallowed_methods, reason = "no load is running")]
fn join_when_written(
    flags: &Flags,
    run: &Path,
    log: &Path,
    options: &Options,
) -> Result<Join, JoinError> {
    let quiet = flags.output.quiet;
    let status = StatusOutput::open(Ui::for_process(UiFlag::Auto, quiet));
    let steps = Steps::passing(&status, "reading the run and the log");
    let say = |line: &str| {
        if !quiet {
            steps.above(|| console::eprint_line(line));
        }
    };
    let clock = MonotonicClock::start();
    let until = clock.now() + flags.rules.wait.unwrap_or_else(|| usual_wait(run));
    let (mut shown, mut waits) = (String::new(), false);
    loop {
        let mut show_map = |map: &Map| {
            let line = format!("map: {} ({})", map.shown(), map.origin());
            if shown != line {
                say(&line);
                shown = line;
            }
        };
        let joined = join(run, log, options, &mut show_map, &mut |reading, rows| {
            let of = if matches!(reading, Reading::Run) { "run" } else { "log" };
            steps.step(&format!("{} rows of the {of} read", plimsoll_report::format::count(rows)));
        });
        let missing = match &joined {
            Ok(joined) if joined.books.lost > 0 => format!("{} requests", joined.books.lost),
            Err(error) if error.lacks_rows() => "all requests".to_owned(),
            _ => return joined,
        };
        let now = clock.now();
        if now >= until {
            return joined;
        }
        if !std::mem::replace(&mut waits, true) {
            let seconds = until.since(now).as_secs_f64();
            say(&format!(
                "join: the log lacks {missing}; waiting up to {seconds:.0} s for it (--wait)"
            ));
        }
        thread::sleep(LOOK_AGAIN);
    }
}

/// A gateway may write its log some seconds late; long after a run, missing rows are lost.
fn usual_wait(run: &Path) -> Nanos {
    let written = fs::metadata(run.join(file::SUMMARY)).and_then(|summary| summary.modified());
    let age = written.ok().and_then(|at| at.elapsed().ok());
    if age.is_some_and(|age| age < SOON_AFTER) { WAIT } else { Nanos::ZERO }
}

const fn exit(joined: &Join) -> Exit {
    match joined.verdict {
        Verdict::Agree => Exit::Pass,
        Verdict::Disagree => Exit::Fail,
        Verdict::Unjudged(_) => Exit::Inconclusive,
    }
}

fn join_error(error: JoinError) -> anyhow::Error {
    if error.is_usage() { UsageError(error.to_string()).into() } else { error.into() }
}

impl Rules {
    fn options(&self) -> Options {
        let log_of = self.log_of.map(|place| match place {
            Place::Gateway => LogOf::Gateway,
            Place::Upstream => LogOf::Upstream,
        });
        let run = RunChoice { target: self.target.clone(), id_header: self.id_header.clone() };
        let map = MapChoice { preset: self.preset.clone(), entries: self.map.clone(), log_of };
        Options { run, map, allow_lost: self.allow_lost, rows: None }
    }
}

fn parse_mapping(text: &str) -> Result<Mapping, String> {
    Mapping::parse(text).map_err(|error| error.to_string())
}

fn parse_wait(text: &str) -> Result<Nanos, String> {
    text.parse().map_err(|_| "write a duration like 5s or 2m; 0s does not wait".to_owned())
}

/// Parses a percentage from 0 to 100, with or without the sign.
fn parse_percent(text: &str) -> Result<f64, String> {
    let share = percent(text).filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "write a percentage from 0 to 100, like 0.01%".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_and_maps_are_checked_at_once() {
        assert_eq!((parse_percent("0.01%"), parse_percent("0")), (Ok(0.0001), Ok(0.0)));
        assert!(["-1", "101%", "NaN", "some"].into_iter().all(|text| parse_percent(text).is_err()));
        assert!(parse_mapping("total=took").unwrap_err().contains("total=took:UNIT"));
    }
}
