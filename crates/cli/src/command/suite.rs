//! `plimsoll suite`: measures a gateway with a predefined series of loads.

use std::env;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand, ValueHint};
use plimsoll_engine::Control;
use plimsoll_measure::Nanos;
use plimsoll_plan::{redacted_path, redacted_urls};
use plimsoll_report::format::utc_compact;
use plimsoll_report::screen::Rest;
use plimsoll_runner::folder::{RunDir, RunDirOptions, file, unix_nanos};
use plimsoll_suite::{
    Accepted, GatewaysFile, Report, Suite, SuiteError, SuiteOptions, SuiteOutcome, SuiteTarget,
    become_child, layer_part, prometheus, supervise,
};

use crate::command::report;
use crate::command::versus::target::{TargetFlag, parse_direct, parse_named_or_not};
use crate::console::{self, Show};
use crate::environment::{self, FdLimit};
use crate::exit::{self, Exit, RunSignal, TargetError, UsageError};
use crate::flags::{
    ProgressFlags, PushFlags, ScreenFlags, parse_rate, parse_time, watched_process,
};
use crate::progress::{StatusOutput, Steps};
use crate::session::{self, last_calibration, listens_at};

const AFTER: &str = include_str!("suite.txt").trim_ascii_end();

/// The suites.
#[derive(Debug, Subcommand)]
#[command(after_help = AFTER)]
pub(crate) enum SuiteCommand {
    /// Measure a mixed day: chats, tool calls, messages to agents and approvals at the same time,
    /// and the overhead of the gateway for each
    ///
    /// Of 400 arrivals per second (100 at your gateway) 40 % are chats, 30 % calls of a tool over
    /// MCP, 20 % messages to an agent over A2A, and 10 % requests for approval. Then every chat,
    /// call and message goes both ways, through the gateway and directly to the upstream. With a
    /// redis-server on the PATH all of it is repeated with Redis. Your gateway needs a tool `echo`
    /// with the argument `text` at /mcp, and an agent at /a2a.
    #[command(after_help = AFTER)]
    Agents(Flags),
    /// Measure cheap endpoints with few and many clients, keys and rate limits on and off, and
    /// chats with a mock provider: plain, streamed, over WebSockets, and as an agent loop
    ///
    /// The variables `AZ_LOAD_DURATION_SECS`, `AZ_LOAD_CONCURRENCY` and `AZ_LOAD_PORT` are the
    /// defaults of --duration, --concurrency and --port.
    #[command(after_help = AFTER)]
    Baseline(Flags),
    /// Start gateways of any project in front of the same upstream, and measure the overhead, the
    /// capacity, the CPU time, the memory and the cold start of each
    ///
    /// FILE lists the gateways: how each is started, and what belongs to it. Gateways run one at a
    /// time, in a random order, and are started again in every round. The guide
    /// docs/gateways.md describes the file; examples/gateways/gateways.yaml has ready entries.
    #[command(after_help = AFTER)]
    Gateways(GatewaysFlags),
    /// Measure the cost of each gateway layer and of all together, of cache, streams, request log
    /// and stores
    #[command(after_help = AFTER)]
    Layers(Flags),
    /// Measure policy enforcement at rising rates, cold and warm, and check every policy decision
    #[command(after_help = AFTER)]
    Policy(Flags),
    /// Measure GET /metrics under closed-model load: 100 connections for 30s, then 200 for 60s
    #[command(after_help = AFTER)]
    Quick(Flags),
    /// Measure chats of three sizes, streamed and not, at rising rates, the knee of each, and the
    /// cost of each feature
    #[command(after_help = AFTER)]
    Tiers(Flags),
    /// Run as a child process of a suite
    #[command(hide = true)]
    Child(ChildFlags),
}

