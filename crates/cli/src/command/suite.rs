//! `plimsoll suite`: a whole measurement of a gateway with one command.

use std::env;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand, ValueHint};
use plimsoll_engine::Control;
use plimsoll_measure::Nanos;
use plimsoll_report::format::utc_compact;
use plimsoll_suite::{
    ExternalTarget, Report, Suite, SuiteError, SuiteOptions, SuiteOutcome, become_child,
};

use crate::console;
use crate::environment;
use crate::exit::{Exit, Usage};
use crate::fd_limit::FdLimit;
use crate::flags::ProgressFlags;
use crate::run_dir::{RunDir, RunDirOptions};
use crate::session::last_calibration;
use crate::signal;

const AFTER: &str = "\
Examples:
  plimsoll suite quick --quick
  plimsoll suite baseline --baseline runs/20261121T040000Z-suite-baseline/suite.json
  plimsoll suite policy --target https://gateway.example --key \"$KEY\"

Without --target a suite starts the reference gateway and a mock provider as processes of their own, on cores of their own where there are two. Results are kept in a run_dir below --out: suite.json, report.txt, and the whole summary of each measurement in measurements/. What each suite measures: docs/guides/suites.md.

Exit codes: 0 pass, 1 a bound is broken, 2 wrong usage, 3 a measurement is invalid or could not be made, 130 interrupted.";

/// The suites.
#[derive(Debug, Subcommand)]
#[command(after_help = AFTER)]
pub(crate) enum Which {
    /// Cheap endpoints under few and many clients, keys and limits on and off, chats to a fake
    /// provider
    ///
    /// The variables `AZ_LOAD_DURATION_SECS`, `AZ_LOAD_CONCURRENCY` and `AZ_LOAD_PORT` stand for
    /// --duration, --concurrency and --port where these are left out.
    #[command(after_help = AFTER)]
    Baseline(Flags),
    /// Bare against all layers, each layer's cost, the full stack, cache, streams, request log,
    /// stores
    #[command(after_help = AFTER)]
    Layers(Flags),
    /// Policy enforcement at rising rates, cold and warm, with every policy decision checked
    #[command(after_help = AFTER)]
    Policy(Flags),
    /// A closed loop on /metrics: moderate (100 connections, 30 s) and extreme (200, 60 s)
    #[command(after_help = AFTER)]
    Quick(Flags),
    /// Three sizes of chat, streamed and not, at rising rates up to the knee; each feature as a
    /// delta
    #[command(after_help = AFTER)]
    Tiers(Flags),
    /// Becomes a process of a suite
    #[command(hide = true)]
    Child(ChildFlags),
}

/// What all suites have in common.
#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "flags, as they are typed")]
pub(crate) struct Flags {
    /// A gateway of yours, in place of the reference gateway
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url, help_heading = "What is measured")]
    target: Option<String>,
    /// Key of the target, never shown; `PLIMSOLL_KEY` keeps it out of the process list, too
    #[arg(long, value_name = "KEY", help_heading = "What is measured", requires = "target")]
    key: Option<String>,
    /// Header of every request to the target (repeatable)
    #[arg(long = "header", short = 'H', value_name = "'NAME: VALUE'", requires = "target")]
    #[arg(help_heading = "What is measured")]
    headers: Vec<String>,
    /// Model that chats ask the target for
    #[arg(long, value_name = "NAME", help_heading = "What is measured", requires = "target")]
    model: Option<String>,
    /// Do not verify the target's certificate
    #[arg(long, help_heading = "What is measured", requires = "target")]
    insecure: bool,
    /// Port of the reference gateway [default: any free one]
    #[arg(long, value_name = "N", help_heading = "What is measured", conflicts_with = "target")]
    port: Option<u16>,
    /// Short measurements: the whole suite within two minutes
    #[arg(long, help_heading = "Load")]
    quick: bool,
    /// Length of each measurement [default: the suite's own]
    #[arg(long, short, value_name = "TIME", value_parser = seconds, help_heading = "Load")]
    duration: Option<Nanos>,
    /// Clients of each measurement [default: the suite's own]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    #[arg(help_heading = "Load")]
    concurrency: Option<u32>,
    /// Passes of each measurement, of which the median is shown [default: the suite's own]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    #[arg(help_heading = "Load")]
    passes: Option<u32>,
    /// An earlier suite.json: a drop of throughput over 20 % on the same hardware fails
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(help_heading = "What comes out")]
    baseline: Option<PathBuf>,
    /// Count instances for this many requests per second, beside the usual rates
    #[arg(long, value_name = "RATE", help_heading = "What comes out")]
    size_for: Option<f64>,
    /// Folder in which the suite gets its own, named by time and name
    #[arg(long, value_name = "DIR", default_value = "runs", value_hint = ValueHint::DirPath)]
    #[arg(help_heading = "What comes out")]
    out: PathBuf,
    /// Do not fail (exit 3) because the instrument was not good enough; the report still says so
    #[arg(long, help_heading = "What comes out")]
    allow_invalid: bool,
    #[command(flatten)]
    talk: ProgressFlags,
}

