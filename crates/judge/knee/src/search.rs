//! The search: which load to try next, and when enough is known.
//!
//! 1. **Floor**: the lowest load must keep the objective.
//! 2. **Bracket**: steps of 1.6 up to a load that misses it.
//! 3. **Narrow**: bisections in the logarithm of the load; further ones where the objective breaks
//!    at once, as at a rate limit.
//! 4. **Estimate**: longer probes on both sides of the best guess, in random order, until the
//!    interval is as narrow as wanted or the time is up.
//! 5. **Confirm**: a long probe at the lower end must keep the objective.

use plimsoll_measure::{Rng, Seed};

use crate::kept::{Counts, KeptShare, State};
use crate::regression::{LEAST_PROBES, Point, guess, logit, root};
use crate::result::{Confirmed, Found, Kind, Phase, Probe, ProbeFigures};

/// What is searched, and how.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Share of the requests that must keep the objective, above 0 and below 1.
    pub share: f64,
    /// The lowest load: requests per second, or virtual users.
    pub from: f64,
    /// The highest load that is tried.
    pub to: f64,
    /// Whether loads are whole numbers, as virtual users are.
    pub whole: bool,
    /// Relative width of the interval at which the search ends.
    pub precision: f64,
    /// Seconds for everything, the confirmation included.
    pub budget_s: f64,
    /// Length of the confirmation, in seconds.
    pub confirm_s: f64,
    /// Seed of the order and the places of the probes.
    pub seed: u64,
}

impl Settings {
    /// The defaults: 99 % from 10 per second on, to 4 % within five minutes.
    pub const fn new(share: f64, from: f64) -> Self {
        Self {
            share,
            from,
            to: 1e7,
            whole: false,
            precision: 0.04,
            budget_s: 300.0,
            confirm_s: 60.0,
            seed: 1,
        }
    }
}

/// A probe to be made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Planned {
    /// Requests per second, or virtual users.
    pub load: f64,
    /// Length of the part that counts, in seconds.
    pub seconds: f64,
    /// What it is for.
    pub phase: Phase,
}

impl Planned {
    /// Whether it may end as soon as it has missed: only where its counts are not pooled.
    pub const fn may_end_early(&self) -> bool {
        matches!(self.phase, Phase::Floor | Phase::Bracket | Phase::Narrow)
    }
}

/// What a probe measured.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Counts of short batches, in their order in time.
    pub batches: Vec<Counts>,
    /// Why the generator could not make the load, if so.
    pub invalid: Option<String>,
    /// Why it ended before its time, if so.
    pub ended: Option<String>,
    /// Length of the part that counts, in seconds.
    pub seconds: f64,
    /// Seconds that it took in all, with warm-up, drain and rest.
    pub took_s: f64,
    /// Further figures, for the reader.
    pub figures: ProbeFigures,
}

/// Factor between two steps of the bracket.
const STEP: f64 = 1.6;
/// Bisections before an estimate.
const BISECTIONS: u32 = 3;
/// A bracket of a cliff is no wider than this, relative to the load.
const CLIFF: f64 = 0.01;
/// Logits from the objective, on both sides of a bracket, from which on it is taken for a cliff.
const STEEP: f64 = 2.0;
/// Probes on each side of a cliff that must agree.
const CLIFF_REPEATS: usize = 2;
/// Probes of the estimate lie so far from the guess that the share of misses differs by about so
/// many logits: nearer ones show no slope, further ones leave the line.
const SPREAD_LOGITS: f64 = 2.0;
/// The least and the most of that distance, in logarithms, and the one while no slope is known.
const SPREAD: (f64, f64, f64) = (0.02, 0.3, 0.05);
/// The least distance where a load separates kept from missed: its ends are then known to 1 %.
const LEAST_SPREAD: f64 = 0.005;
/// The nearest of them, as a share of the distance.
const NEAREST: f64 = 0.35;
/// Probes within so many of these distances take part in the regression.
const NEAR: f64 = 2.5;
/// The confirmation is so much of the interval's width below its lower end.
const CONFIRM_BELOW: f64 = 0.25;
/// Times that a confirmation may fail.
const CONFIRMATIONS: u32 = 3;
/// Requests without a miss, times the share of misses, that prove an objective kept: `t^2` of some
/// 15 batches.
const PROOF: f64 = 4.7;

