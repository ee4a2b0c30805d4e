//! `plimsoll versus`: what does a gateway add, and which one is better.

pub(super) mod target;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use anyhow::{Context as _, Result, anyhow};
use clap::{Args, ValueEnum, ValueHint};
use clap_complete::engine::ArgValueCompleter;
use plimsoll_engine::Control;
use plimsoll_live::{Difference, View};
use plimsoll_measure::{Clock as _, MonotonicClock, Nanos, RunId, Seed, Stripe};
use plimsoll_metrics::RunEnd;
use plimsoll_plan::{Plan, TargetUrl, VersusPlan};
use plimsoll_profile::{EnvVars, Overrides, Profile, Purpose, load};
use plimsoll_report::screen::Screen;
use plimsoll_runner::ShardFacts;
use plimsoll_runner::facts::{self, After};
use plimsoll_runner::folder::{BlockWatcher, RunDir, read_blocks};
use plimsoll_runner::time::sleep;
use plimsoll_schedule::{Load, StageSpec, Stages};
use plimsoll_versus::{AddedThreshold, Decider, DifferenceSoFar, Facts, Versus, combine, judge};
use serde_json::Value;
use target::{DIRECT, TargetFlag, parse_direct, parse_target};

use super::completions::profiles;
use crate::exit::{Exit, UsageError};
use crate::flags::{LoadFlags, OutputFlags, Part, ProfileFlags, SessionFlags, VersusFlags};
use crate::processes::run_plan;
use crate::progress::Steps;
use crate::run_result::parse_thresholds;
use crate::session::{Measured, RunOptions, Session};

const AFTER: &str = include_str!("versus.txt").trim_ascii_end();

#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct Flags {
    /// Profile file, or name of a built-in profile [default: short streamed chats]
    #[arg(value_hint = ValueHint::FilePath, add = ArgValueCompleter::new(profiles))]
    profile: Option<String>,
    /// The upstream itself, as reference; options as for --target
    #[arg(long, value_name = "URL[,OPTION=VALUE]...", value_parser = parse_direct)]
    direct: Option<TargetFlag>,
    /// A target: its name, its URL, and if needed its `key` (name of a variable), `model`,
    /// `protocol` and `watch` (repeatable)
    #[arg(long = "target", value_name = "NAME=URL[,OPTION=VALUE]...", value_parser = parse_target)]
    targets: Vec<TargetFlag>,
    #[command(flatten)]
    comparison: ComparisonFlags,
    #[command(flatten)]
    load: LoadFlags,
    #[command(flatten)]
    keys: VersusFlags,
    #[command(flatten)]
    settings: ProfileFlags,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    session: SessionFlags,
}

/// How the targets are compared.
#[derive(Args, Debug)]
#[command(next_help_heading = "Comparison")]
pub(crate) struct ComparisonFlags {
    /// Scheduling of the targets. Each one has its own virtual users, at the same time or in
    /// `turns` [default: spread]
    #[arg(long, value_enum)]
    schedule: Option<Schedule>,
    /// Load the reference twice, to see that the measurement is right [default: off]. Its process
    /// then has twice the load of the others
    #[arg(long, value_enum)]
    control: Option<Switch>,
}

/// Scheduling of the targets.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Schedule {
    /// One request after another, evenly spaced.
    Spread,
    /// All requests of a block at once: for targets that share no host.
    Together,
    /// Each target alone for some seconds, in turn.
    Turns,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Switch {
    On,
    Off,
}

/// Compares the targets of a plan once, and gives the screen of the result.
pub(super) fn compare(
    session: &mut Session,
    plan: &Plan,
    options: RunOptions,
) -> Result<Option<Screen>> {
    let thresholds = thresholds(plan)?;
    let settings = Settings { thresholds, options };
    Ok(run_rounds(session, plan, &settings)?.screen)
}

/// Compares the targets.
pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let part = flags.session.start.part(flags.settings.get("shard"))?;
    let mut plan = build_plan(flags, &part)?;
    let thresholds = thresholds(&plan)?;
    let mut options = flags.session.run.options(Some(flags.output.options()));
    options.watch.extend(target::watched(&plan)?);
    if let Some(order) = part.order {
        let (mut session, options) = order.open(&mut plan, options)?;
        let settings = Settings { thresholds, options };
        return Ok(run_rounds(&mut session, &plan, &settings)?.exit);
    }
    options.launch = part.launch;
    let mut session = flags.session.open();
    if flags.session.start.processes.is_some() {
        let finished = run_plan(&mut session, plan, &options)?;
        return Ok(finished.exit);
    }
    let settings = Settings { thresholds, options };
    let exit = run_rounds(&mut session, &plan, &settings)?.exit;
    Ok(exit)
}