/// A process of a suite.
#[derive(Args, Debug)]
pub(crate) struct ChildFlags {
    /// Core that it stays on
    #[arg(long)]
    core: Option<usize>,
    /// A program in place of this one
    #[arg(long)]
    program: Option<PathBuf>,
    /// What it is
    #[arg(last = true)]
    args: Vec<String>,
}

/// Carries a suite out, and keeps and shows what came of it.
pub(crate) fn run(which: &Which) -> Result<Exit> {
    let (suite, flags) = match which {
        Which::Baseline(flags) => (Suite::Baseline, flags),
        Which::Layers(flags) => (Suite::Layers, flags),
        Which::Policy(flags) => (Suite::Policy, flags),
        Which::Quick(flags) => (Suite::Quick, flags),
        Which::Tiers(flags) => (Suite::Tiers, flags),
        Which::Child(flags) => {
            let program = flags.program.as_deref();
            return Err(become_child(flags.core, program, &flags.args).into());
        }
    };
    let fd_limit = FdLimit::raise();
    let variables = match suite {
        Suite::Baseline => Variables::read(|name| env::var(name).ok())?,
        _ => Variables::default(),
    };
    let started = utc_compact(unix_nanos());
    let keep = RunDirOptions { out: flags.out.clone(), rows: false };
    let run_dir = RunDir::create(&keep, &started, &format!("suite-{}", suite.name()))?;
    let options = flags.options(&variables, &run_dir, fd_limit, started)?;
    let control = Control::new();
    let interrupt = control.clone();
    signal::listen(move || {
        interrupt.interrupt();
        console::say("finishing the measurement at hand; press Ctrl-C again to stop at once");
    })?;
    if cfg!(debug_assertions) {
        console::complain(
            "warning",
            "DEBUG BUILD: every figure is many times too slow; build with --release",
        );
    }
    let quiet = flags.talk.quiet;
    let mut tell = |message: &str| {
        if !quiet {
            console::say(message);
        }
    };
    let report = suite.run(&options, &control, &mut tell);
    let report = report.inspect_err(|_| run_dir.discard()).map_err(usage)?;
    conclude(&report, &run_dir, flags.allow_invalid)
}

/// Shows the report before it is written: a full disk must not take it away.
fn conclude(report: &Report, run_dir: &RunDir, allow_invalid: bool) -> Result<Exit> {
    console::print(&report.text(console::style().width.max(WIDTH)))?;
    let mut json = serde_json::to_vec_pretty(report)?;
    json.push(b'\n');
    run_dir.write("suite.json", &json)?;
    run_dir.write("report.txt", report.text(WIDTH).as_bytes())?;
    console::print_line(&format!("\nfiles: {}", run_dir.path().display()))?;
    Ok(match report.outcome(allow_invalid) {
        SuiteOutcome::Pass => Exit::Pass,
        SuiteOutcome::Fail => Exit::Fail,
        SuiteOutcome::Invalid => Exit::Invalid,
        SuiteOutcome::Interrupted => Exit::Interrupted,
    })
}

/// Columns of the tables, which have more of them than a single run's.
const WIDTH: usize = 140;

impl Flags {
    fn options(
        &self,
        variables: &Variables,
        run_dir: &RunDir,
        fd_limit: Option<FdLimit>,
        started: String,
    ) -> Result<SuiteOptions> {
        if self.size_for.is_some_and(|rate| !rate.is_finite() || rate <= 0.0) {
            bail!(Usage("--size-for: give a number of requests per second above 0".to_owned()));
        }
        Ok(SuiteOptions {
            exe: env::current_exe().context("cannot find this binary")?,
            target: self.target.as_deref().map(|url| self.target(url)),
            quick: self.quick,
            duration: self.duration.or(variables.duration),
            clients: self.concurrency.or(variables.clients),
            passes: self.passes,
            // A target of the user's has its own.
            port: self.port.or_else(|| variables.port.filter(|_| self.target.is_none())),
            folder: std::path::absolute(run_dir.path())?,
            environment: environment::read(fd_limit),
            calibration: last_calibration(),
            baseline: self.baseline.clone(),
            size_for: self.size_for,
            command: command(env::args()),
            started,
        })
    }

