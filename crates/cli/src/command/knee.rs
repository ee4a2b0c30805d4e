//! `plimsoll knee`: the highest load that a target handles within an objective.

use std::env;

use anyhow::Result;
use clap::{Args, ValueHint};
use clap_complete::engine::ArgValueCompleter;
use plimsoll_compare::plan::hash as plan_hash;
use plimsoll_knee::{
    FORMAT, KneeReport, Load, Objective, Phase, Planned, Search, Settings, TargetKnee, Verdict,
    in_turns,
};
use plimsoll_measure::{Nanos, Stripe};
use plimsoll_plan::{Plan, Target, TargetRole, redacted_path};
use plimsoll_profile::{EnvVars, Overrides, Profile, Purpose, load};
use plimsoll_report::format::utc_compact;
use plimsoll_report::screen::Rest;
use plimsoll_runner::folder::{RunDir, file, unix_nanos};
use plimsoll_runner::knee::{ProbeError, Prober};

use super::completions::profiles;
use crate::command::versus::target::{TargetFlag, parse_direct, parse_named_or_not};
use crate::console::{self, Show};
use crate::exit::{Exit, UsageError};
use crate::flags::{
    FolderFlags, ProfileFlags, ProgressFlags, ScreenFlags, parse_rate, parse_share, parse_time,
};
use crate::progress::Steps;
use crate::session::{Session, runner_error};

const AFTER: &str = include_str!("knee.txt").trim_ascii_end();

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct Flags {
    /// Profile file, or name of a built-in profile; its stages are not used
    #[arg(value_hint = ValueHint::FilePath, add = ArgValueCompleter::new(profiles))]
    profile: String,
    /// A target [default: the profile's]. Repeat for several targets; give each a name, and a `key`
    /// (name of a variable), `model` and `protocol` if it needs one
    #[arg(long = "target", value_name = "[NAME=]URL[,OPTION=VALUE]...", help_heading = "Target")]
    #[arg(value_parser = parse_named_or_not, value_hint = ValueHint::Url)]
    targets: Vec<TargetFlag>,
    #[command(flatten)]
    search: SearchFlags,
    #[command(flatten)]
    settings: ProfileFlags,
    #[command(flatten)]
    folder: FolderFlags,
    #[command(flatten)]
    screen: ScreenFlags,
    #[command(flatten)]
    progress: ProgressFlags,
}

/// Subject of the search.
#[derive(Args, Debug)]
#[command(next_help_heading = "Search")]
struct SearchFlags {
    /// The objective of a request, and the share of requests that must meet it, like
    /// `ttft<500ms : 99%`
    #[arg(long, value_name = "OBJECTIVE")]
    slo: Objective,
    /// Search the number of requests in flight, from the first number up to the second
    #[arg(short, long, value_name = "FROM[,TO]", value_delimiter = ',', value_parser = parse_rate)]
    #[arg(conflicts_with_all = ["from", "to", "users"])]
    concurrency: Vec<f64>,
    /// Search the rate of requests, from the first number up to the second [default: 10]
    #[arg(long, value_name = "FROM[,TO]", value_delimiter = ',', value_parser = parse_rate)]
    #[arg(conflicts_with_all = ["concurrency", "from", "to", "users"], allow_negative_numbers = true)]
    rate: Vec<f64>,
    /// The lowest load: requests per second, or users with --users [default: 10, or 1]
    #[arg(long, value_name = "N", value_parser = parse_rate, allow_negative_numbers = true)]
    from: Option<f64>,
    /// The highest load that is tried [default: no limit]
    #[arg(long, value_name = "N", value_parser = parse_rate, allow_negative_numbers = true)]
    to: Option<f64>,
    /// Search the number of virtual users, who each wait for a response, instead of the rate
    #[arg(long)]
    users: bool,
    /// Relative step between tested loads; each end of the result is accurate to half a step
    #[arg(long, value_name = "SHARE", default_value = "10%", value_parser = parse_share)]
    precision: f64,
    /// Time for each target [default: 5m, or 180 answers if that is more]
    #[arg(long, alias = "budget-time", value_name = "TIME", value_parser = parse_time)]
    budget: Option<Nanos>,
    /// Length of a probe that proves a load kept or missed, at least
    #[arg(short = 'd', long, alias = "duration", value_name = "TIME", value_parser = parse_time)]
    #[arg(default_value = "30s")]
    confirm: Nanos,
    /// Required load: exit code 1 if the capacity is lower
    #[arg(long, value_name = "N", value_parser = parse_rate, allow_negative_numbers = true)]
    at_least: Option<f64>,
    /// The upstream itself, probed at each load at which a target missed the objective; options as
    /// for --target
    #[arg(long, value_name = "URL[,OPTION=VALUE]...", value_parser = parse_direct)]
    direct: Option<TargetFlag>,
}