/// The flags of all suites.
#[derive(Args, Debug)]
pub(crate) struct Flags {
    /// URL of your gateway [default: the reference gateway is started]. With `tiers` repeatable,
    /// each with a name; and if needed with its `key` (name of a variable), `model` and `watch`
    /// (its process on this host: `:8080` by port, or `pid:4711`; `store` for its store's process)
    #[arg(long = "target", value_name = "[NAME=]URL[,OPTION=VALUE]...", help_heading = "Target")]
    #[arg(value_parser = parse_named_or_not, value_hint = ValueHint::Url)]
    targets: Vec<TargetFlag>,
    /// With `agents`, `baseline`, `layers` and `tiers`: the upstream itself, as reference; options
    /// as for --target
    #[arg(long, value_name = "URL[,OPTION=VALUE]...", value_parser = parse_direct)]
    #[arg(help_heading = "Target")]
    direct: Option<TargetFlag>,
    /// API key for the target; never shown. The variable `PLIMSOLL_KEY` also keeps it out of the
    /// process list
    #[arg(long, value_name = "KEY", help_heading = "Target")]
    key: Option<String>,
    /// Add a header to every request to the target (repeatable)
    #[arg(long = "header", short = 'H', value_name = "'NAME: VALUE'")]
    #[arg(help_heading = "Target")]
    headers: Vec<String>,
    /// Model to request from the target
    #[arg(long, value_name = "NAME", help_heading = "Target")]
    model: Option<String>,
    /// Do not verify the target's certificate
    #[arg(long, help_heading = "Target")]
    insecure: bool,
    /// Speak HTTP/2 with the target: by ALPN over TLS, by prior knowledge over plain TCP
    #[arg(long, help_heading = "Target")]
    http2: bool,
    /// Port of the reference gateway, 0 for a free one [default: 18800 with `baseline`, 8094 with
    /// `quick`, if it is free; else a free one]. Further gateways of a suite take free ones
    #[arg(long, value_name = "N", help_heading = "Target", conflicts_with = "targets")]
    port: Option<u16>,
    /// Make short measurements: the whole suite takes about three minutes at most
    #[arg(long, help_heading = "Load")]
    short: bool,
    /// Duration of each measurement, like 30s; a bare number is in seconds [default: the suite's]
    #[arg(long, short, value_name = "TIME", value_parser = parse_duration, help_heading = "Load")]
    duration: Option<Nanos>,
    /// Warm-up before each measurement, like 60s; 0s for none. `policy` makes cold runs instead
    /// [default: 2s, with --short 300ms]
    #[arg(long, value_name = "TIME", value_parser = parse_time, help_heading = "Load")]
    warmup: Option<Nanos>,
    /// With `policy`: your gateway has just started, so the first run of each profile is a cold
    /// one, and is shown beside the second
    #[arg(long, help_heading = "Load")]
    just_started: bool,
    /// Number of clients of each measurement; `agents` has none [default: the suite's]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_CLIENTS)))]
    #[arg(help_heading = "Load")]
    concurrency: Option<u32>,
    /// Threads of the load generator; in `quick`, the extreme load uses twice as many [default: one
    /// for each core of the load]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    #[arg(help_heading = "Load")]
    threads: Option<u16>,
    /// With `layers`: measure only these parts: layer 1, 2 or 3, log, stores
    #[arg(long, value_name = "PART,...", value_parser = layer_part, value_delimiter = ',')]
    #[arg(help_heading = "Load")]
    only: Vec<&'static str>,
    /// With `tiers`: time for the search of each knee; 0s for none [default: 150s; with --short
    /// none]
    #[arg(long, value_name = "TIME", help_heading = "Load")]
    knee_budget: Option<Nanos>,
    /// Number of times each measurement is repeated; the median is shown [default: the suite's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    #[arg(help_heading = "Load")]
    passes: Option<u32>,
    /// Also compute the number of instances for this many requests per second; not with `agents`
    #[arg(long, value_name = "RATE", value_parser = parse_rate, help_heading = "Output")]
    size_for: Option<f64>,
    #[command(flatten)]
    output: SuiteOutputFlags,
}