/// A search for the highest load that keeps an objective.
#[derive(Clone, Debug)]
pub struct Search {
    settings: Settings,
    rng: Rng,
    probes: Vec<Probe>,
    /// Highest load that was kept, below all that were missed.
    lower: Option<f64>,
    /// Lowest load that was missed.
    upper: Option<f64>,
    next: Option<Planned>,
    /// The other half of a pair of the estimate.
    pair: Option<f64>,
    bisections: u32,
    centre: f64,
    /// How far from the centre its probes are, in logarithms.
    spread: f64,
    found: Option<Found>,
    failed_confirmations: u32,
}

impl Search {
    /// A search that begins at the lowest load.
    pub fn new(settings: Settings) -> Self {
        let mut search = Self {
            settings,
            rng: Seed(settings.seed).rng("knee", 0),
            probes: Vec::new(),
            lower: None,
            upper: None,
            next: None,
            pair: None,
            bisections: 0,
            centre: settings.from,
            spread: SPREAD.2,
            found: None,
            failed_confirmations: 0,
        };
        search.plan(settings.from, Phase::Floor);
        search
    }

    /// The next probe; `None` if the search is over.
    pub const fn next(&self) -> Option<Planned> {
        self.next
    }

    /// The probes so far.
    pub fn probes(&self) -> &[Probe] {
        &self.probes
    }

    /// Seconds that all probes took.
    pub fn spent_s(&self) -> f64 {
        self.probes.iter().fold(0.0, |sum, probe| sum + probe.took_s)
    }

    /// Whether a probe that goes on misses the objective plainly, by what it has so far: with twice
    /// the misses that are allowed. It is looked at again and again, and one burst of misses is not
    /// to exclude a load that keeps the objective for longer.
    pub fn is_missed(&self, batches: &[Counts]) -> bool {
        const LEAST_BATCHES: usize = 6;
        let plainly = 1.0 - 2.0 * (1.0 - self.settings.share);
        batches.len() >= LEAST_BATCHES
            && KeptShare::judge(batches, plainly.max(0.01)).1 == State::Missed
    }

    /// Ends the search: what is known now.
    pub fn interrupt(&mut self) {
        self.next = None;
        if self.found.is_none() {
            self.found = Some(self.bracket("the search was interrupted"));
        }
    }

    /// What was found; `None` while the search goes on.
    pub fn found(&self) -> Option<&Found> {
        self.found.as_ref().filter(|_| self.next.is_none())
    }

    /// Adds the result of the probe that was next.
    pub fn record(&mut self, measured: Measured) {
        let Some(planned) = self.next.take() else { return };
        let counts = Counts::sum(measured.batches.iter().copied());
        let (kept, state) = KeptShare::judge(&measured.batches, self.settings.share);
        // What was kept was kept in spite of a generator that could not keep up.
        let state =
            if measured.invalid.is_some() && state != State::Kept { State::Invalid } else { state };
        let doubt = (state == State::Invalid).then(|| {
            let (doubtful, missed) = (counts.doubtful, counts.missed);
            format!("the generator may have caused {doubtful} of {missed} misses")
        });
        self.probes.push(Probe {
            load: planned.load,
            seconds: measured.seconds,
            phase: planned.phase,
            missed: counts.missed,
            doubtful: counts.doubtful,
            requests: counts.all,
            kept: (counts.all > 0).then_some(kept),
            state,
            invalid: measured.invalid.or(doubt),
            ended: measured.ended,
            took_s: measured.took_s,
            figures: measured.figures,
        });
        if state == State::Invalid {
            return self.invalid(planned);
        }
        match planned.phase {
            Phase::Floor | Phase::Bracket => self.after_bracket(planned, state),
            Phase::Narrow => self.after_narrow(planned, state),
            Phase::Cliff => self.after_cliff(state),
            Phase::Estimate => self.after_estimate(),
            Phase::Confirm => self.after_confirm(planned, state, kept),
        }
        self.check_time();
    }

    /// Ends the way up to an estimate when its next probe and the confirmation would not fit in the
    /// budget any more. Before a load missed the objective there is nothing to confirm: the time
    /// of the confirmation serves the way up. An estimate looks after itself.
    fn check_time(&mut self) {
        let Some(next) = self.next else { return };
        if matches!(next.phase, Phase::Estimate | Phase::Confirm)
            || self.has_time_for(next.seconds + OVERHEAD_S)
            || self.upper.is_none() && self.fits(next.seconds)
        {
            return;
        }
        self.next = None;
        if self.upper.is_none() {
            self.found = Some(self.at_least("the time was up before a load missed it"));
        } else {
            self.confirm(self.bracket("the time was up before an estimate"));
        }
    }

