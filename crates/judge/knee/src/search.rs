//! The search: chooses the next load to probe, and tracks the proven loads.
//!
//! 1. **Place**: short probes double the load until one misses. The rate of its good responses is
//!    near the capacity, so it is tried next; bisection follows, to 10 or 20 %. Short probes begin
//!    with an empty queue: a load that they miss is missed in the steady state as well, but a load
//!    that they meet may be missed there.
//! 2. **Prove**: long probes walk down to a load that meets the objective and up to one that misses
//!    it, in strides that double, then try the loads between, and at last repeat the one that
//!    meets it. The counts of all long probes at a load are pooled: at most two.
//! 3. **Check**: after many failures the lowest load is probed again. If that fails too, or gets no
//!    response at once, the target is down: the search ends, and these probes do not count.
//!
//! The ends of the result are half a step outside the proven loads. Long trials that prove both
//! bounds come from `MLRsearch` (draft-ietf-bmwg-mlrsearch); ADR 0116 has the simulations.

use std::collections::BTreeMap;

use plimsoll_measure::{Moment, Outcome};
use plimsoll_report::format::{digits, seconds};
use plimsoll_rules::Finding;

use crate::probe::{Counts, Failure, KeptShare, Measured, Phase, Planned, Probe, State};
use crate::result::{Found, Load};

/// Task and method of a search.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Share of requests that must meet the objective, above 0 and below 1.
    pub share: f64,
    /// Lowest load: requests per second, or virtual users.
    pub from: f64,
    /// Highest load.
    pub to: f64,
    /// The load to begin at, between the two.
    pub first: f64,
    /// Unit of the load. Virtual users are integers.
    pub load: Load,
    /// Relative step between the loads.
    pub step: f64,
    /// Time budget in seconds; by default five minutes, or `BUDGET_ANSWERS` responses if that is
    /// longer.
    pub budget_s: Option<f64>,
    /// Minimum length of a long probe, in seconds.
    pub prove_s: f64,
}

impl Settings {
    /// Creates settings with defaults.
    pub const fn new(share: f64, from: f64) -> Self {
        let load = Load::RequestsPerSecond;
        let (to, first) = (1e7, from);
        Self { share, from, to, first, load, step: 0.1, budget_s: None, prove_s: STEADY_S }
    }
}

/// Minimum length of a probe that shows the steady state, in seconds: near saturation a queue needs
/// some ten seconds to build up.
const STEADY_S: f64 = 30.0;
/// Default time budget, in seconds and in response times.
const BUDGET_S: f64 = 300.0;
const BUDGET_ANSWERS: f64 = 180.0;
/// Number of requests without a miss that two long probes need to prove a load, times the allowed
/// share of misses: half of Wilson's `t^2` for 20 batches, plus a reserve.
const PROOF: f64 = 4.7;
/// Minimum length of a short probe, in seconds and in response times: less while no load missed the
/// objective, because the load doubles.
const PLACE_S: f64 = 4.0;
const DOUBLE_S: f64 = 1.5;
/// Minimum length of a short probe that proves a miss, in seconds: more than a pause of the target.
const LEAST_MISS_S: f64 = 2.0;
const PLACE_ANSWERS: f64 = 2.0;
/// Maximum length of a short probe, as a share of the budget.
const PLACE_SHARE: f64 = 1.0 / 15.0;
/// Length of a long probe in response times, and the length of its warm-up relative to it.
const PROVE_ANSWERS: f64 = 20.0;
const PROVE_WARMUP: f64 = 0.25;
/// Maximum number of long probes at a load.
const MOST_PROOFS: usize = 2;
/// Number of further long probes to advise if the budget is exhausted.
const MORE_PROOFS: f64 = 3.0;
/// Number of requests of a check.
const CHECK: f64 = 10.0;

/// The conclusion at a load, and its long probes.
#[derive(Clone, Debug, Default)]
struct Proof {
    batches: Vec<Counts>,
    probes: usize,
    state: State,
}