/// The flags of `suite gateways`.
#[derive(Args, Debug)]
pub(crate) struct GatewaysFlags {
    /// The gateways and the loads, as YAML
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Measure only these gateways of the file
    #[arg(value_name = "GATEWAY")]
    only: Vec<String>,
    /// Run all gateways at the same time and send them the same requests at the same moments
    #[arg(long, help_heading = "Load")]
    together: bool,
    /// Make few and short loads without a search for the capacity, to see that everything works;
    /// too few for --against
    #[arg(long, help_heading = "Load", conflicts_with = "against")]
    short: bool,
    /// Seed of the order of the gateways in each round [default: the file's, or a random one]
    #[arg(long, value_name = "N", help_heading = "Load")]
    seed: Option<u64>,
    /// Replace the names of the gateways by letters, and leave out versions, commands and
    /// configurations; the folder private has the names, the configurations and the logs
    #[arg(long, help_heading = "Output")]
    anonymize: bool,
    #[command(flatten)]
    output: SuiteOutputFlags,
}

/// The flags of all suites for their results.
#[derive(Args, Debug)]
struct SuiteOutputFlags {
    /// Earlier suite.json to compare with: fail if throughput dropped by more than 20 % on the same
    /// hardware; with `gateways`, if a figure of a gateway is worse
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(help_heading = "Output")]
    against: Option<PathBuf>,
    /// Add a fact about the environment to the report: its region, instance, cost (repeatable)
    #[arg(long = "note", value_name = "KEY=VALUE", value_parser = parse_note)]
    #[arg(help_heading = "Output")]
    notes: Vec<(String, String)>,
    /// Parent folder of the results; each suite has its own, named by time and name
    #[arg(long, value_name = "DIR", default_value = "runs", value_hint = ValueHint::DirPath)]
    #[arg(help_heading = "Output")]
    out: PathBuf,
    /// Do not write report.html, the page with charts
    #[arg(long, help_heading = "Output")]
    no_html: bool,
    /// Do not exit with code 3 when a measurement is invalid (Plimsoll did not keep up); the report
    /// still says so. Measurements with too many errors are never accepted
    #[arg(long, help_heading = "Output")]
    allow_invalid: bool,
    /// Accept a target that lacks a part of the suite, like a route or a cache; the report still
    /// names it
    #[arg(long, help_heading = "Output")]
    allow_missing: bool,
    #[command(flatten)]
    push: PushFlags,
    #[command(flatten)]
    screen: ScreenFlags,
    #[command(flatten)]
    progress: ProgressFlags,
}

/// The flags of a child process of a suite.
#[derive(Args, Debug)]
pub(crate) struct ChildFlags {
    /// CPU core to run on
    #[arg(long)]
    core: Option<usize>,
    /// Program to run instead of this one
    #[arg(long)]
    program: Option<PathBuf>,
    /// Run a shell command, and end everything that it starts
    #[arg(long)]
    supervise: bool,
    /// Arguments of the program
    #[arg(last = true)]
    args: Vec<String>,
}

/// Runs a suite, prints the report and writes the files.
pub(crate) fn run(command: &SuiteCommand) -> Result<Exit> {
    let (suite, flags) = match command {
        SuiteCommand::Agents(flags) => (Suite::Agents, flags),
        SuiteCommand::Baseline(flags) => (Suite::Baseline, flags),
        SuiteCommand::Gateways(flags) => return run_gateways(flags),
        SuiteCommand::Layers(flags) => (Suite::Layers, flags),
        SuiteCommand::Policy(flags) => (Suite::Policy, flags),
        SuiteCommand::Quick(flags) => (Suite::Quick, flags),
        SuiteCommand::Tiers(flags) => (Suite::Tiers, flags),
        SuiteCommand::Child(flags) => {
            if flags.supervise {
                supervise(flags.core, &flags.args.join(" ")).map_err(suite_error)?;
                return Ok(Exit::Pass);
            }
            let program = flags.program.as_deref();
            return Err(become_child(flags.core, program, &flags.args).into());
        }
    };
    let variables = EnvDefaults::read(suite, |name| env::var(name).ok())?;
    carry_out(suite, &flags.output, |common| flags.options(&variables, common))
}