// The plan of a comparison. The flags become a profile and its overrides first, so that all checks
// are in one place.

/// The load without a profile.
const LENGTH: Nanos = Nanos::from_secs(60);
const WARM_UP: Nanos = Nanos::from_secs(3);
/// The profile's default length of a window.
const WINDOW: Nanos = Nanos::from_secs(5);
/// Requests per second and target where requests are free of charge, and elsewhere.
const PRIVATE_RATE: f64 = 100.0;
const PUBLIC_RATE: f64 = 5.0;

/// Short streamed chats.
const CHATS: &str = include_str!("versus/chats.yaml");

/// The target's own path.
const PLAIN: &str = include_str!("versus/plain.yaml");

/// Builds the plan.
fn build_plan(flags: &Flags, part: &Part) -> Result<Plan> {
    let environment = EnvVars::from_process();
    let (profile, overrides) = (profile(flags)?, part.of(overrides(flags)?));
    let load_with =
        |overrides: &Overrides| load(&profile, &environment, overrides, Purpose::Versus);
    let given = flags.settings.get("stages");
    let mut overrides =
        flags.load.add_to(overrides, given, |overrides: &Overrides| match flags.profile {
            Some(_) => Ok(load_with(overrides)?.stages),
            None => Ok(usual_stages(flags)),
        })?;
    if flags.profile.is_none() && overrides.get("stages").is_none() {
        overrides = overrides.with("stages", "stages", usual_stages(flags).to_string());
    }
    Ok(load_with(&overrides)?)
}

/// The bounds on the overhead of targets.
pub(in crate::command) fn thresholds(plan: &Plan) -> Result<Vec<AddedThreshold>, UsageError> {
    plan.versus.as_ref().map_or(Ok(Vec::new()), |versus| parse_thresholds(&versus.thresholds))
}

fn profile(flags: &Flags) -> Result<Profile> {
    if let Some(name) = &flags.profile {
        return Ok(Profile::open(name)?);
    }
    let plain = flags.settings.get("protocol") == Some("http");
    let model = if plain || !is_private(flags) { "" } else { "model: mock\n" };
    let text = format!("name: versus\n{model}{}", if plain { PLAIN } else { CHATS });
    Ok(Profile::new(Path::new("command line"), text.into_bytes()))
}

fn overrides(flags: &Flags) -> Result<Overrides, UsageError> {
    let mut overrides = flags.keys.add_to(flags.settings.overrides());
    if let Some(schedule) = flags.comparison.schedule.and_then(|chosen| chosen.to_possible_value())
    {
        overrides = overrides.with("schedule", "versus.schedule", schedule.get_name());
    }
    if let Some(switch) = flags.comparison.control {
        let is_on = matches!(switch, Switch::On);
        overrides = overrides.with("control", "versus.control", is_on.to_string());
    }
    if let Some(targets) = targets(flags)? {
        overrides = overrides.with("target", "targets", targets);
    }
    Ok(flags.session.export.labels.add_to(overrides))
}

