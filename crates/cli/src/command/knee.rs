//! `plimsoll knee`: how much load a target carries within an objective.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueHint};
use plimsoll_compare::plan::hash as plan_hash;
use plimsoll_harness::knee::{ProbeError, Prober};
use plimsoll_knee::{
    AtLeast, FORMAT, Found, KeptShare, Kind, KneeReport, Load, Objective, Phase, Planned,
    ProviderProbe, Search, Settings, State,
};
use plimsoll_measure::Nanos;
use plimsoll_profile::{EnvVars, Overrides, Plan, Profile, Purpose, load};
use plimsoll_report::format::utc_compact;
use plimsoll_report::screen::Rest;

use crate::console::{self, Show};
use crate::exit::{Exit, UsageError};
use crate::flags::{
    ProfileFlags, ProgressFlags, ScreenFlags, TargetFlags, parse_rate, parse_share,
};
use crate::progress::Steps;
use crate::run_dir::{RunDir, RunDirOptions, file, unix_nanos};
use crate::session::Session;

const AFTER: &str = "\
Examples:
  plimsoll knee realistic --target http://127.0.0.1:8080 --slo 'ttft<500ms : 99%'
  plimsoll knee chat.yaml --slo 'ttft<500ms & tpot<30ms : 99%' --at-least 200 --direct http://127.0.0.1:9000
  plimsoll knee minimal --target http://127.0.0.1:8080 --slo 'response_time<1s : 95%' --users --from 1

An objective bounds times of each request (response_time, service_time, ttfb, ttft, response_ttft, tpot, longest_gap) and says what share of all requests must keep every bound. `p99 < 20 ms` is `response_time<20ms : 99%`. Requests that fail, are refused or are never sent miss it.

The search steps up to a load that misses the objective, bisects, and then makes longer probes on both sides of the best guess, until the 95 % interval is as narrow as --precision or --budget is spent. A longer probe below the interval must keep the objective. A probe in which Plimsoll itself could not keep up counts neither way; if it is the limit, the result is \"at least\".

The folder contains knee.json and report.txt. Ctrl-C ends the search and reports what is known.

Exit codes:
    0  found; with --at-least: the whole interval is above it
    1  not even the lowest load keeps the objective, or --at-least is above the interval
    2  wrong usage
    3  no knee could be told, it was not stable, or --at-least is within the interval
  130  interrupted";

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct Flags {
    /// Profile file, or name of a built-in profile; its stages are not used
    #[arg(value_hint = ValueHint::FilePath)]
    profile: String,
    #[command(flatten)]
    target: TargetFlags,
    #[command(flatten)]
    search: SearchFlags,
    #[command(flatten)]
    settings: ProfileFlags,
    /// Folder in which the search creates its own, named by time
    #[arg(long, value_name = "DIR", default_value = "runs", value_hint = ValueHint::DirPath)]
    #[arg(help_heading = "Output")]
    out: PathBuf,
    #[command(flatten)]
    screen: ScreenFlags,
    #[command(flatten)]
    progress: ProgressFlags,
}

/// What is searched.
#[derive(Args, Debug)]
#[command(next_help_heading = "Search")]
struct SearchFlags {
    /// What each request must keep, and the share of requests that must, like `ttft<500ms : 99%`
    #[arg(long, value_name = "OBJECTIVE")]
    slo: Objective,
    /// The lowest load: requests per second, or users with --users [default: 10, or 1]
    #[arg(long, value_name = "N", value_parser = parse_rate, allow_negative_numbers = true)]
    from: Option<f64>,
    /// The highest load that is tried [default: no limit]
    #[arg(long, value_name = "N", value_parser = parse_rate, allow_negative_numbers = true)]
    to: Option<f64>,
    /// Search the number of virtual users, each of which waits for its response, instead of the
    /// rate of arrivals
    #[arg(long)]
    users: bool,
    /// Width of the interval at which the search ends
    #[arg(long, value_name = "SHARE", default_value = "4%", value_parser = parse_share)]
    precision: f64,
    /// Time for everything
    #[arg(long, value_name = "TIME", default_value = "5m")]
    budget: Nanos,
    /// Length of the confirmation; 0s for none
    #[arg(long, value_name = "TIME", default_value = "60s")]
    confirm: Nanos,
    /// The load that it must carry: exit code 1 if it does not
    #[arg(long, value_name = "N", value_parser = parse_rate, allow_negative_numbers = true)]
    at_least: Option<f64>,
    /// The upstream itself, which is tried at 1.2 times the knee: is the limit its own?
    #[arg(long, value_name = "URL")]
    direct: Option<String>,
}