fn run_gateways(flags: &GatewaysFlags) -> Result<Exit> {
    let file = GatewaysFile::read(&flags.file, &flags.only).map_err(suite_error)?;
    let file = file.with_key(env::var("PLIMSOLL_KEY").ok());
    let mut file = if flags.short { file.shortened() } else { file };
    file.together |= flags.together;
    file.seed = flags.seed.or(file.seed);
    carry_out(Suite::Gateways, &flags.output, |common| {
        let mut command = shown_command(env::args());
        if flags.anonymize {
            let names = file.anonymize(&common.started);
            let private = common.folder.join("private");
            std::fs::create_dir_all(&private)?;
            std::fs::write(private.join("names.txt"), names)?;
            "plimsoll suite gateways".clone_into(&mut command);
        } else {
            let all = GatewaysFile::read(&flags.file, &[]).map_err(suite_error)?;
            let text = all.shown(&plimsoll_input::read_text(&flags.file)?);
            std::fs::write(common.folder.join("gateways.yaml"), text)?;
        }
        Ok(SuiteOptions { gateways: Some(file), short: flags.short, command, ..common })
    })
}

/// Runs a suite with the options that `complete` makes of the common ones.
fn carry_out(
    suite: Suite,
    flags: &SuiteOutputFlags,
    complete: impl FnOnce(SuiteOptions) -> Result<SuiteOptions>,
) -> Result<Exit> {
    let fd_limit = FdLimit::raise();
    let status = StatusOutput::open(flags.progress.ui());
    let started = utc_compact(unix_nanos());
    let output = RunDirOptions { out: flags.out.clone(), rows: None, page: !flags.no_html };
    let name = format!("suite-{}", suite.name());
    let mut run_dir = RunDir::create(&output, &started, &name)?;
    let options = complete(flags.options(&run_dir, fd_limit, started)?)?;
    let control = Control::new();
    let interrupt = control.clone();
    exit::on_run_signal(move |signal| {
        if signal == RunSignal::Interrupt {
            interrupt.interrupt();
            console::eprint_line(
                "ending the current measurement and writing the report; press Ctrl-C again to stop at once",
            );
        }
    })?;
    if cfg!(debug_assertions) {
        console::eprint_labelled(
            "warning",
            "DEBUG BUILD: Plimsoll is many times slower than a release build; use `cargo build --release`",
        );
    }
    let steps = Steps::begin(&status);
    let report = suite.run(&options, &control, &mut |message| steps.step(message));
    drop(steps);
    let report = report.map_err(suite_error)?;
    run_dir.keep();
    let accepted = Accepted { invalid: flags.allow_invalid, missing: flags.allow_missing };
    let exit = print_and_store(&report, &run_dir, accepted, flags.screen.show())?;
    session::push(flags.push.push_metrics.as_ref(), &name, &prometheus(&report), &status);
    Ok(exit)
}

/// Prints the report before it writes the files: a full disk must not lose it.
fn print_and_store(
    report: &Report,
    run_dir: &RunDir,
    accepted: Accepted,
    show: Show,
) -> Result<Exit> {
    let screen = report.screen(Rest::Folder(run_dir.path().display().to_string()));
    match show {
        Show::Full => console::print(&text_of(report))?,
        Show::Screen | Show::Json | Show::Nothing => console::print_screen(&screen)?,
    }
    let mut json = serde_json::to_vec_pretty(report)?;
    json.push(b'\n');
    run_dir.write(file::SUITE, &json)?;
    run_dir.write(file::TEXT, report.text(WIDTH).as_bytes())?;
    run_dir.write(file::PROMETHEUS, prometheus(report).as_bytes())?;
    run_dir.write_page(|| report::page_of_suite(report))?;
    if show == Show::Full {
        console::print_end(&screen)?;
    }
    Ok(match report.outcome(accepted) {
        SuiteOutcome::Pass | SuiteOutcome::Complete => Exit::Pass,
        SuiteOutcome::Fail => Exit::Fail,
        SuiteOutcome::Inconclusive => Exit::Inconclusive,
        SuiteOutcome::Interrupted => Exit::Interrupted,
    })
}