    /// A probe of a generator that could not keep up is made once more. Then the generator is the
    /// limit.
    fn invalid(&mut self, planned: Planned) {
        if self
            .probes
            .iter()
            .filter(|probe: &&Probe| probe.load >= planned.load && probe.state == State::Invalid)
            .count()
            < 2
        {
            self.next = Some(planned);
            return;
        }
        let why = self.probes.last().and_then(|probe| probe.invalid.clone()).unwrap_or_default();
        // A confirmation that shows nothing takes nothing back.
        if let (Phase::Confirm, Some(found)) = (planned.phase, &mut self.found) {
            found.why = Some(format!("not confirmed at {:.0}: {why}", planned.load));
            return;
        }
        let why = format!("the generator is the limit from {:.0} on: {why}", planned.load);
        self.found = Some(self.at_least(&why));
    }

    /// What the proven probes say. Without a proven load: the highest that the way up passed, none
    /// above it missing.
    fn at_least(&self, why: &str) -> Found {
        let proven = self.bracket(why);
        let is_any_missed = self.probes.iter().any(|probe| probe.state == State::Missed);
        let low = proven.low.or(self.lower);
        let kind = match (low, proven.high) {
            (Some(_), None) if !is_any_missed => Kind::AtLeast,
            (Some(_), Some(_)) => Kind::Bracket,
            _ => Kind::Unknown,
        };
        Found { kind, load: low, low, ..proven }
    }

    fn after_bracket(&mut self, planned: Planned, state: State) {
        let tried = self.at(planned.load).count();
        let counts = self.counts_at(planned.load);
        // Slow answers of few users prove nothing in any time there is; without a miss go on.
        let is_flawless = self.settings.whole && counts.all > 0 && counts.missed == 0;
        if state == State::Unclear && tried < 2 && !is_flawless {
            return self.plan(planned.load, planned.phase);
        }
        if state == State::Missed || (state == State::Unclear && !self.leans_to_kept(planned.load))
        {
            self.upper = Some(planned.load);
            if self.lower.is_none() && state == State::Unclear {
                let Counts { missed, all, .. } = counts;
                let why = format!(
                    "at the lowest load {missed} of {all} requests missed the objective, too close to the share that it allows to tell; try a lower --from, a looser --slo, or a longer --budget, which makes probes longer"
                );
                self.found = Some(Found { why: Some(why), ..Found::unknown() });
                return;
            }
            if self.lower.is_none() {
                self.found = Some(Found {
                    kind: Kind::NotEven,
                    load: None,
                    low: None,
                    high: Some(planned.load),
                    why: Some(
                        "the lowest load misses the objective; try a lower --from".to_owned(),
                    ),
                    confirmed: None,
                });
                return;
            }
            return self.bisect();
        }
        self.lower = Some(planned.load);
        if planned.load >= self.settings.to {
            self.found = Some(self.at_least("the highest load that was to be tried keeps it"));
            return;
        }
        self.plan((planned.load * STEP).min(self.settings.to), Phase::Bracket);
    }

    /// The probes at a load.
    fn at(&self, load: f64) -> impl Iterator<Item = &Probe> {
        self.probes.iter().filter(move |probe| same(probe.load, load))
    }

    fn counts_at(&self, load: f64) -> Counts {
        Counts::sum(self.at(load).map(Probe::counts))
    }

    /// Whether the probes at a load keep the objective by their counts alone.
    fn leans_to_kept(&self, load: f64) -> bool {
        let counts = self.counts_at(load);
        counts.missed as f64 <= counts.all as f64 * (1.0 - self.settings.share)
    }

    fn bounds(&self) -> (f64, f64) {
        let lower = self.lower.unwrap_or(self.settings.from);
        (lower, self.upper.unwrap_or(lower * STEP))
    }

    fn bisect(&mut self) {
        let (lower, upper) = self.bounds();
        let is_narrow =
            upper / lower - 1.0 <= CLIFF || (self.settings.whole && upper - lower <= 1.0);
        if is_narrow {
            return self.check_cliff();
        }
        if self.bisections >= BISECTIONS && !self.is_steep(lower, upper) {
            return self.estimate((lower * upper).sqrt());
        }
        self.bisections += 1;
        self.plan((lower * upper).sqrt(), Phase::Narrow);
    }