/// The failure of a target that went down.
#[derive(Clone, Debug)]
struct Stop {
    load: f64,
    since_s: f64,
    failure: Failure,
}

/// A search for the highest load that keeps an objective.
#[derive(Clone, Debug)]
pub struct Search {
    settings: Settings,
    climb: Climb,
    proofs: BTreeMap<usize, Proof>,
    probes: Vec<Probe>,
    next: Option<(usize, Planned)>,
    /// A probe whose failures require a check of the lowest load before it counts.
    suspect: Option<(usize, Phase, Measured, Stop)>,
    stopped: Option<Stop>,
    /// The probe that exceeded the budget.
    unaffordable: Option<Planned>,
    /// Shortest mean service time of any probe, in seconds; 0 before the first response.
    answer_s: f64,
}

impl Search {
    /// Creates a search that begins at the lowest load.
    pub fn new(settings: Settings) -> Self {
        let is_whole = settings.load == Load::VirtualUsers;
        let mut search = Self {
            settings,
            climb: Climb::new(settings, is_whole),
            proofs: BTreeMap::new(),
            probes: Vec::new(),
            next: None,
            suspect: None,
            stopped: None,
            unaffordable: None,
            answer_s: 0.0,
        };
        search.plan_next();
        search
    }

    /// The next probe; `None` if the search is over.
    pub fn next(&self) -> Option<Planned> {
        self.next.map(|(_, planned)| planned)
    }

    /// All probes so far.
    pub fn probes(&self) -> &[Probe] {
        &self.probes
    }

    /// Total time of all probes, in seconds.
    pub fn spent_s(&self) -> f64 {
        self.probes.iter().fold(0.0, |sum, probe| sum + probe.took_s)
    }

    /// Time budget for all probes, in seconds.
    pub fn budget_s(&self) -> f64 {
        let usual = BUDGET_S.max(BUDGET_ANSWERS * self.answer_s);
        self.settings.budget_s.unwrap_or(usual)
    }

    /// Ends the search.
    pub fn interrupt(&mut self) {
        self.next = None;
    }

    /// Adds the result of the next probe, which began `elapsed_s` after the search.
    pub fn record(&mut self, elapsed_s: f64, mut measured: Measured) {
        let Some((level, planned)) = self.next.take() else { return };
        if let Some(answer_s) = measured.answer_s {
            let is_first = self.answer_s <= 0.0;
            self.answer_s = if is_first { answer_s } else { self.answer_s.min(answer_s) };
        }
        let failure = measured.failure.take();
        self.add_probe(planned, &measured);
        match (self.suspect.take(), failure) {
            (Some((level, phase, suspect, stop)), failure) => {
                if failure.is_some_and(|failure| failure.failed * 10 >= failure.all * 9) {
                    // The load during the failures did not cause them.
                    return self.stop(stop, 2);
                }
                self.count(level, phase, suspect);
            }
            (None, Some(failure)) => {
                let offset_s = failure.since.since(Moment::EPOCH).as_secs_f64();
                let is_answer = matches!(failure.last, Outcome::Failed(_) | Outcome::Rejected(_));
                let is_mute = failure.failed == failure.all && !is_answer;
                let stop = Stop { load: planned.load, since_s: elapsed_s + offset_s, failure };
                if level == 0 && is_mute {
                    return self.stop(stop, 1);
                }
                self.suspect = Some((level, planned.phase, measured, stop));
                return self.plan(0, Phase::Check);
            }
            (None, None) => self.count(level, planned.phase, measured),
        }
        self.plan_next();
    }

    /// Ends the search for a target that is down, as its last probes show.
    fn stop(&mut self, stop: Stop, probes: usize) {
        self.stopped = Some(stop);
        let down = self.probes.iter_mut().rev().take(probes);
        down.for_each(|probe| probe.state = State::Down);
    }

