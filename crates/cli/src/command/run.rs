//! `plimsoll run`: runs a profile against a target.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::Path;

use anyhow::Result;
use clap::{Args, ValueHint};
use clap_complete::engine::ArgValueCompleter;
use plimsoll_engine::{ExchangedOnce, discover, exchange_once};
use plimsoll_import::{ImportError, Options, read};
use plimsoll_measure::Nanos;
use plimsoll_metrics::{DistributionSummary, Group, Metric, RunEnd, RunSummary};
use plimsoll_plan::{Plan, REDACTED, Target};
use plimsoll_profile::{EnvVars, Overrides, Profile, Purpose, load, show};
use plimsoll_report::screen::{Rows, Screen, Tone};
use plimsoll_report::table::Table;
use plimsoll_report::{format, run_findings, run_requests};
use plimsoll_runner::Secrets;
use plimsoll_runner::folder::file;
use plimsoll_schedule::{Load, StageSpec};
use plimsoll_workload::{Trace, TraceSpec};
use serde_json::{Map, Value, json};

use super::completions::profiles;
use crate::console::{self, Show};
use crate::exit::{Exit, UsageError};
use crate::flags::{
    LoadFlags, OutputFlags, ProfileFlags, SessionFlags, TargetFlags, ThresholdFlags, TrafficFlags,
    command_line_profile, literal,
};
use crate::processes::run_plan;
use crate::progress::Ui;
use crate::session::{FinishedRun, RunOptions, traffic_screen};

const AFTER: &str = include_str!("run.txt").trim_ascii_end();

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct Flags {
    /// Profile file, name of a built-in profile (`plimsoll profile list`), folder of a run, or
    /// recorded traffic in a format that `plimsoll import` reads
    #[arg(value_hint = ValueHint::FilePath, add = ArgValueCompleter::new(profiles))]
    profile: String,
    #[command(flatten)]
    target: TargetFlags,
    #[command(flatten)]
    load: LoadFlags,
    #[command(flatten)]
    settings: ProfileFlags,
    #[command(flatten)]
    thresholds: ThresholdFlags,
    #[command(flatten)]
    traffic: TrafficFlags,
    /// First look at a target: about ten requests for each scenario, one after another, instead of
    /// the profile's load and its thresholds. Reports whether the requests of each scenario were
    /// ok; exit code 1 if not
    #[arg(long, conflicts_with_all = ["stages", "max-requests"])]
    smoke: bool,
    /// Send one request of each scenario and print it with its answer, instead of the load
    #[arg(long, conflicts_with_all = ["stages", "max-requests", "smoke"])]
    once: bool,
    /// With --once: print all headers, and bodies to their end
    #[arg(long, short = 'v', requires = "once")]
    verbose: bool,
    /// Skip the confirmation before loading another host
    #[arg(long, short = 'y')]
    yes: bool,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    session: SessionFlags,
}