    fn after_narrow(&mut self, planned: Planned, state: State) {
        match state {
            State::Kept => self.lower = Some(planned.load),
            State::Missed => self.upper = Some(planned.load),
            _ => return self.estimate(planned.load),
        }
        self.bisect();
    }

    /// Whether the objective breaks at once between two loads.
    fn is_steep(&self, lower: f64, upper: f64) -> bool {
        let [lower, upper] = [lower, upper].map(|load| {
            let counts = self.counts_at(load);
            let missed = (counts.missed as f64 + 0.5) / (counts.all as f64 + 1.0);
            logit(missed) - logit(1.0 - self.settings.share)
        });
        lower < -STEEP && upper > STEEP
    }

    /// A bracket of a cliff holds if both its ends do it again.
    fn check_cliff(&mut self) {
        let (lower, upper) = self.bounds();
        let [of_lower, of_upper] = [lower, upper]
            .map(|load| self.at(load).filter(|probe| probe.phase == Phase::Cliff).count());
        if of_lower >= CLIFF_REPEATS && of_upper >= CLIFF_REPEATS {
            let why = "the objective breaks at once between these two".to_owned();
            let found = Found {
                kind: Kind::Bracket,
                load: Some((lower * upper).sqrt()),
                low: Some(lower),
                high: Some(upper),
                why: Some(why),
                confirmed: None,
            };
            return self.confirm(found);
        }
        self.plan(if of_lower <= of_upper { lower } else { upper }, Phase::Cliff);
    }

    fn after_cliff(&mut self, state: State) {
        let (lower, upper) = self.bounds();
        let load = self.probes.last().map_or(lower, |probe| probe.load);
        let wanted = if same(load, lower) { State::Kept } else { State::Missed };
        if state == wanted {
            self.check_cliff();
        } else {
            self.estimate((lower * upper).sqrt());
        }
    }

    fn estimate(&mut self, centre: f64) {
        self.centre = centre;
        self.fit_spread();
        if self.has_time_for_pair() {
            self.next_pair();
        } else {
            self.confirm(self.bracket("the time was up before an estimate"));
        }
    }

    /// The distance of the probes by the slope so far.
    fn fit_spread(&mut self) {
        const FAR: f64 = 0.5;
        if let Some((_, slope)) = guess(&self.within(FAR), 1.0 - self.settings.share) {
            self.spread = (SPREAD_LOGITS / slope).clamp(SPREAD.0, SPREAD.1);
        }
    }

    /// Two loads on both sides of the centre, in random order.
    fn next_pair(&mut self) {
        let [below, above] = [-1.0, 1.0].map(|side| {
            let away = self.spread * self.rng.uniform().mul_add(1.0 - NEAREST, NEAREST);
            self.centre * (side * away).exp()
        });
        let (first, second) =
            if self.rng.uniform() < 0.5 { (below, above) } else { (above, below) };
        self.pair = Some(second);
        self.plan(first, Phase::Estimate);
    }

    fn after_estimate(&mut self) {
        if let Some(second) = self.pair.take() {
            return self.plan(second, Phase::Estimate);
        }
        let missed = 1.0 - self.settings.share;
        let near = self.within(self.spread * NEAR);
        let proven = self.bracket("");
        let proven = proven.low.zip(proven.high);
        let best = root(&near, missed);
        let step = self.spread.exp();
        self.centre = match (best, guess(&near, missed), proven) {
            (Some(root), ..) => root.x.exp(),
            // Not far beyond what was tried.
            (None, Some((x, _)), _) => x.exp().clamp(self.centre / step, self.centre * step),
            // A load separates kept from missed, as a rate limit does.
            (None, None, Some((low, high))) => (low * high).sqrt(),
            (None, None, None) if self.mostly_missed(&near) => self.centre / step,
            (None, None, None) => self.centre * step,
        };
        self.fit_spread();
        if let (None, Some((low, high))) = (guess(&near, missed), proven) {
            self.spread = self.spread.min((high / low).ln() / 2.0).max(LEAST_SPREAD);
        }
        let probes = self.probes.iter().filter(|probe| probe.phase == Phase::Estimate).count();
        let is_narrow = best.is_some_and(|root| 2.0 * root.half <= self.settings.precision);
        if !self.has_time_for_pair() || (is_narrow && probes >= LEAST_PROBES) {
            let found = best.map_or_else(
                || {
                    self.bracket(
                        "no interval: the share of misses does not grow clearly with the load",
                    )
                },
                |root| Found {
                    kind: Kind::Interval,
                    load: Some(root.x.exp()),
                    low: Some((root.x - root.half).exp()),
                    high: Some((root.x + root.half).exp()),
                    why: self.too_wide(root.half),
                    confirmed: None,
                },
            );
            return self.confirm(found);
        }
        self.next_pair();
    }