/// The targets of the flags, which replace the profile's targets.
fn targets(flags: &Flags) -> Result<Option<String>, UsageError> {
    let mut all = Vec::new();
    if let Some(direct) = &flags.direct {
        let mut target = direct.to_profile(variable)?;
        target["role"] = DIRECT.into();
        all.push(target);
    }
    for target in &flags.targets {
        all.push(target.to_profile(variable)?);
    }
    Ok((!all.is_empty()).then(|| Value::Array(all).to_string()))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The stages without a profile.
fn usual_stages(flags: &Flags) -> Stages {
    let rate = if is_private(flags) { PRIVATE_RATE } else { PUBLIC_RATE };
    let load = Load::Open { from: rate, to: rate };
    let stages = [(WARM_UP, true), (usual_length(flags), false)]
        .map(|(duration, warmup)| StageSpec { load, duration: Some(duration), warmup });
    Stages(stages.to_vec())
}

/// A minute, or long enough for windows of five seconds where targets take turns.
fn usual_length(flags: &Flags) -> Nanos {
    if !matches!(flags.comparison.schedule, Some(Schedule::Turns)) {
        return LENGTH;
    }
    let targets = flags.direct.iter().count() + flags.targets.len() + 1;
    LENGTH.max(WINDOW.scale(f64::from(facts::ROUNDS) * targets as f64))
}

/// Whether all targets of the flags have private addresses.
fn is_private(flags: &Flags) -> bool {
    let mut urls = flags.direct.iter().chain(&flags.targets).map(|target| &target.url);
    urls.all(|url| url.parse::<TargetUrl>().is_ok_and(|url| url.is_private()))
}

// Carries out the rounds of a comparison, and shows the result after each.

/// Between looks whether the user interrupted a pause.
const LOOK: Nanos = Nanos::from_millis(100);

/// Settings shared by all rounds, besides their plan.
struct Settings {
    thresholds: Vec<AddedThreshold>,
    options: RunOptions,
}

/// Results of all rounds.
struct Compared {
    exit: Exit,
    /// The screen of the last round; `None` if no round ran.
    screen: Option<Screen>,
}

/// Carries out all rounds, and shows the result after each.
fn run_rounds(session: &mut Session, plan: &Plan, settings: &Settings) -> Result<Compared> {
    let versus = plan.versus.clone().ok_or_else(|| anyhow!("the plan compares nothing"))?;
    let clock = MonotonicClock::start();
    let (mut compared, mut rounds) = (Compared { exit: Exit::Pass, screen: None }, Vec::new());
    for round in 0..versus.rounds {
        if round > 0 {
            wait(session, &clock, versus.every, round);
        }
        if session.control().is_interrupted() {
            return Ok(Compared { exit: Exit::Interrupted, ..compared });
        }
        let (measured, result) =
            measure_round(session, plan_of_round(plan, round)?, &versus, settings)?;
        rounds.push(result);
        let Some(all) = combine(&rounds) else { continue };
        if measured.summary.results.total.counters.completed == 0 {
            session.status().warn("no request was completed outside of warm-up");
        }
        let screen = session.report(&measured, Some(&all), &settings.options)?;
        let exit = measured.result(Some(&all)).exit(settings.options.allow_invalid);
        compared = Compared { exit, screen: Some(screen) };
        if exit == Exit::Interrupted {
            break;
        }
    }
    Ok(compared)
}

/// The plan of a round: with prompts, orders and ids of its own.
fn plan_of_round(plan: &Plan, round: u32) -> Result<Plan> {
    let mut plan = plan.clone();
    plan.seed = Seed(plan.seed.0.wrapping_add(round.into()));
    if let Some(id) = plan.run_id.as_ref().filter(|_| round > 0) {
        let own: RunId = format!("{id}-{round}")
            .parse()
            .map_err(|_| anyhow!("the run id is too long for several rounds; shorten --run-id"))?;
        plan.run_id = Some(own);
    }
    Ok(plan)
}

/// Waits for the time of the next round.
fn wait(session: &Session, clock: &MonotonicClock, every: Option<Nanos>, round: u32) {
    let Some(every) = every else { return };
    let due = every.as_u64().saturating_mul(round.into());
    let left = || due.saturating_sub(clock.now().as_nanos());
    if left() > 0 {
        let seconds = Nanos::new(left()).as_secs_f64();
        session.status().info(&format!("round {} begins in {seconds:.0} s", round + 1));
    }
    while left() > 0 && !session.control().is_interrupted() {
        sleep(LOOK.min(Nanos::new(left())));
    }
}

/// Carries out one round, and judges it.
fn measure_round(
    session: &mut Session,
    plan: Plan,
    versus: &VersusPlan,
    settings: &Settings,
) -> Result<(Measured, Versus)> {
    let (control, decided_at) = (session.control().clone(), Arc::new(OnceLock::new()));
    let mut prepared = session.prepare(plan, &settings.options)?;
    let (run, status) = (prepared.runner.prepared(), session.status());
    let mut known = facts::before(run, versus, prepared.runner.probed(), &settings.thresholds);
    for finding in known.targets.iter().flat_map(|target| &target.setup) {
        status.warn(&finding.text());
    }
    for line in facts::short_turns(run, versus) {
        status.warn(&line);
    }
    if let (true, Some(folder)) = (run.plan().shard != Stripe::WHOLE, prepared.runner.folder()) {
        ShardFacts { facts: known.clone(), ..ShardFacts::default() }.store(folder)?;
    }
    let view = status.view().cloned();
    if versus.decide || view.is_some() {
        let decided = versus.decide.then(|| (control, Arc::clone(&decided_at)));
        prepared.runner.watch_blocks(watcher(&known, decided, view));
    }
    let mut measured = session.measure(prepared)?;
    measured.summary.ignore(&settings.options.ignored);
    if measured.summary.metadata.run.ended == RunEnd::Decided {
        known.decided_at = decided_at.get().copied();
    }
    if let Some(error) = &measured.comparison.error {
        session.status().warn(&format!("pairs.bin is incomplete: {error}"));
    }
    let folder = measured.run_dir.as_ref().map(RunDir::path).context("the run has no folder")?;
    let pairs = read_blocks(folder)?;
    complete(&mut known, &measured, pairs.one_in)?;
    let shown = Steps::passing(session.status(), "comparing the targets");
    let mut result = judge(&known, &pairs.blocks);
    drop(shown);
    facts::take_over(&measured.summary, &mut result);
    Ok((measured, result))
}

/// Adds facts that are known after the load. A shard stores the facts for the merge in its folder.
fn complete(known: &mut Facts, measured: &Measured, one_in: u32) -> Result<()> {
    let (summary, after) = (&measured.summary, &measured.comparison);
    let (taken_out, tracks) = (&*after.taken_out, &*after.tracks);
    let Some(folder) = measured.run_dir.as_ref().filter(|_| measured.is_shard()) else {
        facts::complete(known, &After { summary, taken_out, tracks, one_in });
        return Ok(());
    };
    let (facts, out) = (known.clone(), taken_out.to_vec());
    ShardFacts { facts, taken_out: out, tracks: tracks.to_vec() }.store(folder)?;
    // The CPU time of a process that other shards also load is not due to this shard's requests
    // alone.
    facts::complete(known, &After { summary, taken_out, tracks: &[], one_in });
    known.targets.iter_mut().for_each(|target| target.cpu_us_per_request = None);
    Ok(())
}

/// Looks at the blocks as they come: shows how the targets differ so far, and with `decided` ends
/// the run as soon as that is decided.
fn watcher(
    known: &Facts,
    decided: Option<(Control, Arc<OnceLock<Nanos>>)>,
    view: Option<View>,
) -> BlockWatcher {
    // Only an end depends on thresholds, and they take long to judge.
    let thresholds = if decided.is_some() { known.thresholds.clone() } else { Vec::new() };
    let mut decider = Decider::new(&Facts { thresholds, ..known.clone() });
    Box::new(move |blocks| {
        let Some(at) = decider.add(blocks) else { return show_so_far(&decider, view.as_ref()) };
        show_so_far(&decider, view.as_ref());
        if let Some((control, decided_at)) = &decided {
            decided_at.get_or_init(|| at);
            control.decide();
        }
    })
}

fn show_so_far(decider: &Decider, view: Option<&View>) {
    let Some(view) = view.filter(|_| !decider.so_far().is_empty()) else { return };
    let differences = decider
        .so_far()
        .iter()
        .map(|found: &DifferenceSoFar| Difference {
            target: found.target,
            reference: found.reference,
            figure: found.figure.title().to_owned(),
            millis: found.added_ns.map(|all| all.map(|nanos| nanos / 1e6)),
        })
        .collect();
    view.change(|model| model.compare(differences));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_profiles_without_a_profile_can_be_compared() {
        for text in [CHATS, PLAIN] {
            let text = format!("name: versus\nmodel: mock\n{text}");
            let profile = Profile::new(Path::new("command line"), text.into_bytes());
            let targets = r#"[{"name":"d","url":"http://127.0.0.1:1"},{"name":"a","url":"http://127.0.0.1:2"}]"#;
            let overrides = Overrides::default().with("target", "targets", targets);
            let overrides = overrides.with("stages", "stages", "@100:60s");
            let plan = load(&profile, &EnvVars::default(), &overrides, Purpose::Versus).unwrap();
            assert_eq!(plan.targets.len(), 2);
        }
    }
}