    fn add_probe(&mut self, planned: Planned, measured: &Measured) {
        let counts = measured.counts();
        let kept = KeptShare::of(&measured.batches);
        self.probes.push(Probe {
            load: planned.load,
            seconds: measured.seconds,
            phase: planned.phase,
            missed: counts.missed,
            doubtful: counts.doubtful,
            requests: counts.all,
            kept: (counts.all > 0).then_some(kept),
            pooled: None,
            state: State::Unclear,
            has_ended_early: measured.has_ended_early,
            took_s: measured.took_s,
            figures: measured.figures,
        });
    }

    /// Adds a probe's counts to its load.
    fn count(&mut self, level: usize, phase: Phase, measured: Measured) {
        let share = self.settings.share;
        if phase == Phase::Place {
            // The second half is nearer to the steady state.
            let late = &measured.batches[measured.batches.len() / 2..];
            let (kept, state) = KeptShare::judge(late, share);
            // The first probe may meet a target that is not warm yet.
            let can_prove = measured.seconds >= LEAST_MISS_S && self.probes.len() > 1;
            let is_missed = can_prove && state == State::Missed;
            if is_missed {
                self.conclude(level, phase, kept, state);
            }
            return self.place(level, is_missed, measured.answered_per_s);
        }
        let proof = self.proofs.entry(level).or_default();
        proof.batches.extend(measured.batches);
        proof.probes += 1;
        let (pooled, state) = KeptShare::judge(&proof.batches, share);
        self.conclude(level, phase, pooled, state);
    }

    /// Stores the conclusion at a load with its last probe of this phase.
    fn conclude(&mut self, level: usize, phase: Phase, pooled: KeptShare, state: State) {
        self.proofs.entry(level).or_default().state = state;
        if let Some(probe) = self.probes.iter_mut().rfind(|probe| probe.phase == phase) {
            (probe.pooled, probe.state) = (Some(pooled), state);
        }
    }

    /// Continues the climb with the counts of the short probes at a load. The lowest load gets two
    /// tries, as does a load without requests or with misses that the generator may have caused.
    fn place(&mut self, level: usize, is_missed: bool, answered_per_s: Option<f64>) {
        let load = self.climb.loads[level];
        let tries = self.short(load).count();
        let counts = Counts::sum(self.short(load).map(Probe::counts));
        let allowed = (1.0 - self.settings.share) * counts.all as f64;
        // Too high a start costs little, because a probe with a clear miss ends early.
        // Long probes prove a load only if it is met with every miss counted.
        let holds = |misses: u64| counts.all > 0 && misses as f64 <= allowed + allowed.sqrt();
        let has_held = !is_missed && holds(counts.missed);
        let is_clear = level > 0 && counts.all > 0 && !holds(counts.certain_misses());
        // More doubtful misses than others: the generator is unable to produce the load.
        if has_held || is_missed || is_clear || tries > 1 || 2 * counts.doubtful > counts.all {
            let is_rate = self.settings.load == Load::RequestsPerSecond;
            self.climb.record(has_held, answered_per_s.filter(|_| is_rate));
        }
    }

    fn plan_next(&mut self) {
        let place = self.climb.next.filter(|_| self.has_time_to_place());
        let place = place.or_else(|| self.unproven_failure()).map(|level| (level, Phase::Place));
        if let Some((level, phase)) = place.or_else(|| Some((self.needed()?, Phase::Prove))) {
            self.plan(level, phase);
        }
    }

    /// Whether another short probe leaves the time for a long one at the load that held, or there
    /// is none for it anyway.
    fn has_time_to_place(&self) -> bool {
        let Some(held) = self.climb.held else { return true };
        let proof = self.planned(self.climb.loads[held], Phase::Prove);
        let short_s = self.probes.last().map_or(0.0, |probe| probe.took_s);
        let (left_s, proof_s) = (self.budget_s() - self.spent_s(), self.cost_s(&proof));
        proof_s > left_s || short_s + proof_s <= left_s
    }

    /// The time of a probe with its warm-up, drain and rest, in seconds.
    fn cost_s(&self, planned: &Planned) -> f64 {
        planned.seconds + planned.warmup_s + 2.0 + (2.0 * self.answer_s).clamp(1.0, 10.0)
    }

