//! `plimsoll join`: does the gateway's own log say the same as the run?

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs, thread};

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum, ValueHint};
use plimsoll_join::{
    Credentials, Join, JoinError, LogOf, Map, MapChoice, Mapping, Options, Reading, RunChoice,
    Source, Verdict, join, preset_names, text,
};
use plimsoll_measure::{Clock as _, Moment, MonotonicClock, Nanos};
use plimsoll_runner::folder::file;

use super::report::found::{Found, Kind, find};
use crate::console;
use crate::exit::{Exit, UsageError};
use crate::flags::percent;

const AFTER: &str = "\
Examples:
  plimsoll join runs/20260102T030405Z-realistic --log audit.jsonl
  plimsoll join RUN --log access.csv.gz --map id=req --map total=took:ms --map status=code
  plimsoll join RUN --log mock.jsonl                    the log of our own mock, behind the target
  plimsoll join RUN --log clickhouse:http://HOST:8123/DATABASE.TABLE
  plimsoll join RUN --log postgres://HOST:5432/DATABASE/SCHEMA.TABLE

The log is JSON lines or CSV, also compressed by gzip, or a table. User and password of a database come from the environment: CLICKHOUSE_USER and CLICKHOUSE_PASSWORD, PGUSER and PGPASSWORD. Of a table, only mapped columns are read, within 5 minutes of the run.

Which column means what is printed before the log is read. It comes from a preset, which is recognised by its columns; from well-known names, where each is unambiguous; or from --map FIELD=COLUMN, with a unit for times and lengths (ns, us, ms, s, iso). Fields: id; at and ended (when the request arrived and was over); total and upstream (how long it took); status; stream; prompt and completion (tokens); decision; attempt; text and messages (the beginning of the prompt, whose id Plimsoll put there, and the number of messages). `a.b` is the member b of the object a.

A gateway that makes ids of its own returns them in a header of its answers: record it (`response_headers: {record: [NAME]}` in the profile) and name it with --id-header.

lost: requests that have an answer, and that the log does not have. twice: in the log more than once without a retry. disagreeing: status, tokens, stream or decision differ. foreign: rows of other requests, which are normal in a log that others share.

Exit codes: 0 run and log agree, 1 they do not, 2 wrong usage (also a database that does not answer, a log of another run or in other units), 3 it cannot be judged.";

/// How long a join waits for missing rows where nothing is said, and until how long after the run.
const WAIT: Nanos = Nanos::from_secs(5);
const SOON_AFTER: Duration = Duration::from_mins(1);
/// Time between two looks at a log that is still written.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Time between two lines of progress.
const EVERY: Nanos = Nanos::from_secs(3);

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct Flags {
    /// Folder of the run, or a folder of such folders: the latest
    #[arg(value_hint = ValueHint::DirPath)]
    run: PathBuf,
    /// The gateway's log: a file, or the URL of a table
    #[arg(long, value_name = "SOURCE", value_hint = ValueHint::AnyPath)]
    log: String,
    #[command(flatten)]
    rules: Rules,
    #[command(flatten)]
    output: Output,
}

/// How the log is read.
#[derive(Args, Debug)]
#[command(next_help_heading = "Log")]
struct Rules {
    /// A column and what it means, like `id=request_id` or `total=took:ms`; `total=` for none
    /// (repeatable)
    #[arg(long = "map", value_name = "FIELD=COLUMN", value_delimiter = ',', value_parser = parse_mapping)]
    map: Vec<Mapping>,
    /// Take the columns of a known log, instead of recognising it
    #[arg(long, value_name = "NAME", value_parser = clap::builder::PossibleValuesParser::new(preset_names()))]
    preset: Option<String>,
    /// Whose log it is [default: the gateway's; the mock's is an upstream's]
    #[arg(long, value_enum)]
    log_of: Option<Place>,
    /// How long a database may be silent before it is given up
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "60s")]
    timeout: Nanos,
    /// How long to wait for rows that the log does not have yet, because the gateway still writes
    /// it [default: 5s within a minute after the run, else 0s]
    #[arg(long, value_name = "TIME", value_parser = parse_wait)]
    wait: Option<Nanos>,
    /// Match by this recorded header of the answers, instead of the id that was sent
    #[arg(long, value_name = "HEADER")]
    id_header: Option<String>,
    /// Of a run with several targets, the one whose log it is
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
    /// The share of requests that the log may lose, like 0.01%
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent, default_value = "0%")]
    allow_lost: f64,
}

/// The files of a join.
#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
struct Output {
    /// Print join.json instead of the text; it is written to the run's folder anyway
    #[arg(long)]
    json: bool,
    /// Also write joined.jsonl to the run's folder: a line for each request, with what became of it
    /// and the parts of its time
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
    let source = Source::parse(log, credentials).map_err(join_error)?;
    let source = source.with_patience(rules.timeout.to_duration());
    let mut options = rules.options();
    options.rows = output.rows.then(|| run.join(file::JOINED));
    let joined = join_when_written(flags, run, &source, &options).map_err(join_error)?;
    let json = serde_json::to_string_pretty(&joined)? + "\n";
    write(&run.join(file::JOIN), &json)?;
    console::print(&if output.json { json } else { text(&joined) })?;
    Ok(exit(&joined))
}