/// Runs the profile.
pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let profile = if let Some(profile) = profile(flags)? {
        profile
    } else {
        let profile = Profile::open(&profile_of(&flags.profile)?)?;
        flags.traffic.reject_without_file(&format!("{} is a profile", flags.profile))?;
        profile
    };
    let part = flags.session.start.part(flags.settings.get("shard"))?;
    let overrides = flags.thresholds.add_to(flags.target.add_to(flags.settings.overrides()));
    let mut overrides = flags.session.export.labels.add_to(part.of(overrides));
    let variables = EnvVars::from_process();
    let load_with = |overrides: &Overrides| load(&profile, &variables, overrides, Purpose::Run);
    let given = flags.settings.get("stages");
    overrides = flags.load.add_to(overrides, given, |usual| Ok(load_with(usual)?.stages))?;
    let mut plan = load_with(&overrides)?;
    if flags.smoke {
        overrides = overrides.with("smoke", "stages", SMOKE_STAGES);
        overrides = overrides.with("smoke", "max_requests", smoke_requests(&plan));
        plan = load_with(&overrides)?;
        prepare_smoke(&mut plan);
    }
    if Secrets::of(&plan).is_missing_one() {
        let why = format!(
            "a credential of the profile is `{REDACTED}`, because stored profiles contain no credentials; pass it with --key KEY or --header NAME=VALUE"
        );
        return Err(UsageError(why).into());
    }
    if flags.once {
        return run_once(plan, flags.verbose);
    }
    if let Some(order) = part.order {
        let profile = Some(show(&profile, &variables, &overrides)?);
        return order.carry_out(plan, RunOptions { profile, ..flags.session.run.options(None) });
    }
    if let Some(said) = announcement(&plan) {
        if flags.session.progress.ui() != Ui::Quiet {
            console::eprint_line(&said);
        }
        if !flags.yes && !flags.smoke && consent()? == Consent::Refused {
            return Err(UsageError("nothing was sent: the answer was not `y`".to_owned()).into());
        }
    }
    let again = show(&profile, &variables, &overrides)?;
    let mut session = flags.session.open();
    let mut options = flags.session.run.options(Some(flags.output.options()));
    (options.profile, options.launch) = (Some(again), part.launch);
    if flags.smoke && options.show == Show::Screen {
        options.show = Show::Nothing;
    }
    let finished = run_plan(&mut session, plan, &options)?;
    if flags.smoke && options.show == Show::Nothing {
        console::print_screen(&smoke_screen(&finished))?;
    }
    Ok(if flags.smoke { smoke_exit(&finished.summary) } else { finished.exit })
}

/// The profile that is meant: of the folder of a run, or of its plan.json, the profile in it.
fn profile_of(named: &str) -> Result<String> {
    let path = Path::new(named);
    let is_plan = path.file_name().is_some_and(|name| name == file::PLAN);
    let folder = match path.parent() {
        _ if path.is_dir() => path,
        Some(parent) if is_plan && path.is_file() => parent,
        _ => return Ok(named.to_owned()),
    };
    let stored = folder.join(file::PROFILE);
    if stored.is_file() {
        return Ok(stored.display().to_string());
    }
    let why = format!(
        "{named} is neither a profile nor the folder of a finished run (it has no {}); pass the profile of that run",
        file::PROFILE
    );
    Err(UsageError(why).into())
}

// `plimsoll run --smoke`: checks that each scenario is answered. The few requests measure nothing
// else.

/// One user, who gets time enough for slow answers; `max_requests` ends it.
const SMOKE_STAGES: &str = "1:10m";

/// Requests for each scenario, on average.
const SMOKE_REQUESTS: usize = 10;

/// The most scenarios that are shown.
const SMOKE_ROWS: usize = 20;

/// The number of requests that a plan's smoke sends.
fn smoke_requests(plan: &Plan) -> String {
    (SMOKE_REQUESTS * plan.scenarios.len()).to_string()
}

/// Gives every scenario its share, and leaves out the bounds, which so few requests cannot show.
fn prepare_smoke(plan: &mut Plan) {
    for scenario in plan.scenarios.iter_mut().filter(|scenario| scenario.weight > 0.0) {
        scenario.weight = 1.0;
    }
    plan.thresholds.clear();
}

/// Answers by scenario.
fn smoke_screen(run: &FinishedRun) -> Screen {
    let summary = &mut run.summary.clone();
    // A smoke test shows no percentiles.
    summary.ignore(&[601]);
    let mut screen = Screen::new(run.rest.clone());
    let metadata = &summary.metadata;
    let urls: Vec<_> = metadata.targets.iter().map(|target| target.url.as_str()).collect();
    screen.title(&format!("smoke of {}: {}", metadata.run.name, urls.join(", ")));
    let mut table = Table::new(["", "ok", "mean time", "mean TTFT"]);
    for group in &summary.results.by_scenario {
        table.row(smoke_row(group));
    }
    screen.rows("", Rows { table, unit: "scenarios", most: SMOKE_ROWS, ..Rows::default() });
    screen.stands_out(run_findings(summary));
    screen.fact(&run_requests(summary));
    let (tone, text) = smoke_verdict(summary);
    screen.verdict(tone, &text);
    screen
}