    fn plan(&mut self, level: usize, phase: Phase) {
        let planned = self.planned(self.climb.loads[level], phase);
        let is_affordable = self.spent_s() + self.cost_s(&planned) <= self.budget_s();
        // A check is short and worth exceeding the budget.
        if is_affordable || phase == Phase::Check {
            self.next = Some((level, planned));
        } else {
            self.unaffordable = Some(planned);
        }
    }

    /// A probe at any load, which need not belong to the search.
    pub fn planned(&self, load: f64, phase: Phase) -> Planned {
        let least_s = PLACE_ANSWERS * self.answer_s;
        let per_s = match self.settings.load {
            Load::RequestsPerSecond => load,
            Load::VirtualUsers => load / self.answer_s.max(0.001),
        };
        let allowed = 1.0 - self.settings.share;
        let proof_s = (PROOF / allowed).ceil() / per_s;
        let least_place_s = if self.climb.failed.is_some() { PLACE_S } else { DOUBLE_S };
        let is_again = self.short(load).next().is_some();
        let least_place_s = if is_again { 2.0 * PLACE_S } else { least_place_s };
        let seconds = match phase {
            Phase::Place => (proof_s / 2.0).min(self.budget_s() * PLACE_SHARE).max(least_place_s),
            Phase::Prove => proof_s.max(self.settings.prove_s).max(PROVE_ANSWERS * self.answer_s),
            Phase::Check => CHECK / per_s,
        };
        let seconds = seconds.max(least_s).max(1.0);
        let warmup_s = match phase {
            Phase::Prove => seconds * PROVE_WARMUP,
            Phase::Place | Phase::Check => least_s.max(1.0),
        };
        let misses = allowed * per_s * seconds;
        #[expect(clippy::cast_possible_truncation, reason = "a count")]
        let most_misses = (2.0 * misses + 3.0 * misses.sqrt() + 3.0) as u64;
        Planned { load, warmup_s, seconds, phase, most_misses }
    }

    /// The lowest level that failed, if its probe proved nothing and a lower level is kept.
    fn unproven_failure(&self) -> Option<usize> {
        let failed = self.climb.failed?;
        let is_open = matches!(self.ends(), (Some(kept), None) if kept < failed);
        (is_open && self.short(self.climb.loads[failed]).count() == 1).then_some(failed)
    }

    /// The short probes at a load.
    fn short(&self, load: f64) -> impl Iterator<Item = &Probe> {
        self.probes.iter().filter(move |one| one.phase == Phase::Place && same(one.load, load))
    }

    /// Level of the next long probe; `None` if both ends are proven, or cannot be.
    fn needed(&self) -> Option<usize> {
        let may_be_repeated = |level: usize| {
            self.proofs
                .get(&level)
                .is_none_or(|proof| proof.probes < MOST_PROOFS && proof.state == State::Unclear)
        };
        let long = self.proofs.iter().filter(|(_, proof)| proof.probes > 0);
        let long: Vec<usize> = long.map(|(level, _)| *level).collect();
        let (Some(&lowest), Some(&highest)) = (long.first(), long.last()) else {
            return self.climb.held.or(Some(0)).filter(|level| may_be_repeated(*level));
        };
        let top = &self.proofs[&highest];
        let (kept, missed) = self.ends();
        let Some(kept) = kept else {
            let is_again =
                may_be_repeated(lowest) && (lowest == 0 || self.would_be(lowest, State::Kept));
            // The last affordable probe goes down far enough to be kept.
            let proof_s = self.cost_s(&self.planned(self.climb.loads[lowest], Phase::Prove));
            let is_last = self.spent_s() + 2.0 * proof_s > self.budget_s();
            let least = if is_last { self.climb.coarse } else { 1 };
            let down = if is_again { 0 } else { stride(long.len()).max(least) };
            return (lowest > 0 || is_again).then_some(lowest.saturating_sub(down));
        };
        let top_level = self.climb.loads.len() - 1;
        // More probes at a load do not make the generator faster.
        let is_doubtful = KeptShare::is_doubtful(&top.batches, self.settings.share);
        if missed.is_none() && highest < top_level && !is_doubtful {
            let tried = self.proofs.range(kept..).count().max(self.levels(State::Kept).count());
            if highest > kept && may_be_repeated(highest) && self.would_be(highest, State::Missed) {
                return Some(highest);
            }
            let up = highest + stride(tried);
            let failed = self.climb.failed.filter(|failed| *failed > highest);
            return Some(failed.map_or(up, |failed| failed.min(up)).min(top_level));
        }
        if missed.is_none() && highest > kept && may_be_repeated(highest) && !is_doubtful {
            return Some(highest);
        }
        let between = kept + 1..missed.unwrap_or(kept);
        let untried = between.clone().filter(|level| !self.proofs.contains_key(level));
        // The one farthest from any conclusion.
        let untried = untried
            .max_by_key(|level| self.proofs.keys().map(|tried| tried.abs_diff(*level)).min());
        let once = Some(kept).filter(|kept| self.proofs[kept].probes < MOST_PROOFS);
        untried.or(once).or_else(|| between.clone().find(|level| may_be_repeated(*level)))
    }