/// The folder itself, or the latest run in it. What is neither, the join says by itself.
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
    source: &Source,
    options: &Options,
) -> Result<Join, JoinError> {
    let wait = flags.rules.wait.unwrap_or_else(|| usual_wait(run));
    let told = RefCell::new(Told::new(!flags.output.quiet));
    let until = told.borrow().clock.now() + wait;
    loop {
        let joined = join(
            run,
            source,
            options,
            &mut |map: &Map| told.borrow_mut().show(map),
            &mut |reading, rows| told.borrow_mut().tell(reading, rows),
        );
        let missing = match &joined {
            Ok(joined) if joined.books.lost > 0 => format!("{} requests", joined.books.lost),
            Err(error) if error.lacks_rows() => "all requests".to_owned(),
            _ => return joined,
        };
        let now = told.borrow().clock.now();
        if now >= until {
            return joined;
        }
        told.borrow_mut().wait(&missing, until.since(now));
        thread::sleep(LOOK_AGAIN);
    }
}

/// A gateway may write its log some seconds late; long after a run, what is missing is lost.
fn usual_wait(run: &Path) -> Nanos {
    let written = fs::metadata(run.join(file::SUMMARY)).and_then(|summary| summary.modified());
    let age = written.ok().and_then(|at| at.elapsed().ok());
    if age.is_some_and(|age| age < SOON_AFTER) { WAIT } else { Nanos::ZERO }
}

/// Replaces the file as a whole: a reader sees the old one or the new one.
fn write(path: &Path, text: &str) -> Result<()> {
    let new = path.with_extension("json.new");
    let written = fs::write(&new, text).and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        // It may be half written.
        let _ = fs::remove_file(&new);
    }
    written.with_context(|| format!("cannot write {}", path.display()))
}

const fn exit(joined: &Join) -> Exit {
    match joined.verdict {
        Verdict::Agree => Exit::Pass,
        Verdict::Disagree => Exit::Fail,
        Verdict::Unjudged(_) => Exit::Invalid,
    }
}

fn join_error(error: JoinError) -> anyhow::Error {
    if error.is_usage() { UsageError(error.to_string()).into() } else { error.into() }
}

/// The variables that the clients of both databases know.
fn credentials(kind: &str) -> Credentials {
    let (user, password) = match kind {
        "clickhouse" => ("CLICKHOUSE_USER", "CLICKHOUSE_PASSWORD"),
        _ => ("PGUSER", "PGPASSWORD"),
    };
    Credentials { user: variable(user), password: variable(password) }
}

/// A variable of the environment that says something.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
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

/// Progress on stderr: a line every few seconds.
struct Told {
    wanted: bool,
    clock: MonotonicClock,
    next: Moment,
    /// The map that was shown.
    map: String,
    waits: bool,
}

impl Told {
    fn new(wanted: bool) -> Self {
        let clock = MonotonicClock::start();
        let next = clock.now() + EVERY;
        Self { wanted, clock, next, map: String::new(), waits: false }
    }

    /// Shows a map, once.
    fn show(&mut self, map: &Map) {
        let line = format!("map: {} ({})", map.shown(), map.origin());
        if self.wanted && self.map != line {
            console::eprint_line(&line);
            self.map = line;
        }
    }

    /// Says once that a join is repeated.
    fn wait(&mut self, missing: &str, left: Nanos) {
        if self.wanted && !self.waits {
            let seconds = left.as_secs_f64();
            console::eprint_line(&format!(
                "join: the log lacks {missing}; waiting up to {seconds:.0} s for it (--wait)"
            ));
        }
        self.waits = true;
    }

    fn tell(&mut self, reading: Reading, rows: u64) {
        let now = self.clock.now();
        if !self.wanted || now < self.next {
            return;
        }
        self.next = now + EVERY;
        let what = match reading {
            Reading::Run => "rows of the run",
            Reading::Log => "rows of the log",
        };
        let line = format!("join: {} {what} read", plimsoll_report::format::count(rows));
        console::eprint_line(&line);
    }
}

fn parse_mapping(text: &str) -> Result<Mapping, String> {
    Mapping::parse(text).map_err(|error| error.to_string())
}

fn parse_wait(text: &str) -> Result<Nanos, String> {
    text.parse().map_err(|_| "write a duration like 5s or 2m; 0s does not wait".to_owned())
}

fn parse_time(text: &str) -> Result<Nanos, String> {
    let parsed = text.parse::<Nanos>().ok().filter(|time| time.as_u64() > 0);
    parsed.ok_or_else(|| "write a duration like 60s or 5m".to_owned())
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