impl SearchFlags {
    fn settings(&self) -> Result<Settings, UsageError> {
        let ends = if self.concurrency.is_empty() { &self.rate } else { &self.concurrency };
        let by_users = matches!(self.load(), Load::VirtualUsers);
        let (first, last) = (ends.first().copied(), ends.get(1).copied());
        let from = first.or(self.from).unwrap_or(if by_users { 1.0 } else { 10.0 });
        let defaults = Settings::new(self.slo.share(), from);
        let settings = Settings {
            to: last.or(self.to).unwrap_or(defaults.to),
            load: self.load(),
            step: self.precision,
            budget_s: self.budget.map(Nanos::as_secs_f64),
            prove_s: self.confirm.as_secs_f64(),
            ..defaults
        };
        if settings.to < from {
            let why = format!("the highest load, {}, is below the lowest, {from}", settings.to);
            return Err(UsageError(why));
        }
        // Warm-ups, and the search for the place.
        let least = settings.prove_s.mul_add(1.25, LEAST_SEARCH_S);
        match self.budget {
            Some(budget) if budget.as_secs_f64() < least => Err(UsageError(format!(
                "--budget {budget} is too short for a search: allow {least:.0}s"
            ))),
            _ => Ok(settings),
        }
    }

    const fn load(&self) -> Load {
        if self.users || !self.concurrency.is_empty() {
            Load::VirtualUsers
        } else {
            Load::RequestsPerSecond
        }
    }
}

/// Shortest time for a search besides its long probes, in seconds.
const LEAST_SEARCH_S: f64 = 20.0;

/// Searches the knees.
pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let targets = subjects(flags)?;
    if targets.iter().any(|target| target.plan.shard != Stripe::WHOLE) {
        let why = "knee cannot be divided, because each probe depends on the one before: leave out --shard";
        return Err(UsageError(why.to_owned()).into());
    }
    let first = targets.first().map(|target| &target.plan);
    let name = first.map_or("", |plan| &*plan.name);
    let direct = flags.search.direct.as_ref().map(|direct| plan_of(flags, direct)).transpose()?;
    let settings = flags.search.settings()?;
    let mut session = Session::open(flags.progress.ui());
    let started = utc_compact(unix_nanos());
    let mut run_dir =
        RunDir::create(&flags.folder.options(None), &started, &format!("knee-{name}"))?;
    session.handle_signals()?;
    let finder = Finder { flags, session: &session, targets: &targets, settings };
    let report = finder.report(direct.as_ref(), name, started)?;
    run_dir.keep();
    let rest = Rest::Folder(run_dir.path().display().to_string());
    match flags.screen.show() {
        Show::Full => console::print(&report.text(console::full_style(WIDTH).width, rest.clone()))?,
        Show::Screen | Show::Json | Show::Nothing => {
            console::print_screen(&report.screen(rest.clone()))?;
        }
    }
    let mut json = serde_json::to_vec_pretty(&report)?;
    json.push(b'\n');
    run_dir.write(file::KNEE, &json)?;
    run_dir.write(file::TEXT, report.text(WIDTH, rest).as_bytes())?;
    run_dir.write_page(|| plimsoll_page::knee_page(&report))?;
    Ok(exit(&report))
}

/// Stages that replace the profile's, which may have none.
const STAGES: &str = "1:1s";

/// Columns of report.txt.
pub(super) const WIDTH: usize = 110;

/// A target whose knee is searched.
struct Subject {
    /// Its name; empty if unnamed.
    name: String,
    plan: Plan,
}

impl Subject {
    fn url(&self) -> String {
        url(&self.plan)
    }
}

fn url(plan: &Plan) -> String {
    plan.targets.first().map(|target| redacted_path(&target.url.to_string())).unwrap_or_default()
}

/// The targets of the command line, or the profile's targets by default.
fn subjects(flags: &Flags) -> Result<Vec<Subject>> {
    for flag in ["shard", "stages", "max-requests"] {
        if flags.settings.get(flag).is_some() {
            let why = format!("`knee` chooses its loads and makes many runs: leave out --{flag}");
            return Err(UsageError(why).into());
        }
    }
    if flags.targets.is_empty() {
        let plan = plan(flags, flags.settings.overrides())?;
        let several = plan.targets.len() > 1;
        let own = plan.targets.iter().filter(|target| target.role != TargetRole::Control);
        return Ok(own
            .map(|target: &Target| {
                let name = if several { target.name.clone() } else { String::new() };
                let targets = vec![target.clone()];
                Subject { name, plan: Plan { targets, versus: None, ..plan.clone() } }
            })
            .collect());
    }
    for (index, target) in flags.targets.iter().enumerate() {
        let name = &target.name;
        if flags.targets.len() > 1 && name.is_empty() {
            let why = "several targets need names: write --target NAME=URL for each";
            return Err(UsageError(why.to_owned()).into());
        }
        if flags.targets[..index].iter().any(|other| other.name == *name) {
            return Err(UsageError(format!("two targets have the name `{name}`")).into());
        }
    }
    flags
        .targets
        .iter()
        .map(|target: &TargetFlag| {
            Ok(Subject { name: target.name.clone(), plan: plan_of(flags, target)? })
        })
        .collect()
}