/// The report for stdout.
pub(super) fn text_of(report: &Report) -> String {
    report.text(console::full_style(WIDTH).width)
}

/// Width of the report in characters: its tables are wider than the tables of a single run.
const WIDTH: usize = 140;

impl SuiteOutputFlags {
    /// The options that every suite has.
    fn options(
        &self,
        run_dir: &RunDir,
        fd_limit: Option<FdLimit>,
        started: String,
    ) -> Result<SuiteOptions> {
        Ok(SuiteOptions {
            exe: env::current_exe()?,
            notes: self.notes.clone(),
            machine: environment::place_lines(),
            folder: std::path::absolute(run_dir.path())?,
            environment: environment::read(fd_limit),
            calibration: last_calibration(),
            against: self.against.clone(),
            started,
            ..SuiteOptions::default()
        })
    }
}

impl Flags {
    fn options(&self, variables: &EnvDefaults, common: SuiteOptions) -> Result<SuiteOptions> {
        Ok(SuiteOptions {
            targets: self
                .targets(variables)?
                .iter()
                .map(|target| self.target(target))
                .collect::<Result<_>>()?,
            direct: self.direct.as_ref().map(|direct| self.target(direct)).transpose()?,
            short: self.short,
            duration: self.duration.or(variables.duration),
            warmup: self.warmup,
            just_started: self.just_started,
            clients: self.concurrency.or(variables.clients),
            passes: self.passes,
            // The user's gateway has a port of its own.
            port: self.port.or_else(|| variables.port.filter(|_| self.targets.is_empty())),
            threads: self.threads,
            only: self.only.clone(),
            client_id: variables.client_id.clone(),
            knee_budget: self.knee_budget,
            size_for: self.size_for,
            command: variables.before(&shown_command(env::args())),
            ..common
        })
    }

    /// The targets of the flags, or the target of the variable.
    fn targets(&self, variables: &EnvDefaults) -> Result<Vec<TargetFlag>> {
        let from_variable = variables.endpoint.iter().filter(|_| self.targets.is_empty());
        let parsed = from_variable.map(|url| {
            parse_named_or_not(url).map_err(|error| {
                UsageError(format!("the variable AXONFLOW_ENDPOINT is `{url}`: {error}"))
            })
        });
        let own = parsed.collect::<Result<Vec<_>, _>>()?;
        let targets: Vec<_> = self.targets.iter().cloned().chain(own).collect();
        let about_it = self.about_the_target().filter(|_| targets.is_empty());
        about_it.map_or(Ok(targets), |flag| {
            let why = format!("{flag} requires --target URL");
            Err(UsageError(why).into())
        })
    }

    /// The first flag that applies to the user's gateway only, if any.
    fn about_the_target(&self) -> Option<&'static str> {
        [
            ("--direct", self.direct.is_some()),
            ("--key", self.key.is_some()),
            ("--header", !self.headers.is_empty()),
            ("--model", self.model.is_some()),
            ("--insecure", self.insecure),
            ("--http2", self.http2),
            ("--allow-missing", self.output.allow_missing),
        ]
        .into_iter()
        .find_map(|(flag, is_given)| is_given.then_some(flag))
    }

    /// A target, including the flags that apply to all targets.
    fn target(&self, flag: &TargetFlag) -> Result<SuiteTarget> {
        let (name, variable) = (&flag.name, |name: &str| env::var(name).ok());
        if flag.option("protocol").is_some() {
            let why = "suites choose the protocol of their requests: leave `protocol=` out";
            return Err(UsageError(format!("--target {name}: {why}")).into());
        }
        let pid_of = |option: &str| {
            let watched = flag.option(option).map(|place| {
                let place = place.strip_prefix("pid:").unwrap_or(place);
                watched_process(&format!("{option}={place}"))
                    .map_err(|error| UsageError(format!("{option} of target {name}: {error}")))
            });
            watched.transpose().map(|process| process.map(|process| process.pid))
        };
        Ok(SuiteTarget {
            name: name.clone(),
            base: flag.url.trim_end_matches('/').to_owned(),
            key: flag
                .key(variable)?
                .or_else(|| self.key.clone().or_else(|| env::var("PLIMSOLL_KEY").ok())),
            headers: self.headers.clone(),
            model: flag.option("model").or(self.model.as_deref()).unwrap_or_default().to_owned(),
            insecure: self.insecure,
            http2: self.http2,
            gateway_pid: pid_of("watch")?.or_else(|| listens_at(&flag.url.parse().ok()?)),
            store_pid: pid_of("store")?,
            ..SuiteTarget::default()
        })
    }
}