impl SearchFlags {
    fn settings(&self, seed: u64) -> Result<Settings, UsageError> {
        let from = self.from.unwrap_or(if self.users { 1.0 } else { 10.0 });
        let (budget_s, confirm_s) = (self.budget.as_secs_f64(), self.confirm.as_secs_f64());
        let defaults = Settings::new(self.slo.share(), from);
        let settings = Settings {
            to: self.to.unwrap_or(defaults.to),
            whole: self.users,
            precision: self.precision,
            budget_s,
            confirm_s,
            seed,
            ..defaults
        };
        if settings.to < from {
            return Err(UsageError(format!("--to {} is below --from {from}", settings.to)));
        }
        if budget_s < confirm_s + LEAST_SEARCH_S {
            let least = confirm_s + LEAST_SEARCH_S;
            return Err(UsageError(format!(
                "--budget {} is too short for a search and its confirmation: allow {least:.0}s, or shorten --confirm",
                self.budget
            )));
        }
        Ok(settings)
    }

    const fn load(&self) -> Load {
        if self.users { Load::VirtualUsers } else { Load::RequestsPerSecond }
    }
}

/// Shortest time for a search, in seconds.
const LEAST_SEARCH_S: f64 = 30.0;
/// The provider is tried at so many times the knee, for so many seconds.
const PROVIDER: (f64, f64) = (1.2, 10.0);

/// Searches the knee.
pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let overrides = flags.target.overrides(&flags.settings);
    let plan = plan(flags, &overrides)?;
    let provider = provider(flags, &overrides)?;
    let search = flags.search.settings(plan.seed.0)?;
    let mut session = Session::open(flags.progress.ui());
    let started = utc_compact(unix_nanos());
    let output = RunDirOptions { out: flags.out.clone(), rows: false, page: false };
    let run_dir = RunDir::create(&output, &started, &format!("knee-{}", plan.name))?;
    session.handle_signals()?;
    let report = find(flags, &session, (&plan, provider.as_ref()), (search, started));
    let report = report.inspect_err(|_| run_dir.discard())?;
    let rest = Rest::Folder(run_dir.path().display().to_string());
    match flags.screen.show() {
        Show::Full => console::print(&report.text(console::full_style(WIDTH).width, rest.clone()))?,
        Show::Screen | Show::Nothing => console::print_screen(&report.screen(rest.clone()))?,
    }
    let mut json = serde_json::to_vec_pretty(&report)?;
    json.push(b'\n');
    run_dir.write("knee.json", &json)?;
    run_dir.write(file::TEXT, report.text(WIDTH, rest).as_bytes())?;
    Ok(exit(&report))
}

/// Stages in place of the profile's, which may have none.
const STAGES: &str = "1:1s";

/// Columns of report.txt.
const WIDTH: usize = 110;

fn plan(flags: &Flags, overrides: &Overrides) -> Result<Plan> {
    let profile = Profile::open(&flags.profile)?;
    // A profile needs stages; each probe has its own.
    let overrides = Overrides { stages: Some(STAGES.to_owned()), ..overrides.clone() };
    Ok(load(&profile, &EnvVars::from_process(), &overrides, Purpose::Run)?)
}

fn provider(flags: &Flags, overrides: &Overrides) -> Result<Option<Plan>> {
    let Some(direct) = &flags.search.direct else { return Ok(None) };
    let overrides = Overrides { target: Some(direct.clone()), ..overrides.clone() };
    plan(flags, &overrides).map(Some)
}