    fn target(&self, url: &str) -> ExternalTarget {
        ExternalTarget {
            url: url.trim_end_matches('/').to_owned(),
            key: self.key.clone().or_else(|| env::var("PLIMSOLL_KEY").ok()),
            headers: self.headers.clone(),
            model: self.model.clone(),
            insecure: self.insecure,
        }
    }
}

/// The variables of the baseline seed's own harness.
#[derive(Debug, Default, PartialEq)]
struct Variables {
    duration: Option<Nanos>,
    clients: Option<u32>,
    port: Option<u16>,
}

impl Variables {
    fn read(of: impl Fn(&str) -> Option<String>) -> Result<Self> {
        Ok(Self {
            duration: parse("AZ_LOAD_DURATION_SECS", &of, |text| seconds(text).ok())?,
            clients: parse("AZ_LOAD_CONCURRENCY", &of, |text| {
                text.parse().ok().filter(|&clients| clients > 0)
            })?,
            port: parse("AZ_LOAD_PORT", &of, |text| text.parse().ok())?,
        })
    }
}

fn parse<T>(
    name: &str,
    of: impl Fn(&str) -> Option<String>,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>> {
    let Some(text) = of(name).filter(|text| !text.is_empty()) else { return Ok(None) };
    let value = read(text.trim());
    let refuse = || {
        Usage(format!("the variable {name} is `{text}`: write a whole number above 0, or unset it"))
    };
    Ok(Some(value.ok_or_else(refuse)?))
}

/// A length of time; a number alone is of seconds.
fn seconds(text: &str) -> Result<Nanos, String> {
    let with_unit = if text.parse::<f64>().is_ok() { format!("{text}s") } else { text.to_owned() };
    let length: Nanos = with_unit.parse().map_err(|error| format!("{error}"))?;
    if length < Nanos::from_millis(100) {
        return Err("write at least 100ms".to_owned());
    }
    Ok(length)
}

/// The command line to repeat, without the values of keys and headers.
fn command(args: impl Iterator<Item = String>) -> String {
    let mut words = vec!["plimsoll".to_owned()];
    let mut secret = false;
    for arg in args.skip(1) {
        let flag = arg.split('=').next().unwrap_or_default();
        let hides = ["--key", "--vk", "--header", "-H"].contains(&flag);
        words.push(match (secret, hides && arg.contains('=')) {
            (true, _) => "...".to_owned(),
            (false, true) => format!("{flag}=..."),
            (false, false) if arg.contains(char::is_whitespace) => format!("'{arg}'"),
            (false, false) => arg.clone(),
        });
        secret = hides && !arg.contains('=');
    }
    words.join(" ")
}

#[expect(clippy::disallowed_methods, reason = "the name of the folder is wall-clock time")]
fn unix_nanos() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Some of what keeps a suite from being carried out is what was asked for.
fn usage(error: SuiteError) -> anyhow::Error {
    match error {
        SuiteError::Profile(_) | SuiteError::Baseline { .. } => Usage(error.to_string()).into(),
        error => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_stand_for_flags_and_wrong_ones_are_refused() {
        let of = |pairs: &'static [(&str, &str)]| {
            Variables::read(move |name| {
                let found = pairs.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(of(&[]).unwrap(), Variables::default());
        let all = &[
            ("AZ_LOAD_DURATION_SECS", "30"),
            ("AZ_LOAD_CONCURRENCY", "128"),
            ("AZ_LOAD_PORT", "18800"),
        ];
        let expected = Variables {
            duration: Some(Nanos::from_secs(30)),
            clients: Some(128),
            port: Some(18_800),
        };
        assert_eq!(of(all).unwrap(), expected);
        for wrong in [
            &[("AZ_LOAD_DURATION_SECS", "0")],
            &[("AZ_LOAD_CONCURRENCY", "many")],
            &[("AZ_LOAD_PORT", "99999")],
        ] {
            assert!(of(wrong).unwrap_err().is::<Usage>(), "{wrong:?}");
        }
    }

    #[test]
    fn a_number_alone_is_of_seconds() {
        for (text, length) in
            [("30", Some(30_000)), ("1.5s", Some(1_500)), ("0", None), ("x", None)]
        {
            assert_eq!(seconds(text).ok(), length.map(Nanos::from_millis), "{text}");
        }
    }

    #[test]
    fn the_command_to_repeat_has_no_secrets_in_it() {
        let args = [
            "x/plimsoll",
            "suite",
            "quick",
            "--vk",
            "sk-1",
            "-H",
            "a: b",
            "--vk=sk-2",
            "--out",
            "a b",
        ];
        let text = command(args.map(str::to_owned).into_iter());
        assert_eq!(text, "plimsoll suite quick --vk ... -H ... --vk=... --out 'a b'");
    }
}