/// The environment variables that are defaults of flags of `suite baseline`.
#[derive(Debug, Default, PartialEq)]
struct EnvDefaults {
    duration: Option<Nanos>,
    clients: Option<u32>,
    port: Option<u16>,
    client_id: Option<String>,
    endpoint: Option<String>,
    /// Those that are set, as they are written before a command.
    set: Vec<String>,
}

impl EnvDefaults {
    /// Those of `suite baseline` and of `suite policy`, as the published scripts have them.
    fn read(suite: Suite, variable: impl Fn(&str) -> Option<String>) -> Result<Self, UsageError> {
        let mut own = Self::default();
        match suite {
            Suite::Baseline => {
                let wanted = "seconds from 0.1 to 86400, like 10";
                own.duration = own.value("AZ_LOAD_DURATION_SECS", &variable, wanted, |text| {
                    let seconds: f64 = text.parse().ok()?;
                    (0.1..=86_400.0).contains(&seconds).then(|| Nanos::from_secs_f64(seconds))
                })?;
                let wanted = format!("a whole number of clients from 1 to {MOST_CLIENTS}");
                own.clients = own.value("AZ_LOAD_CONCURRENCY", &variable, &wanted, |text| {
                    text.parse().ok().filter(|clients| (1..=MOST_CLIENTS).contains(clients))
                })?;
                let wanted = "a port from 1 to 65535, 0 for a free one";
                own.port =
                    own.value("AZ_LOAD_PORT", &variable, wanted, |text| text.parse().ok())?;
            }
            Suite::Policy => {
                let wanted = "a URL like http://localhost:8080";
                own.endpoint = own.value("AXONFLOW_ENDPOINT", &variable, wanted, |text| {
                    text.contains("://").then(|| text.to_owned())
                })?;
                let wanted = "letters, digits and `-_.@:`";
                own.client_id = own.value("AXONFLOW_CLIENT_ID", &variable, wanted, |text| {
                    let mut chars = text.chars();
                    let valid = chars.all(|c| c.is_ascii_alphanumeric() || "-_.@:".contains(c));
                    valid.then(|| text.to_owned())
                })?;
            }
            _ => {}
        }
        Ok(own)
    }