    /// How much longer a search would have to be for the interval that was asked for, whose half
    /// width falls with the square root of the time of the longer probes.
    fn too_wide(&self, half: f64) -> Option<String> {
        let asked = self.settings.precision / 2.0;
        let estimates = self.probes.iter().filter(|probe| probe.phase == Phase::Estimate);
        let spent: f64 = estimates.map(|probe| probe.took_s).sum();
        let more = spent * ((half / asked).powi(2) - 1.0);
        let minutes = ((self.settings.budget_s + more) / 60.0).ceil();
        (half > asked).then(|| {
            let [half, asked] = [half, asked].map(|share| share * 1e2);
            format!("±{half:.1} % in this time; ±{asked:.1} % needs about {minutes:.0} minutes")
        })
    }

    fn mostly_missed(&self, points: &[Point]) -> bool {
        let counts = Counts::sum(points.iter().map(|point| point.counts));
        counts.missed as f64 > counts.all as f64 * (1.0 - self.settings.share)
    }

    /// Probes of their full length within a distance of the centre, in logarithms.
    fn within(&self, distance: f64) -> Vec<Point> {
        self.probes
            .iter()
            .filter(|probe: &&Probe| {
                (probe.load / self.centre).ln().abs() <= distance
                    && probe.state != State::Invalid
                    && probe.ended.is_none()
                    && probe.requests > 0
            })
            .map(|probe| Point { x: probe.load.ln(), counts: probe.counts() })
            .collect()
    }

    fn has_time_for_pair(&self) -> bool {
        self.has_time_for(2.0 * (self.length(self.centre, Phase::Estimate) + OVERHEAD_S))
    }

    /// Whether so many seconds leave time for the confirmation.
    fn has_time_for(&self, seconds: f64) -> bool {
        self.fits(seconds + self.settings.confirm_s)
    }

    /// Whether so many seconds are left.
    fn fits(&self, seconds: f64) -> bool {
        self.spent_s() + seconds + OVERHEAD_S <= self.settings.budget_s
    }

    /// What the proven probes say: all up to the lower end kept the objective, all from the upper
    /// end on missed it. Probes that contradict each other widen it.
    fn bracket(&self, why: &str) -> Found {
        let judged = || self.probes.iter().filter(|probe| probe.state != State::Invalid);
        let of = |state| judged().filter(move |probe| probe.state == state).map(|probe| probe.load);
        let least_missed = of(State::Missed).reduce(f64::min);
        let most_kept = of(State::Kept).reduce(f64::max);
        let kept = of(State::Kept)
            .filter(|load| least_missed.is_none_or(|missed| *load < missed))
            .reduce(f64::max);
        let missed = of(State::Missed)
            .filter(|load| most_kept.is_none_or(|kept| *load > kept))
            .reduce(f64::min);
        // Few users with slow answers prove little; all below that load kept it without a miss.
        let kept = if self.settings.whole {
            let loads = judged().filter(|probe| probe.requests > 0).map(|probe| probe.load);
            let flawless = loads.filter(|load| {
                let below = judged().filter(|probe| probe.load <= *load);
                Counts::sum(below.map(Probe::counts)).missed == 0
            });
            flawless.chain(kept).reduce(f64::max)
        } else {
            kept
        };
        let kind = match (kept, missed) {
            (Some(_), Some(_)) => Kind::Bracket,
            (Some(_), None) if least_missed.is_none() => Kind::AtLeast,
            _ => Kind::Unknown,
        };
        let contradicts = kept.is_some() && missed.is_none() && least_missed.is_some();
        let why = if contradicts { "a load was kept above one that was missed" } else { why };
        let why = Some(why.to_owned());
        // The middle, in logarithms.
        let load = kept.map(|kept| (kept * missed.unwrap_or(kept)).sqrt());
        Found { kind, load, low: kept, high: missed, why, confirmed: None }
    }