/// The outcome: 1 where a scenario was not answered.
fn smoke_exit(summary: &RunSummary) -> Exit {
    match (summary.metadata.run.ended, smoke_verdict(summary).0) {
        (RunEnd::Interrupted, _) => Exit::Interrupted,
        (_, Tone::Good) => Exit::Pass,
        (_, Tone::Bad) => Exit::Fail,
        (_, Tone::Unsure) => Exit::Inconclusive,
    }
}

fn smoke_row(group: &Group) -> [String; 4] {
    let name = group.scenario.clone().unwrap_or_default();
    let ok = format!("{} of {}", group.counters.ok(), group.counters.scheduled);
    let [response, ttft] = [Metric::ResponseTime, Metric::Ttft].map(|metric: Metric| {
        format::limited_time(group.distribution(metric).map(DistributionSummary::mean_figure))
    });
    [name, ok, response, ttft]
}

fn smoke_verdict(summary: &RunSummary) -> (Tone, String) {
    if summary.metadata.run.ended == RunEnd::Interrupted {
        return (Tone::Unsure, "INTERRUPTED: not all requests were sent".to_owned());
    }
    let groups = &summary.results.by_scenario;
    let broken = groups.iter().filter(|group| group.counters.unexpected > 0);
    let broken: Vec<_> = broken
        .map(|group| {
            let name = group.scenario.as_deref().unwrap_or_default();
            format!("{name} {} of {}", group.counters.ok(), group.counters.scheduled)
        })
        .collect();
    if !broken.is_empty() {
        return (Tone::Bad, format!("FAIL: not every request was ok: {}", broken.join(", ")));
    }
    let tried = groups.iter().filter(|group| group.counters.scheduled > 0);
    let tried: Vec<_> = tried.filter_map(|group| group.scenario.as_ref()).collect();
    let scenarios = summary.metadata.scenarios.iter();
    let untried: Vec<_> = scenarios.filter(|name| !tried.contains(name)).cloned().collect();
    if !untried.is_empty() {
        let names = untried.join(", ");
        return (Tone::Unsure, format!("INCONCLUSIVE: no request was sent for {names}"));
    }
    let all = format::count(summary.results.total.counters.scheduled);
    (Tone::Good, format!("PASS: {all} of {all} requests ok"))
}

// The announcement of the load on a remote target, and the question whether to continue. A first
// run against one's own gateway should not surprise anybody.

/// The user's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Consent {
    /// Send it.
    Given,
    /// Do not.
    Refused,
}

/// The load of the plan, if any target is remote.
fn announcement(plan: &Plan) -> Option<String> {
    let mut beyond = plan.targets.iter().filter(|target| !target.url.is_loopback());
    beyond.next().map(|target| sentence(plan, target))
}

/// Asks on a terminal. Scripts have no terminal and continue without a question.
fn consent() -> io::Result<Consent> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(Consent::Given);
    }
    ask("Send it? [y/N] (--yes: no question; --smoke: ten requests of each scenario) ")
}

fn ask(question: &str) -> io::Result<Consent> {
    let mut stderr = io::stderr();
    stderr.write_all(question.as_bytes())?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    let given = matches!(answer.trim().to_lowercase().as_str(), "y" | "yes");
    Ok(if given { Consent::Given } else { Consent::Refused })
}

/// Requests, tokens and time, with "at most" and "about" where the numbers are limits or estimates.
fn sentence(plan: &Plan, target: &Target) -> String {
    let (seconds, requests) = (seconds(plan), requests(plan));
    let most_tokens = plan.scenarios.iter().map(|scenario| scenario.max_tokens).max().flatten();
    let tokens = most_tokens.map_or_else(
        || "response lengths chosen by the model".to_owned(),
        |most| format!("at most {most} tokens per response"),
    );
    format!("to {}: {requests}, {tokens}, {seconds:.0} s of load", target.url)
}

