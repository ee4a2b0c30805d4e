//! Carries out the rounds of a comparison, and shows the result after each.

use std::sync::{Arc, OnceLock};

use anyhow::{Context as _, Result, anyhow};
use plimsoll_engine::Control;
use plimsoll_live::{Difference, View};
use plimsoll_measure::{Clock as _, MonotonicClock, Nanos, RunId, Seed, Stripe};
use plimsoll_metrics::RunEnd;
use plimsoll_plan::{Plan, VersusPlan};
use plimsoll_report::screen::Screen;
use plimsoll_runner::ShardFacts;
use plimsoll_runner::facts::{self, After};
use plimsoll_runner::folder::{BlockWatcher, RunDir, read_blocks};
use plimsoll_versus::{AddedThreshold, Decider, DifferenceSoFar, Facts, Versus, combine, judge};

use crate::exit::Exit;
use crate::progress::Steps;
use crate::session::{Measured, RunOptions, Session};
use plimsoll_runner::time::sleep;

/// Between looks whether the user interrupted a pause.
const LOOK: Nanos = Nanos::from_millis(100);

/// Settings shared by all rounds, besides their plan.
pub(super) struct Settings {
    pub(super) thresholds: Vec<AddedThreshold>,
    pub(super) options: RunOptions,
}

/// Results of all rounds.
pub(super) struct Compared {
    pub(super) exit: Exit,
    /// The screen of the last round; `None` if no round ran.
    pub(super) screen: Option<Screen>,
}

/// Carries out all rounds, and shows the result after each.
pub(super) fn run(session: &mut Session, plan: &Plan, settings: &Settings) -> Result<Compared> {
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