    /// Whether the same result of another probe would prove this state.
    fn would_be(&self, level: usize, state: State) -> bool {
        let batches = &self.proofs[&level].batches;
        KeptShare::judge(&[batches.as_slice(), batches].concat(), self.settings.share).1 == state
    }

    /// Levels with this proven state, in ascending order.
    fn levels(&self, state: State) -> impl DoubleEndedIterator<Item = usize> {
        let proven = self.proofs.iter().filter(move |(_, proof)| proof.state == state);
        proven.map(|(level, _)| *level)
    }

    /// The highest level that met the objective below all misses, and the lowest that missed it
    /// above all levels that met it.
    fn ends(&self) -> (Option<usize>, Option<usize>) {
        let (kept, missed) = (|| self.levels(State::Kept), || self.levels(State::Missed));
        let (most_kept, least_missed) = (kept().next_back(), missed().next());
        (
            kept().rfind(|kept| least_missed.is_none_or(|missed| *kept < missed)),
            missed().find(|missed| most_kept.is_none_or(|kept| *missed > kept)),
        )
    }

    /// The capacity proven so far.
    pub fn found(&self) -> Found {
        let (kept, missed) = self.ends();
        let load = |level: Option<usize>| Some(self.climb.loads[level?]);
        let half = (1.0 + self.settings.step).sqrt();
        let is_whole = self.settings.load == Load::VirtualUsers;
        let proofs = self.probes.iter().filter(|probe| {
            probe.phase == Phase::Prove
                && kept.is_some_and(|level| same(probe.load, self.climb.loads[level]))
        });
        let kept_s: f64 = proofs.map(|probe| probe.seconds).sum();
        let kept_only_s = (kept_s > 0.0 && kept_s < STEADY_S).then_some(kept_s);
        Found { kept_only_s, ..Found::new(load(kept), load(missed), half, is_whole) }
    }

    /// Whether the lowest load was proven to miss the objective.
    pub(crate) fn is_lowest_missed(&self) -> bool {
        self.levels(State::Missed).next() == Some(0)
    }

    /// Findings on the end of the search, and on open ends.
    pub fn findings(&self) -> Vec<Finding> {
        let found = self.found();
        let stopped = self.stopped.as_ref().map(|stop| self.target_down(stop));
        let is_between = found.kept.is_some() && found.missed.is_some();
        let is_open = stopped.is_none() && (!is_between || found.kept_only_s.is_some());
        stopped.into_iter().chain(self.capacity_open(found).filter(|_| is_open)).collect()
    }

    fn target_down(&self, stop: &Stop) -> Finding {
        let Failure { failed, all, last, .. } = &stop.failure;
        let class = match last {
            Outcome::Failed(class) => class.words().to_owned(),
            Outcome::Rejected(status) => format!("status {status}"),
            _ => "no response".to_owned(),
        };
        let checked = self.probes.last().filter(|probe| probe.phase == Phase::Check);
        Finding::new(605)
            .with("failed", failed)
            .with("all", all)
            .with("load", self.settings.load.text(stop.load))
            .with("since", seconds(stop.since_s))
            .with_some("lowest", checked.map(|check| self.settings.load.text(check.load)))
            .with("class", class)
    }