/// How many requests the stages ask for, in words. A closed stage sends as many as the target
/// answers.
fn requests(plan: &Plan) -> String {
    let open: f64 = plan.stages.0.iter().map(arrivals_of).sum();
    let conversations = open * turns_per_conversation(plan);
    let users = most_users(plan);
    match (plan.limits.max_requests, users) {
        (Some(most), _) => format!("at most {most} requests"),
        (None, None) => format!("about {conversations:.0} requests"),
        (None, Some(users)) if open > 0.0 => {
            format!("about {conversations:.0} requests, plus the requests of up to {users} users")
        }
        (None, Some(1)) => "one user, sending as fast as responses arrive".to_owned(),
        (None, Some(users)) => {
            format!("up to {users} users, each sending as fast as its responses arrive")
        }
    }
}

/// The length of all stages, in seconds.
fn seconds(plan: &Plan) -> f64 {
    plan.stages.0.iter().map(seconds_of).sum()
}

/// The most virtual users; `None` without a closed stage.
fn most_users(plan: &Plan) -> Option<u32> {
    plan.stages.0.iter().filter_map(users_of).max()
}

fn turns_per_conversation(plan: &Plan) -> f64 {
    let weights: f64 = plan.scenarios.iter().map(|scenario| scenario.weight).sum();
    let turns: f64 =
        plan.scenarios.iter().map(|scenario| scenario.weight * f64::from(scenario.turns)).sum();
    turns / weights
}

fn seconds_of(stage: &StageSpec) -> f64 {
    stage.duration.map_or(0.0, Nanos::as_secs_f64)
}

/// The mean rate times the length.
fn arrivals_of(stage: &StageSpec) -> f64 {
    match stage.load {
        Load::Open { from, to } => f64::midpoint(from, to) * seconds_of(stage),
        Load::Closed { .. } | Load::Trace => 0.0,
    }
}

fn users_of(stage: &StageSpec) -> Option<u32> {
    match stage.load {
        Load::Closed { from, to } => Some(from.max(to)),
        Load::Open { .. } | Load::Trace => None,
    }
}

// `plimsoll run --once`: one request of each scenario and its answer, as curl would show them.

/// Maximum number of bytes of a body shown without --verbose.
const SHORT: usize = 400;

/// Sends the requests and prints them.
fn run_once(plan: Plan, verbose: bool) -> Result<Exit> {
    let secrets = Secrets::of(&plan);
    let exchanged = exchange_once(discover(plan)?)?;
    let mut text = String::new();
    for one in &exchanged {
        text.push_str(&secrets.redact(&shown(one, verbose)));
    }
    console::print(&text)?;
    let answered = exchanged.iter().all(|one| one.failure.is_none() && one.status < 400);
    Ok(if answered { Exit::Pass } else { Exit::Fail })
}

fn shown(one: &ExchangedOnce, verbose: bool) -> String {
    let ExchangedOnce { scenario, target, status, .. } = one;
    let mut text = format!("# {scenario}, to {target}\n");
    let head = printable(&one.request_head);
    let lines = head.trim_end().lines();
    let most = if verbose { usize::MAX } else { 1 };
    for line in lines.take(most) {
        text.push_str(&line_of('>', line));
    }
    body(&mut text, &one.request_body, verbose);
    if *status > 0 {
        text.push_str(&line_of('<', &format!("HTTP {status}")));
        for (name, value) in one.headers.iter().take(most.saturating_sub(1)) {
            text.push_str(&line_of('<', &format!("{name}: {value}")));
        }
        body(&mut text, &one.body, verbose);
    }
    let times: Vec<_> =
        [("connected", one.connected), ("first byte", one.first_byte), ("end", one.finished)]
            .into_iter()
            .filter_map(|(name, time): (_, Option<Nanos>)| Some(format!("{name} {}", time?)))
            .collect();
    if !times.is_empty() {
        let _ = writeln!(text, "* {}", times.join(", "));
    }
    if let Some(failure) = &one.failure {
        let _ = writeln!(text, "* failed: {failure}");
    }
    text.push('\n');
    text
}

/// One line with its mark; the credentials of a request are not shown.
fn line_of(mark: char, line: &str) -> String {
    let name = line.split(':').next().unwrap_or_default();
    let hidden = mark == '>'
        && line.contains(':')
        && !line.contains(" HTTP/1.1")
        && plimsoll_plan::names_credential(name);
    if hidden { format!("{mark} {name}: {REDACTED}\n") } else { format!("{mark} {line}\n") }
}

