//! `plimsoll run`: runs a profile against a target.

use std::path::Path;

use anyhow::Result;
use clap::{Args, ValueHint};
use clap_complete::engine::ArgValueCompleter;
use plimsoll_metrics::{DistributionSummary, Group, Metric, RunEnd, RunSummary};
use plimsoll_plan::{Plan, REDACTED};
use plimsoll_profile::{EnvVars, Overrides, Profile, Purpose, load, show};
use plimsoll_report::screen::{Rows, Screen, Tone};
use plimsoll_report::table::Table;
use plimsoll_report::{format, run_findings, run_requests};
use plimsoll_runner::Secrets;
use plimsoll_runner::folder::file;

use self::announcement::{Consent, announcement, consent};
use super::completions::profiles;
use crate::console::{self, Show};
use crate::exit::{Exit, UsageError};
use crate::flags::{
    ExportFlags, LoadFlags, OutputFlags, ProfileFlags, ProgressFlags, RunFlags, StartFlags,
    TargetFlags, ThresholdFlags, TrafficFlags,
};
use crate::processes::run_plan;
use crate::progress::Ui;
use crate::session::{FinishedRun, RunOptions, Session};

mod announcement;
mod once;
pub(super) mod traffic;

const AFTER: &str = include_str!("run.txt").trim_ascii_end();

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
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
    #[command(flatten)]
    start: StartFlags,
    /// First look at a target: about ten requests for each scenario, one after another, instead of
    /// the profile's load and its thresholds. Reports whether each scenario was answered; exit code
    /// 1 if not
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
    run: RunFlags,
    #[command(flatten)]
    export: ExportFlags,
    #[command(flatten)]
    progress: ProgressFlags,
}

/// Runs the profile.
pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let profile = match traffic::profile(flags)? {
        Some(profile) => profile,
        None => Profile::open(&profile_of(&flags.profile)?)?,
    };
    let part = flags.start.part(flags.settings.get("shard"))?;
    let overrides = flags.thresholds.add_to(flags.target.add_to(flags.settings.overrides()));
    let mut overrides = flags.export.labels.add_to(part.of(overrides));
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
            "a credential of the profile is `{REDACTED}`: stored profiles have none; give it with --key KEY or --header NAME=VALUE"
        );
        return Err(UsageError(why).into());
    }
    if flags.once {
        return once::run(plan, flags.verbose);
    }
    if let Some(order) = part.order {
        let profile = Some(show(&profile, &variables, &overrides)?);
        return order.carry_out(plan, RunOptions { profile, ..flags.run.options(None) });
    }
    if let Some(said) = announcement(&plan) {
        if flags.progress.ui() != Ui::Quiet {
            console::eprint_line(&said);
        }
        if !flags.yes && !flags.smoke && consent()? == Consent::Refused {
            return Err(UsageError("nothing was sent: the answer was not `y`".to_owned()).into());
        }
    }
    let again = show(&profile, &variables, &overrides)?;
    let mut session = Session::open(flags.progress.ui());
    session.export(flags.export.options())?;
    let mut options = flags.run.options(Some(flags.output.options()));
    (options.profile, options.launch) = (Some(again), part.launch);
    if flags.smoke && options.show == Show::Screen {
        options.show = Show::Nothing;
    }
    let finished = run_plan(&mut session, plan, &options)?;
    if flags.smoke && options.show == Show::Nothing {
        console::print_screen(&smoke_screen(&finished))?;
    }
    session.linger();
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
        "{named} is neither a profile nor the folder of a run that ended (it has no {}); give the profile that was run",
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
    let summary = &run.summary;
    let mut screen = Screen::new(run.rest.clone());
    let metadata = &summary.metadata;
    let urls: Vec<_> = metadata.targets.iter().map(|target| target.url.as_str()).collect();
    screen.title(&format!("smoke of {}: {}", metadata.run.name, urls.join(", ")));
    let mut table = Table::new(["", "answered", "mean time", "mean TTFT"]);
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
    let answered = format!("{} of {}", group.counters.ok(), group.counters.scheduled);
    let [response, ttft] = [Metric::ResponseTime, Metric::Ttft].map(|metric: Metric| {
        format::limited_time(group.distribution(metric).map(DistributionSummary::mean_figure))
    });
    [name, answered, response, ttft]
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
        return (Tone::Bad, format!("FAIL: not every request was answered: {}", broken.join(", ")));
    }
    let was_tried = |name: &&String| {
        let own = groups.iter().find(|group| group.scenario.as_ref() == Some(name));
        own.is_some_and(|group| group.counters.scheduled > 0)
    };
    let untried: Vec<_> =
        summary.metadata.scenarios.iter().filter(|name| !was_tried(name)).cloned().collect();
    if !untried.is_empty() {
        let names = untried.join(", ");
        return (Tone::Unsure, format!("INCONCLUSIVE: no request was sent for {names}"));
    }
    let (all, scenarios) = (summary.results.total.counters.scheduled, groups.len());
    let of = if scenarios == 1 { "the scenario" } else { "each scenario" };
    (Tone::Good, format!("PASS: {of} was answered, {all} of {all} requests"))
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