/// The plan of a target of the command line, with its own key, model and protocol.
fn plan_of(flags: &Flags, target: &TargetFlag) -> Result<Plan> {
    if target.option("watch").is_some() {
        let why = "`knee` does not monitor processes: omit `watch=`";
        return Err(UsageError(format!("--target {}: {why}", target.name)).into());
    }
    let mut overrides = flags.settings.overrides().with("target", "target", target.url.as_str());
    if let Some(key) = target.key(|name| env::var(name).ok())? {
        overrides = overrides.with("target", "key", key);
    }
    for key in ["model", "protocol"] {
        if let Some(text) = target.option(key) {
            overrides = overrides.with("target", key, text);
        }
    }
    plan(flags, overrides)
}

fn plan(flags: &Flags, overrides: Overrides) -> Result<Plan> {
    let profile = Profile::open(&flags.profile)?;
    // A profile needs stages; each probe has its own.
    let overrides = overrides.with("stages", "stages", STAGES);
    Ok(load(&profile, &EnvVars::from_process(), &overrides, Purpose::Run)?)
}

/// The searches in progress.
struct Finder<'f> {
    flags: &'f Flags,
    session: &'f Session,
    targets: &'f [Subject],
    settings: Settings,
}

impl Finder<'_> {
    fn report(&self, direct: Option<&Plan>, profile: &str, started: String) -> Result<KneeReport> {
        let steps = Steps::begin(self.session.status());
        let mut searches: Vec<_> =
            self.targets.iter().map(|_| Search::new(self.settings)).collect();
        let control = self.session.control();
        in_turns(&mut searches, |index, planned, search| {
            let target = &self.targets[index];
            steps.step(&self.announcement(target, search, planned));
            let prober = self.prober(&target.plan);
            let measured = prober.probe(planned);
            let measured = measured.map_err(probe_error)?;
            Ok::<_, anyhow::Error>((!control.is_interrupted()).then_some(measured))
        })?;
        let (load, wanted) = (self.flags.search.load(), self.flags.search.at_least);
        let mut knees = Vec::new();
        for (target, search) in self.targets.iter().zip(&searches) {
            let hash = plan_hash(&serde_json::to_value(&target.plan)?);
            let url = target.url();
            let mut knee = TargetKnee::new(search, wanted, &target.name, url, hash);
            if let Some(plan) = direct.filter(|_| !control.is_interrupted()) {
                self.provider(&steps, plan, search, &mut knee)?;
            }
            knees.push(knee);
        }
        Ok(KneeReport {
            format: FORMAT.to_owned(),
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            started,
            profile: profile.to_owned(),
            objective: self.flags.search.slo.to_string(),
            load,
            interrupted: control.is_interrupted(),
            budget_s: searches.iter().map(Search::budget_s).reduce(f64::max),
            knees,
        })
    }

    fn prober<'p>(&'p self, plan: &'p Plan) -> Prober<'p> {
        let (objective, load) = (&self.flags.search.slo, self.flags.search.load());
        Prober { plan, objective, load, control: self.session.control() }
    }

    /// Tries the upstream itself at the load that a target missed.
    fn provider(
        &self,
        steps: &Steps,
        plan: &Plan,
        search: &Search,
        knee: &mut TargetKnee,
    ) -> Result<()> {
        let Some(planned) = knee.upstream_probe(search) else { return Ok(()) };
        let load = self.flags.search.load().text(planned.load);
        steps.step(&format!("the upstream itself at {load}"));
        let measured = self.prober(plan).probe(planned).map_err(probe_error)?;
        knee.add_upstream(&url(plan), &load, &measured, self.flags.search.slo.share());
        Ok(())
    }

    fn announcement(&self, target: &Subject, search: &Search, planned: Planned) -> String {
        let name = &target.name;
        let of = if name.is_empty() { String::new() } else { format!("{name}: ") };
        let what = match planned.phase {
            Phase::Place => "bracketing the capacity",
            Phase::Prove => "proving",
            Phase::Check => "checking that the target is up",
        };
        let (spent, budget) = (search.spent_s().abs(), search.budget_s());
        let at = self.flags.search.load().text(planned.load);
        format!("{of}{spent:>4.0} of {budget:.0} s: {what}: {at} for {:.0} s", planned.seconds)
    }
}

/// An unsupported profile, and an objective that bounds nothing, are usage errors.
fn probe_error(error: ProbeError) -> anyhow::Error {
    match error {
        ProbeError::Run(error) => runner_error(error),
        error @ ProbeError::Objective(_) => UsageError(error.to_string()).into(),
        error @ ProbeError::Metrics(_) => error.into(),
    }
}

/// The worst of all targets.
fn exit(report: &KneeReport) -> Exit {
    if report.interrupted {
        return Exit::Interrupted;
    }
    match report.verdict() {
        Verdict::Pass => Exit::Pass,
        Verdict::Fail => Exit::Fail,
        Verdict::Inconclusive => Exit::Inconclusive,
    }
}