fn body(text: &mut String, bytes: &[u8], verbose: bool) {
    if bytes.is_empty() {
        return;
    }
    let most = if verbose { bytes.len() } else { bytes.len().min(SHORT) };
    text.push_str(printable(&bytes[..most]).trim_end());
    if most < bytes.len() {
        let _ = write!(text, " ... ({} bytes; --verbose shows all)", bytes.len());
    }
    text.push('\n');
}

/// Removes control characters that a terminal would interpret.
fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

// The profile that plays a file of recorded traffic.

/// The profile for a file of recorded traffic; `None` for a profile or the folder of a run.
fn profile(flags: &Flags) -> Result<Option<Profile>> {
    let named = Path::new(&flags.profile);
    let extension = named.extension().map(|extension| extension.to_string_lossy());
    let is_profile = extension.is_none_or(|extension| match &*extension {
        "yaml" | "yml" => true,
        "json" => named.ends_with(file::PLAN) || is_json_profile(named),
        _ => false,
    });
    // A file of requests ends at its first one here: it is converted once, below.
    if is_small_json(named)
        && let Ok(input) = plimsoll_input::open(named)
        && let Ok(summary) = read(named, input, &flags.traffic.read.options(), &mut |_| {
            Err(ImportError::Input(String::new()))
        })
        && let Some(stages) = &summary.stages
    {
        if flags.session.progress.ui() != Ui::Quiet {
            console::eprint_line(traffic_screen(&summary).trim_end());
        }
        let keys = json!({ "name": "k6", "protocol": "http", "http": {}, "stages": stages });
        return Ok(Some(command_line_profile(keys.as_object().cloned().unwrap_or_default())));
    }
    if is_profile && !flags.traffic.read.names_format() || !named.is_file() {
        return Ok(None);
    }
    let trace = read_traffic(named, &flags.traffic)?;
    let mut recording = flags.traffic.keys();
    let path = std::path::absolute(named).unwrap_or_else(|_| named.to_owned());
    recording.insert("file".to_owned(), literal(&path.to_string_lossy()));
    let stem = named.file_name().unwrap_or_default().to_string_lossy();
    let stem = stem.split('.').next().filter(|stem| !stem.is_empty()).unwrap_or("traffic");
    let protocol = protocol(&trace).unwrap_or("openai-chat");
    let mut keys = json!({
        "name": stem.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-"),
        "protocol": protocol,
        // Recorded bodies specify it.
        "stream": trace.dialects().is_empty(),
        "cache_mode": flags.traffic.cache_mode(),
    });
    // A smoke run has a user, too.
    if flags.load.concurrency.is_empty() && flags.load.rate.is_empty() && !flags.smoke {
        keys["trace"] = recording.into();
        keys["stages"] = "trace".into();
        keys["content"] = json!({ "mode": "sized", "approx_input_tokens": 1 });
    } else {
        recording.insert("mode".to_owned(), "file".into());
        recording.insert("order".to_owned(), "file".into());
        keys["content"] = recording.into();
        keys["stages"] = "1:1h".into();
    }
    if protocol == "http" {
        keys["http"] = json!({});
    }
    Ok(Some(command_line_profile(keys.as_object().cloned().unwrap_or_default())))
}

fn is_small_json(file: &Path) -> bool {
    let is_json = file.extension().is_some_and(|extension| extension == "json");
    is_json && fs::metadata(file).is_ok_and(|file| file.len() < 1 << 20)
}

/// Whether a small JSON file has keys of a profile.
fn is_json_profile(file: &Path) -> bool {
    const KEYS: [&str; 4] = ["stages", "target", "targets", "scenarios"];
    let text = if is_small_json(file) { fs::read(file).unwrap_or_default() } else { Vec::new() };
    let keys = serde_json::from_slice::<Map<String, Value>>(&text).unwrap_or_default();
    KEYS.iter().any(|key| keys.contains_key(*key))
}