    /// The reason for an open end; `None` if the search was interrupted.
    fn capacity_open(&self, found: Found) -> Option<Finding> {
        let text = |load: f64| self.settings.load.text(load);
        let finding = Finding::new(604).with("capacity", found.text(text));
        let loads = &self.climb.loads;
        if let (Some(load), Some(only)) = (found.kept, found.kept_only_s) {
            let finding = finding.with("kept", text(load)).with("only", seconds(only.round()));
            return Some(finding.with("steady", seconds(STEADY_S)));
        }
        if let Some(next) = self.unaffordable {
            let total = next.seconds + next.warmup_s;
            let needed = ((self.spent_s() + MORE_PROOFS * total) / 60.0).ceil();
            let finding = finding.with("next", seconds(total)).with("at", text(next.load));
            let finding = finding.with("needed", format!("{needed:.0}m"));
            return Some(finding.with("budget", seconds(self.budget_s())));
        }
        if self.is_lowest_missed() && found.kept.is_none() {
            return Some(finding.with("lowest", text(loads[0])));
        }
        if let Some(&highest) = loads.last().filter(|highest| found.kept == Some(**highest)) {
            return Some(finding.with("highest", text(highest)));
        }
        let (level, proof) =
            self.proofs.iter().rfind(|(_, proof)| proof.state == State::Unclear)?;
        let (counts, at) = (Counts::sum(proof.batches.iter().copied()), text(loads[*level]));
        if KeptShare::is_doubtful(&proof.batches, self.settings.share) {
            return Some(finding.with("doubtful", counts.doubtful).with("late", at));
        }
        let finding = finding.with("missed", counts.missed).with("all", counts.all);
        Some(finding.with("share", digits(self.settings.share * 1e2)).with("unclear", at))
    }
}

/// Whether two loads are the same level of the grid.
const fn same(load: f64, other: f64) -> bool {
    load.to_bits() == other.to_bits()
}

// Doubling and bisection: finds the lowest of ascending loads that fails.

/// Factor from which a load counts as doubled, because loads are steps of a grid.
const DOUBLED: f64 = 1.9;

/// Relative distance of loads that short probes tell apart.
const COARSE: f64 = 0.1;
/// Number of levels that long probes move after so many tries in the same direction.
fn stride(tries: usize) -> usize {
    const MOST_DOUBLED: usize = 3;
    1 << tries.saturating_sub(1).min(MOST_DOUBLED)
}

/// A search over ascending loads: doubles until one fails, then bisects between the last success
/// and the first failure.
#[derive(Clone, Debug)]
struct Climb {
    loads: Vec<f64>,
    held: Option<usize>,
    failed: Option<usize>,
    next: Option<usize>,
    /// The level that the rate of good responses to an overload suggests.
    place: Option<usize>,
    /// Number of levels in `COARSE`.
    coarse: usize,
}

impl Climb {
    /// Each load is a relative step above the previous one, and an integer if `is_whole`.
    fn new(settings: Settings, is_whole: bool) -> Self {
        let Settings { from, to, first, step, .. } = settings;
        let mut loads = vec![from];
        let (mut last, mut exact) = (from, from);
        while last < to {
            exact *= 1.0 + step;
            if is_whole {
                exact = exact.round().max(last + 1.0);
            }
            last = significant(exact).min(to);
            loads.push(last);
        }
        let coarse = loads.partition_point(|load| *load < from * (1.0 + COARSE)).max(1);
        let (held, failed, place) = (None, None, None);
        let next = Some(loads.partition_point(|load| *load < first).min(loads.len() - 1));
        Self { loads, held, failed, next, place, coarse }
    }