fn find(
    flags: &Flags,
    session: &Session,
    (plan, provider): (&Plan, Option<&Plan>),
    (settings, started): (Settings, String),
) -> Result<KneeReport> {
    let (objective, load) = (&flags.search.slo, flags.search.load());
    let prober = Prober { plan, objective, load, control: session.control() };
    let mut search = Search::new(settings);
    let steps = Steps::begin(session.status());
    while let Some(planned) = search.next() {
        steps.step(&announcement(&search, planned, load, settings.budget_s));
        let measured = prober.probe(planned, Some(&search)).map_err(probe_error)?;
        if session.control().is_interrupted() {
            search.interrupt();
            break;
        }
        search.record(measured);
    }
    let interrupted = session.control().is_interrupted();
    let knee = search.found().cloned().unwrap_or_else(unknown);
    let provider = provider
        .filter(|_| !interrupted)
        .and_then(|plan| Some((plan, knee.load.or(knee.high)?)))
        .map(|(plan, at)| {
            let planned =
                Planned { load: at * PROVIDER.0, seconds: PROVIDER.1, phase: Phase::Cliff };
            let url = plan.targets.first().map(|target| target.url.to_string()).unwrap_or_default();
            steps.step(&format!("the provider itself at {}", load.text(planned.load)));
            let measured = Prober { plan, ..prober }.probe(planned, None).map_err(probe_error)?;
            let (kept, state) = KeptShare::judge(&measured.batches, objective.share());
            Ok::<_, anyhow::Error>(ProviderProbe {
                url,
                load: planned.load,
                kept: Some(kept),
                state,
            })
        })
        .transpose()?;
    Ok(KneeReport {
        format: FORMAT.to_owned(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        started,
        profile: plan.name.clone(),
        target: plan.targets.first().map(|target| target.url.to_string()).unwrap_or_default(),
        plan_hash: plan_hash(&serde_json::to_value(plan)?),
        objective: objective.to_string(),
        load,
        at_least: flags.search.at_least.map(|wanted| AtLeast::judge(wanted, &knee)),
        knee,
        provider,
        interrupted,
        took_s: search.spent_s(),
        probes: search.probes().to_vec(),
    })
}

fn announcement(search: &Search, planned: Planned, load: Load, budget_s: f64) -> String {
    let what = match planned.phase {
        Phase::Floor => "the lowest load",
        Phase::Bracket => "a step up",
        Phase::Narrow => "bisecting",
        Phase::Cliff => "an end of the bracket again",
        Phase::Estimate => "beside the best guess",
        Phase::Confirm => "confirming",
    };
    let (spent, at) = (search.spent_s(), load.text(planned.load));
    let last = search.probes().last().map_or_else(String::new, |last| {
        let kept = last.kept.map_or(0.0, |kept| kept.value * 1e2);
        format!("; before: {kept:.2} % kept at {}", load.text(last.load))
    });
    format!(
        "{:>4.0} of {budget_s:.0} s: {what}: {at} for {:.0} s{last}",
        spent.abs(),
        planned.seconds
    )
}

fn unknown() -> Found {
    let why = Some("the search ended before a probe".to_owned());
    Found { kind: Kind::Unknown, load: None, low: None, high: None, why, confirmed: None }
}

/// A profile that cannot be carried out, and an objective that bounds nothing, are wrong usage.
fn probe_error(error: ProbeError) -> anyhow::Error {
    match error {
        ProbeError::Engine(error) => crate::session::plan_error(error),
        error @ ProbeError::Objective(_) => UsageError(error.to_string()).into(),
    }
}

fn exit(report: &KneeReport) -> Exit {
    if report.interrupted {
        return Exit::Interrupted;
    }
    match (report.at_least.map(|wanted| wanted.state), report.knee.kind) {
        (None, Kind::Interval | Kind::Bracket | Kind::AtLeast) | (Some(State::Kept), _) => {
            Exit::Pass
        }
        (Some(State::Missed), _) | (_, Kind::NotEven) => Exit::Fail,
        (Some(_), _) | (None, Kind::Unstable | Kind::Unknown) => Exit::Invalid,
    }
}