/// Reads a file of recorded traffic.
pub(in crate::command) fn read_traffic(
    file: &Path,
    flags: &TrafficFlags,
) -> Result<Trace, UsageError> {
    let Options { format, skip_broken, .. } = flags.read.options();
    let file = file.to_owned();
    let spec = TraceSpec { file, format, skip_broken, ..TraceSpec::default() };
    Trace::load(&spec, Path::new("")).map_err(|error| UsageError(error.to_string()))
}

/// The protocol of the first recorded body.
pub(in crate::command) fn protocol(trace: &Trace) -> Option<&'static str> {
    trace.dialects().first().map(|dialect| dialect.name())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_folder_or_its_plan_means_the_profile_in_it() {
        let run = tempfile::tempdir().unwrap();
        let (folder, plan) = (run.path().to_str().unwrap(), run.path().join("plan.json"));
        fs::write(&plan, "{}").unwrap();
        let plan = plan.to_str().unwrap();
        for named in [folder, plan] {
            let error = profile_of(named).unwrap_err();
            assert!(error.is::<UsageError>() && error.to_string().contains("no profile.yaml"));
        }
        let profile = run.path().join("profile.yaml");
        fs::write(&profile, "").unwrap();
        let profile = profile.to_str().unwrap();
        assert_eq!(profile_of(folder).unwrap(), profile);
        assert_eq!(profile_of(plan).unwrap(), profile);
        // Names of built-in profiles and of other files stay unchanged.
        assert_eq!(profile_of("minimal").unwrap(), "minimal");
        assert_eq!(profile_of("absent/plan.json").unwrap(), "absent/plan.json");
    }
}

#[cfg(test)]
mod announcement_tests {
    use plimsoll_plan::PlanBuilder;
    use plimsoll_workload::{Content, ScenarioSpec};

    use super::*;

    fn plan(target: &str, stages: &str) -> Plan {
        let content = Content::Pool { prompts: vec!["hi".to_owned()] };
        let chat =
            ScenarioSpec { turns: 3, max_tokens: Some(200), ..ScenarioSpec::new("chat", content) };
        PlanBuilder::new(target, stages).model("m").scenario(chat).build().unwrap()
    }

    #[test]
    fn it_says_requests_tokens_and_time() {
        // 10 a second for 5 s, and 5 on average for 20 s: 150 conversations of 3 turns.
        let open = plan("http://192.0.2.1:80", "@10:5s,@0..10:20s");
        let said = sentence(&open, &open.targets[0]);
        assert!(
            said.contains("about 450 requests, at most 200 tokens per response, 25 s"),
            "{said}"
        );
        let closed = plan("http://192.0.2.1:80", "10..200:60s");
        let said = sentence(&closed, &closed.targets[0]);
        assert!(said.contains("up to 200 users, each"), "{said}");
    }

    #[test]
    fn nothing_is_said_of_this_machine() {
        assert_eq!(announcement(&plan("http://127.0.0.1:9", "200:60s")), None);
        assert!(announcement(&plan("http://192.0.2.1:9", "200:60s")).is_some());
    }
}

#[cfg(test)]
mod once_tests {
    use super::*;

    #[test]
    fn a_request_and_its_answer_are_shown_without_credentials() {
        let one = ExchangedOnce {
            scenario: "s".to_owned(),
            target: "t".to_owned(),
            request_head: b"POST /x HTTP/1.1\r\nauthorization: Bearer abc\r\naccept: a\r\n\r\n"
                .to_vec(),
            request_body: b"{}".to_vec(),
            status: 200,
            headers: vec![("server".to_owned(), "nginx".to_owned())],
            body: b"\x1b[31mfine".to_vec(),
            first_byte: Some(Nanos::from_millis(5)),
            ..ExchangedOnce::default()
        };
        assert_eq!(
            shown(&one, true),
            "# s, to t\n> POST /x HTTP/1.1\n> authorization: <redacted>\n> accept: a\n{}\n< HTTP 200\n\
             < server: nginx\n[31mfine\n* first byte 5ms\n\n"
        );
        let short = ExchangedOnce { body: vec![b'x'; 500], ..one };
        let text = shown(&short, false);
        assert!(text.contains("(500 bytes; --verbose shows all)") && !text.contains("accept"));
    }
}