    /// Records whether the next load held, with the rate of good responses to it.
    fn record(&mut self, has_held: bool, answered_per_s: Option<f64>) {
        let Some(at) = self.next else { return };
        *(if has_held { &mut self.held } else { &mut self.failed }) = Some(at);
        if !has_held {
            let above =
                answered_per_s.map(|per_s| self.loads.partition_point(|load| *load <= per_s));
            // At a rate near the load it is another reason than the capacity.
            self.place = above.map_or(self.place, |above| above.checked_sub(1));
            self.place = self.place.filter(|place| place + self.coarse <= at);
        }
        self.next = match (self.held, self.failed) {
            (Some(held), None) => self.doubled(held),
            (Some(held), Some(failed)) => {
                // A place that held is checked well above it: closer, short probes are misleading.
                let place = self.place.map(|place| place.max(held));
                let enough = if place == Some(held) { 2 * self.coarse } else { self.coarse };
                let next = match place {
                    Some(place) if held < place && place < failed => place,
                    Some(place) if place == held => held + enough,
                    _ => usize::midpoint(held, failed),
                };
                (failed - held > enough).then_some(next)
            }
            (None, Some(failed)) if failed > 0 => Some(self.place.unwrap_or(failed / 2)),
            _ => None,
        };
    }

    fn doubled(&self, at: usize) -> Option<usize> {
        let last = self.loads.len() - 1;
        let least = self.loads[at] * DOUBLED;
        (at < last).then(|| self.loads.partition_point(|load| *load < least).clamp(at + 1, last))
    }
}

/// Rounds to four significant digits.
fn significant(load: f64) -> f64 {
    let scale = 10f64.powf(3.0 - load.log10().floor());
    (load * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    fn climb(from: f64, to: f64, first: f64, step: f64) -> Climb {
        let settings = Settings { to, first, step, ..Settings::new(0.99, from) };
        Climb::new(settings, from < 2.0)
    }

    fn tried(mut climb: Climb, first_failing: f64) -> (Vec<f64>, Option<f64>) {
        let mut tried = Vec::new();
        while let Some(at) = climb.next {
            tried.push(climb.loads[at]);
            climb.record(climb.loads[at] < first_failing, None);
        }
        (tried, climb.held.map(|held| climb.loads[held]))
    }

    #[test]
    fn loads_double_and_are_then_bisected() {
        let rates = || climb(10.0, 1e7, 10.0, 0.1);
        let (loads, held) = tried(rates(), 33.0);
        assert_eq!(loads[..3], [10.0, 19.49, 37.97]);
        assert_eq!((loads.len(), held), (6, Some(31.38)));
        assert_eq!(tried(rates(), 5.0), (vec![10.0], None));
        let (to_the_top, held) = tried(climb(10.0, 50.0, 10.0, 0.1), 1e9);
        assert_eq!((to_the_top, held), (vec![10.0, 19.49, 37.97, 50.0], Some(50.0)));
        // Users are integers, and each number is a level while the step is below one.
        assert_eq!(tried(climb(1.0, 64.0, 1.0, 0.1), 6.0).1, Some(5.0));
        // A start in the middle costs a bisection if it fails.
        let from_80 = |first_failing| tried(climb(10.0, 1e7, 80.0, 0.1), first_failing);
        assert_eq!(from_80(170.0).0[..3], [81.4, 158.6, 309.1]);
        assert_eq!(
            (from_80(33.0).0[..2].to_vec(), from_80(33.0).1),
            (vec![81.4, 28.53], Some(31.38))
        );
        assert_eq!(from_80(5.0).1, None);
    }

    /// An overloaded target answers as many requests as it can: 57 of 101 per second.
    #[test]
    fn the_rate_of_good_responses_shows_the_place() {
        let mut climb = climb(20.0, 1e7, 100.0, 0.034);
        let mut tried = Vec::new();
        while let Some(at) = climb.next {
            let load = climb.loads[at];
            tried.push(load);
            climb.record(load <= 57.0, Some(load.min(57.0)));
        }
        assert_eq!(tried, [102.9, 56.39, 68.91]);
        assert_eq!(climb.held.map(|held| climb.loads[held]), Some(56.39));
    }
}