    fn confirm(&mut self, mut found: Found) {
        let confirm_s = self.settings.confirm_s;
        let Some(low) = found.low.filter(|_| confirm_s > 0.0) else {
            self.found = Some(found);
            return;
        };
        if !self.fits(confirm_s) {
            found.why = Some("the time was up before it was confirmed".to_owned());
            self.found = Some(found);
            return;
        }
        // At the very end of the interval it would often be unclear.
        let width = found.high.map_or(0.0, |high| high / low - 1.0);
        self.found = Some(found);
        self.plan(rounded_down(low * (1.0 - width * CONFIRM_BELOW)), Phase::Confirm);
    }

    fn after_confirm(&mut self, planned: Planned, state: State, kept: KeptShare) {
        let spent = self.spent_s();
        let Some(found) = &mut self.found else { return };
        if state == State::Kept {
            let seconds = planned.seconds;
            found.confirmed = Some(Confirmed { load: planned.load, seconds, kept });
            return;
        }
        if state == State::Missed && found.low.is_some_and(|low| planned.load <= low) {
            let bracket = self.bracket("a longer probe below the estimate missed the objective");
            self.found = Some(bracket);
        }
        // Too few requests to prove it is not a load that misses the objective.
        if state == State::Unclear && self.leans_to_kept(planned.load) {
            let counts = self.counts_at(planned.load);
            let share = self.settings.share * 1e2;
            let Some(found) = &mut self.found else { return };
            found.why = Some(format!(
                "{} of {} requests at {:.0} kept it: too few to prove {share} %",
                counts.all - counts.missed,
                counts.all,
                planned.load
            ));
            return;
        }
        let Some(found) = &mut self.found else { return };
        self.failed_confirmations += 1;
        let is_last = self.failed_confirmations >= CONFIRMATIONS;
        if is_last || spent + planned.seconds + OVERHEAD_S > self.settings.budget_s {
            let share = kept.value * 1e2;
            let tried =
                format!("{:.0} s at {:.0} kept {share:.2} %", planned.seconds, planned.load);
            if is_last {
                found.kind = Kind::Unstable;
                found.why = Some(format!("no lower load kept the objective for long: {tried}"));
            } else {
                found.why = Some(format!("not confirmed, and the time is up: {tried}"));
            }
            return;
        }
        let width = found.low.zip(found.high).map_or(0.0, |(low, high)| high / low - 1.0);
        self.plan(rounded_down(planned.load * (1.0 - width.max(0.02))), Phase::Confirm);
    }

    fn plan(&mut self, load: f64, phase: Phase) {
        let load = if self.settings.whole { load.round().max(1.0) } else { significant(load) };
        self.next = Some(Planned { load, seconds: self.length(load, phase), phase });
    }

    /// Long enough to prove the objective without a miss, where the time allows.
    fn length(&self, load: f64, phase: Phase) -> f64 {
        let least = match phase {
            Phase::Floor | Phase::Bracket => 4.0,
            Phase::Narrow => 5.0,
            Phase::Cliff => 8.0,
            Phase::Estimate => 12.0,
            Phase::Confirm => return self.settings.confirm_s,
        };
        let proof = PROOF / (1.0 - self.settings.share);
        let most = (self.settings.budget_s / 15.0).max(least);
        if !self.settings.whole {
            return (proof / load).clamp(least, most);
        }
        // Users make as many requests as they can: as many as the last probe had, at least.
        match self.probes.last() {
            None => least,
            // Longer than an answer takes, which is longer than that probe.
            Some(last) if last.requests == 0 => most,
            Some(last) => (proof * last.seconds / last.requests as f64).clamp(least, most),
        }
    }
}

/// Seconds of a probe besides its length: warm-up, drain and rest.
const OVERHEAD_S: f64 = 2.2;

/// Whether two loads are one: loads are rounded when they are planned.
const fn same(load: f64, other: f64) -> bool {
    load.to_bits() == other.to_bits()
}

/// Four significant digits: no setting is more exact.
fn significant(load: f64) -> f64 {
    let unit = 10f64.powf(load.log10().floor() - 3.0);
    (load / unit).round() * unit
}

/// Two significant digits, downwards; three where that would lose more than 2 %.
fn rounded_down(load: f64) -> f64 {
    let [two_digits, three_digits] = [1.0, 2.0].map(|digits| {
        let unit = 10f64.powf(load.log10().floor() - digits);
        (load / unit).floor() * unit
    });
    if two_digits < load * 0.98 { three_digits } else { two_digits }
}