    /// The value of a variable, if it is set.
    fn value<T>(
        &mut self,
        name: &str,
        variable: impl Fn(&str) -> Option<String>,
        wanted: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, UsageError> {
        let text = variable(name).unwrap_or_default();
        let text = text.trim();
        if text.is_empty() {
            return Ok(None);
        }
        self.set.push(format!("{name}={}", redacted_path(&redacted_urls(text))));
        let wrong = format!("the variable {name} is `{text}`: write {wanted}, or unset it");
        parse(text).map(Some).ok_or(UsageError(wrong))
    }

    /// The command behind the variables that it was given.
    fn before(&self, command: &str) -> String {
        let words: Vec<_> = self.set.iter().map(String::as_str).chain([command]).collect();
        words.join(" ")
    }
}

/// The most clients of a measurement: more connections than two addresses have ports for.
const MOST_CLIENTS: u32 = 100_000;

/// Parses a user's note on the environment.
fn parse_note(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("has no `=`; write it like region=eu-west-1")?;
    let (name, value) = (name.trim(), value.trim());
    let named = name.chars().all(|c| c.is_alphanumeric() || " -_.".contains(c));
    let (letters, characters) = (name.chars().count(), value.chars().count());
    if !((1..=30).contains(&letters) && named && (1..=200).contains(&characters)) {
        return Err("needs a name of at most 30 letters, digits, `-`, `_` and `.`, and a value of at most 200 characters".to_owned());
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// Parses a duration that is long enough for a measurement.
fn parse_duration(text: &str) -> Result<Nanos, String> {
    let duration = parse_time(text)?;
    if duration < Nanos::from_millis(100) {
        return Err("is too short; write at least 100ms".to_owned());
    }
    Ok(duration)
}

/// Characters that require quotes around a word of a command line.
const QUOTED: &[char] = &[' ', '\t', '?', '&', ';', '<', '>'];

/// Flags whose values may be credentials.
const SECRET_FLAGS: [&str; 2] = ["--key", "--header"];

/// The command line as reports show it, without the values of keys, headers and queries.
fn shown_command(args: impl Iterator<Item = String>) -> String {
    let mut words = vec!["plimsoll".to_owned()];
    let mut is_secret = false;
    for arg in args.skip(1) {
        if is_secret {
            words.push("...".to_owned());
            is_secret = false;
            continue;
        }
        is_secret = ends_with_header(&arg) || SECRET_FLAGS.contains(&arg.as_str());
        words.push(without_secrets(&arg));
    }
    words.join(" ")
}

/// Whether the next word is a header: `-H`, also behind letters of flags without a value.
fn ends_with_header(arg: &str) -> bool {
    let letters = arg.strip_prefix('-').and_then(|letters| letters.strip_suffix('H'));
    letters.is_some_and(|before| before.chars().all(char::is_alphabetic) && !before.contains('H'))
}

/// A word of the command line, without a credential that is part of it: `--key=KEY`,
/// `-HNAME: VALUE` behind any letters of flags without a value, `https://USER:KEY@HOST/?key=KEY`.
fn without_secrets(arg: &str) -> String {
    let flag = arg.split_once('=').map(|(flag, _)| flag);
    if let Some(flag) = flag.filter(|flag| SECRET_FLAGS.contains(flag)) {
        return format!("{flag}=...");
    }
    let letters = arg.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
    if let Some((before, value)) = letters.and_then(|letters| letters.split_once('H'))
        && before.chars().all(char::is_alphabetic)
        && !value.is_empty()
    {
        return format!("-{before}H...");
    }
    match redacted_path(&redacted_urls(arg)) {
        // A shell reads `?` and `&`.
        shown if shown.contains(QUOTED) => format!("'{shown}'"),
        shown => shown,
    }
}

/// An invalid profile or baseline is wrong usage; other errors are not.
fn suite_error(error: SuiteError) -> anyhow::Error {
    match error {
        SuiteError::Profile(_) | SuiteError::Usage(_) => UsageError(error.to_string()).into(),
        SuiteError::Target(_) => TargetError(error.to_string()).into(),
        error => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_defaults_of_flags_and_invalid_ones_are_refused() {
        let of = |pairs: &'static [(&str, &str)]| {
            EnvDefaults::read(Suite::Baseline, move |name| {
                let found = pairs.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(of(&[]).unwrap(), EnvDefaults::default());
        let all = &[
            ("AZ_LOAD_DURATION_SECS", "30"),
            ("AZ_LOAD_CONCURRENCY", "128"),
            ("AZ_LOAD_PORT", "18800"),
        ];
        let expected = EnvDefaults {
            duration: Some(Nanos::from_secs(30)),
            clients: Some(128),
            port: Some(18_800),
            client_id: None,
            endpoint: None,
            set: all.iter().map(|(name, value)| format!("{name}={value}")).collect(),
        };
        let found = of(all).unwrap();
        assert_eq!(found, expected);
        let command = "AZ_LOAD_DURATION_SECS=30 AZ_LOAD_CONCURRENCY=128 AZ_LOAD_PORT=18800 x";
        assert_eq!(found.before("x"), command);
        assert_eq!(of(&[("AZ_LOAD_PORT", " ")]).unwrap(), EnvDefaults::default());
        for (wrong, fix) in [
            (&[("AZ_LOAD_DURATION_SECS", "0")], "is `0`: write seconds from 0.1 to 86400"),
            (&[("AZ_LOAD_DURATION_SECS", "NaN")], "seconds from 0.1"),
            (&[("AZ_LOAD_DURATION_SECS", "1e9")], "to 86400"),
            (&[("AZ_LOAD_CONCURRENCY", "many")], "clients from 1 to 100000"),
            (&[("AZ_LOAD_CONCURRENCY", "4294967295")], "clients from 1 to 100000"),
            (&[("AZ_LOAD_CONCURRENCY", "-1")], "clients from 1"),
            (&[("AZ_LOAD_PORT", "99999")], "is `99999`: write a port from 1 to 65535"),
            (&[("AZ_LOAD_PORT", "http")], "a port from 1"),
        ] {
            let error = of(wrong).unwrap_err();
            assert!(error.to_string().contains(fix), "{error}");
        }
    }

    #[test]
    fn the_variables_of_the_policy_script_are_checked() {
        let of = |name: &'static str, value: &'static str| {
            EnvDefaults::read(Suite::Policy, move |asked| (asked == name).then(|| value.to_owned()))
        };
        let endpoint = of("AXONFLOW_ENDPOINT", "http://localhost:8080").unwrap();
        assert_eq!(endpoint.endpoint.as_deref(), Some("http://localhost:8080"));
        assert_eq!(endpoint.before("x"), "AXONFLOW_ENDPOINT=http://localhost:8080 x");
        let client = of("AXONFLOW_CLIENT_ID", "community").unwrap();
        assert_eq!(client.client_id.as_deref(), Some("community"));
        for (name, value) in
            [("AXONFLOW_ENDPOINT", "localhost:8080"), ("AXONFLOW_CLIENT_ID", "a\"b")]
        {
            let error = of(name, value).unwrap_err();
            assert!(error.to_string().contains(name), "{error}");
        }
    }

    #[test]
    fn notes_have_a_name_and_a_value() {
        let expected = ("cost".to_owned(), "$25 = 34".to_owned());
        assert_eq!(parse_note(" cost = $25 = 34").unwrap(), expected);
        for wrong in ["x", "=x", "x=", "a\tb=1", &format!("{}=1", "n".repeat(31))] {
            assert!(parse_note(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_bare_number_is_in_seconds() {
        for (text, millis) in
            [("30", Some(30_000)), ("1.5s", Some(1_500)), ("0", None), ("x", None)]
        {
            assert_eq!(parse_duration(text).ok(), millis.map(Nanos::from_millis), "{text}");
        }
    }

    #[test]
    fn the_shown_command_contains_no_secrets() {
        for (line, shown) in [
            ("quick|--key|sk-1|-H|a: b|--out|a b", "quick --key ... -H ... --out 'a b'"),
            ("quick|--key=sk-2|--header=a: sk-3", "quick --key=... --header=..."),
            ("quick|-Hauthorization: Bearer sk-4", "quick -H..."),
            ("quick|-H=authorization: Bearer sk-5", "quick -H..."),
            ("quick|-qHauthorization:sk-6|--short", "quick -qH... --short"),
            ("quick|-H|-H|-c|5", "quick -H ... -c 5"),
            ("quick|-qH|authorization: Bearer sk-7|--short", "quick -qH ... --short"),
            (
                "quick|--push-metrics=http://me:sk-8@h|--target|a=https://sk-9@h",
                "quick '--push-metrics=http://<redacted>@h' --target 'a=https://<redacted>@h'",
            ),
            (
                "quick|--target|http://h/v1?api-version=1&key=sk-3",
                "quick --target 'http://h/v1?api-version=1&key=<redacted>'",
            ),
        ] {
            let args = ["x/plimsoll", "suite"].into_iter().chain(line.split('|'));
            let text = shown_command(args.map(str::to_owned));
            assert_eq!(text, format!("plimsoll suite {shown}"), "{line}");
        }
    }
}
