//! A probe: a load applied for some seconds, and the results of its requests.

use plimsoll_measure::{Moment, Outcome, named_enum};
use plimsoll_stats::student_t;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Number of batches per probe: few enough that neighbours are nearly independent.
const BATCHES: usize = 10;
/// Number of consecutive failures at the end of a probe that suggest an outage.
const DOWN: usize = 10;

named_enum! {
    /// Purpose of a probe.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Phase {
        /// Short: locates the capacity; can prove a miss, because it begins with an empty queue.
        Place => "place",
        /// Long: tests a load, together with other long probes at that load.
        Prove => "prove",
        /// Repeats the lowest load after many failures, to see whether the target is up.
        Check => "check",
    }
}

/// A planned probe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Planned {
    /// Requests per second, or virtual users.
    pub load: f64,
    /// Length of the preceding warm-up, in seconds.
    pub warmup_s: f64,
    /// Length of the measured part, in seconds.
    pub seconds: f64,
    /// Its purpose.
    pub phase: Phase,
    /// Number of misses, excluding those by the generator, after which the probe may end early.
    pub most_misses: u64,
}

/// A request of a probe.
#[derive(Clone, Copy, Debug)]
pub struct ProbeRequest {
    /// Intended start.
    pub intended: Moment,
    /// How it ended.
    pub outcome: Outcome,
    /// Whether it missed the objective.
    pub missed: bool,
    /// Whether it would have met the objective without the generator's own delay or errors.
    pub doubtful: bool,
}

impl ProbeRequest {
    /// Whether it failed for another reason than lateness.
    const fn has_failed(&self) -> bool {
        let is_answer = matches!(self.outcome, Outcome::Failed(_) | Outcome::Rejected(_));
        self.missed && !self.doubtful && is_answer
    }

    const fn is_unanswered(&self) -> bool {
        matches!(self.outcome, Outcome::InFlight | Outcome::TimedOut | Outcome::NeverSent)
    }

    fn counts(&self) -> Counts {
        let [missed, doubtful] = [self.missed, self.missed && self.doubtful].map(u64::from);
        Counts { missed, doubtful, all: 1 }
    }
}

/// Failures that suggest that the target is down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Failed requests.
    pub failed: usize,
    /// All requests.
    pub all: usize,
    /// Intended start of the first consecutive failure.
    pub since: Moment,
    /// Outcome of the last failure.
    pub last: Outcome,
}

/// Result of a probe.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Counts of periods of equal length in chronological order.
    pub batches: Vec<Counts>,
    /// Failures that suggest that the target is down.
    pub failure: Option<Failure>,
    /// Whether it ended early because of a clear miss.
    pub has_ended_early: bool,
    /// Length of the measured part, in seconds.
    pub seconds: f64,
    /// Total time in seconds, including warm-up, drain and rest.
    pub took_s: f64,
    /// Mean service time of successful responses, in seconds.
    pub answer_s: Option<f64>,
    /// Successful responses per second of the measured part, whenever their requests began.
    pub answered_per_s: Option<f64>,
    /// Further figures for the reader.
    pub figures: ProbeFigures,
}

impl Measured {
    /// Counts requests; all other fields are zero or unknown. `hangs`: the load ended because none
    /// was answered any more.
    pub fn from_requests(mut requests: Vec<ProbeRequest>, hangs: bool) -> Self {
        requests.sort_by_key(|request| request.intended);
        let (Some(first), Some(last)) = (requests.first(), requests.last()) else {
            return Self::default();
        };
        let (first, seconds) = (first.intended, last.intended.since(first.intended).as_secs_f64());
        let mut batches = vec![Counts::default(); BATCHES];
        for request in &requests {
            let part = request.intended.since(first).as_secs_f64() / seconds.max(f64::MIN_POSITIVE);
            #[expect(clippy::cast_possible_truncation, reason = "small")]
            let index = (part * BATCHES as f64) as usize;
            batches[index.min(BATCHES - 1)].add(request.counts());
        }
        Self { batches, failure: failure(&requests, hangs), seconds, ..Self::default() }
    }

    /// Counts of the whole probe.
    pub fn counts(&self) -> Counts {
        Counts::sum(self.batches.iter().copied())
    }
}

/// Detects failures of half the requests, or of the last ten. No answer at all, or none any more,
/// is not lateness.
fn failure(requests: &[ProbeRequest], hangs: bool) -> Option<Failure> {
    let is_mute = hangs || requests.iter().all(ProbeRequest::is_unanswered);
    let has_failed =
        |request: &&ProbeRequest| (is_mute && request.is_unanswered()) || request.has_failed();
    let failed = requests.iter().filter(has_failed).count();
    let row = requests.iter().rev().take_while(has_failed).count();
    let ends = hangs && row > 0;
    if failed == 0 || (2 * failed < requests.len() && row < DOWN && !ends) {
        return None;
    }
    let since = match row {
        0 => requests.iter().find(has_failed)?,
        row => &requests[requests.len() - row],
    };
    let last = requests.iter().rfind(has_failed)?;
    Some(Failure { failed, all: requests.len(), since: since.intended, last: last.outcome })
}

/// Figures of a probe for the reader; the search ignores them. Figures that the generator may have
/// distorted are omitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeFigures {
    /// Successful responses per second.
    pub throughput_per_s: Option<f64>,
    /// Requests that met the objective, per second.
    pub goodput_per_s: Option<f64>,
    /// Mean number of requests in flight.
    pub in_flight: Option<f64>,
    /// Median of the objective's first time, in milliseconds.
    pub p50_ms: Option<f64>,
    /// p99 of the objective's first time, in milliseconds.
    pub p99_ms: Option<f64>,
    /// Median response time, in milliseconds.
    pub response_time_p50_ms: Option<f64>,
    /// p99 response time, in milliseconds.
    pub response_time_p99_ms: Option<f64>,
    /// Median time to first token, in milliseconds.
    pub ttft_p50_ms: Option<f64>,
    /// p99 time to first token, in milliseconds.
    pub ttft_p99_ms: Option<f64>,
    /// Output tokens per second of all requests together.
    pub tokens_per_s: Option<f64>,
    /// Interactivity: tokens per second for one user, 1
    /// median time per output token.
    pub tokens_per_s_per_user: Option<f64>,
}

/// A completed probe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Probe {
    /// Requests per second, or virtual users.
    pub load: f64,
    /// Length of the measured part, in seconds.
    pub seconds: f64,
    /// Purpose of the probe.
    pub phase: Phase,
    /// Requests that missed the objective.
    pub missed: u64,
    /// Missed requests that the generator may have caused.
    pub doubtful: u64,
    /// All requests due.
    pub requests: u64,
    /// Share of this probe's requests that met the objective; `null` without requests.
    pub kept: Option<KeptShare>,
    /// Share over all `prove` probes at this load so far, or over the second half of a `place`
    /// probe that proves a miss; `null` otherwise.
    pub pooled: Option<KeptShare>,
    /// Conclusion from these shares.
    pub state: State,
    /// Whether it ended early because of a clear miss.
    #[serde(default)]
    pub has_ended_early: bool,
    /// Total time in seconds, including warm-up, drain and rest.
    pub took_s: f64,
    /// Further figures.
    pub figures: ProbeFigures,
}

impl Probe {
    pub(crate) const fn counts(&self) -> Counts {
        Counts { missed: self.missed, doubtful: self.doubtful, all: self.requests }
    }
}

// The share of requests that met an objective, its interval, and the conclusion.

/// Counts of requests in a period, and of those that missed the objective.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that missed it: late, failed, rejected, never sent or unfinished.
    pub missed: u64,
    /// Misses that would have met it without the measurement error.
    pub doubtful: u64,
    /// All requests due in the period.
    pub all: u64,
}

impl Counts {
    /// Adds the counts of another period.
    pub const fn add(&mut self, other: Self) {
        self.missed += other.missed;
        self.doubtful += other.doubtful;
        self.all += other.all;
    }

    /// Sums the counts of several periods.
    pub fn sum(counts: impl Iterator<Item = Self>) -> Self {
        counts.fold(Self::default(), |mut sum, counts| {
            sum.add(counts);
            sum
        })
    }

    /// Misses that the generator cannot have caused.
    pub(crate) const fn certain_misses(self) -> u64 {
        self.missed - self.doubtful
    }

    /// The counts without misses that the generator may have caused.
    const fn certain(self) -> Self {
        Self { missed: self.certain_misses(), doubtful: 0, all: self.all }
    }
}

/// One minus the tail probability of the 98 % interval. Each end of the capacity is tested
/// one-sided.
const ONE_SIDED: f64 = 0.99;

/// Conclusion from the probes at a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The objective was met: the whole interval meets it.
    Kept,
    /// It was missed: the whole interval misses it.
    Missed,
    /// Neither is proven: the interval includes the objective, or misses that the generator may
    /// have caused decide, or the probe was too short.
    #[default]
    Unclear,
    /// The target failed, also at the lowest load.
    Down,
}

/// The share of requests that met the objective, from 0 to 1, with its 98 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KeptShare {
    /// The observed share.
    pub value: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl KeptShare {
    /// The share over all batches in chronological order.
    ///
    /// Uses Wilson's score interval (1927) with the effective sample size: requests in the same
    /// queue miss together, so the number of requests is divided by the design effect (Kish, 1965),
    /// the ratio of the variance between batches to the variance of independent requests.
    /// Correlation of neighbours widens the interval further, as everywhere (`docs/statistics.md`).
    pub fn of(batches: &[Counts]) -> Self {
        let sum = Counts::sum(batches.iter().copied());
        let all = sum.all as f64;
        if sum.all == 0 {
            return Self { value: f64::NAN, low: 0.0, high: 1.0 };
        }
        let missed = sum.missed as f64 / all;
        let n = all / design_effect(batches, missed, all);
        let filled = batches.iter().filter(|batch| batch.all > 0).count();
        let t = student_t::quantile(ONE_SIDED, (filled.max(2) - 1) as f64);
        let centre = t.mul_add(t / (2.0 * n), missed) / (1.0 + t * t / n);
        let half =
            t / (1.0 + t * t / n) * (missed * (1.0 - missed) / n + (t / (2.0 * n)).powi(2)).sqrt();
        let (low, high) = ((centre - half).max(0.0), (centre + half).min(1.0));
        Self { value: 1.0 - missed, low: 1.0 - high, high: 1.0 - low }
    }

    /// Tests whether `share` of the requests meet the objective. It is met if it is with all misses
    /// counted, and missed if it is without those that the generator may have caused.
    pub fn judge(batches: &[Counts], share: f64) -> (Self, State) {
        let all = Self::of(batches);
        let certain: Vec<_> = batches.iter().map(|batch| batch.certain()).collect();
        let certain = Self::of(&certain);
        let state = if all.low >= share {
            State::Kept
        } else if certain.high < share {
            State::Missed
        } else {
            State::Unclear
        };
        (all, state)
    }

    /// Whether misses that the generator may have caused decide about `share`.
    pub(crate) fn is_doubtful(batches: &[Counts], share: f64) -> bool {
        let counts = Counts::sum(batches.iter().copied());
        let allowed = (1.0 - share) * counts.all as f64;
        counts.missed as f64 > allowed && counts.certain_misses() as f64 <= allowed
    }
}

/// Ratio of the variance of the share of misses between batches to the variance of independent
/// requests; at least 1.
fn design_effect(batches: &[Counts], missed: f64, all: f64) -> f64 {
    const MOST_CORRELATION: f64 = 0.9;
    let batches: Vec<_> = batches.iter().filter(|batch| batch.all > 0).collect();
    let count = batches.len() as f64;
    let independent = missed * (1.0 - missed) / all;
    if batches.len() < 2 || independent <= 0.0 {
        return 1.0;
    }
    let residuals: Vec<f64> =
        batches.iter().map(|batch| batch.missed as f64 - missed * batch.all as f64).collect();
    let squares: f64 = residuals.iter().map(|residual| residual.powi(2)).sum();
    if squares <= 0.0 {
        return 1.0;
    }
    let neighbours: f64 = residuals.windows(2).map(|two| two[0] * two[1]).sum();
    let correlation = (neighbours / squares).clamp(0.0, MOST_CORRELATION);
    let variance = squares * count / (count - 1.0) / (all * all);
    (variance / independent * (1.0 + correlation) / (1.0 - correlation)).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_measure::{ErrorClass, Nanos};

    /// One request per 10 ms: `.` met, `s` slow, `r` rejected, `d` slow because of the generator.
    fn requests(outcomes: &str) -> Vec<ProbeRequest> {
        let of = |(outcome, index): (char, u64)| ProbeRequest {
            intended: Moment::EPOCH + Nanos::from_millis(1_000 + 10 * index),
            outcome: match outcome {
                'r' => Outcome::Failed(ErrorClass::ConnectRefused),
                'h' => Outcome::InFlight,
                _ => Outcome::Completed,
            },
            missed: outcome != '.',
            doubtful: outcome == 'd',
        };
        outcomes.chars().zip(0..).map(of).collect()
    }

    #[test]
    fn half_of_the_requests_or_the_last_ten_may_mean_that_the_target_is_down() {
        for (outcomes, says) in [
            ("", None),
            ("....................", None),
            ("ssssssssssssssssssss", None),
            ("r.r.r.r.r...........", None),
            ("r.r.r.r.r.r.r.r.r.r.", Some((10, 0.0))),
            ("rrrr", Some((4, 0.0))),
            ("hhhh", Some((4, 0.0))),
            (".hhhhhhhhhhhhhh", None),
            (".............................rrrrrrrrrr", Some((10, 29.0))),
            ("..............................rrrrrrrrr", None),
            ("........................rrrrrrrrrr....", None),
        ] {
            let found = Measured::from_requests(requests(outcomes), false).failure;
            let found = found.map(|failure| {
                let since = failure.since.since(Moment::EPOCH).as_secs_f64();
                (failure.failed, f64::round((since - 1.0) * 100.0))
            });
            assert_eq!(found, says, "{outcomes}");
        }
        // A load that ended because its target hangs.
        for (outcomes, all) in [("........hh", 2), ("hhh", 3), ("........", 0)] {
            let found = Measured::from_requests(requests(outcomes), true).failure;
            assert_eq!(found.map_or(0, |failure| failure.failed), all, "{outcomes}");
        }
    }

    #[test]
    fn requests_are_counted_by_ten_stretches() {
        let measured = Measured::from_requests(requests(&"....s...d..........r".repeat(5)), false);
        assert_eq!(measured.batches.len(), BATCHES);
        assert!(measured.batches.iter().all(|batch| (9..=11).contains(&batch.all)));
        assert_eq!(measured.counts(), Counts { missed: 15, doubtful: 5, all: 100 });
        assert!((measured.seconds - 0.99).abs() < 1e-9);
        assert_eq!(measured.batches[0].missed, 2);
    }
}

#[cfg(test)]
mod objective_share_tests {
    use super::*;

    fn batches(missed: &[u64]) -> Vec<Counts> {
        missed.iter().map(|&missed| Counts { missed, doubtful: 0, all: 100 }).collect()
    }

    fn state(missed: &[u64], share: f64) -> State {
        KeptShare::judge(&batches(missed), share).1
    }

    #[test]
    fn what_is_spread_evenly_is_known_better_than_a_burst() {
        let even = KeptShare::of(&batches(&[1; 16]));
        let mut misses = [0; 16];
        misses[7] = 16;
        let burst = KeptShare::of(&batches(&misses));
        assert!((even.value - 0.99).abs() < 1e-12 && (burst.value - 0.99).abs() < 1e-12);
        // Wilson with n = 1,600, 16 misses, t of 15 degrees and 98 % = 2.6025: 0.528 to 1.885 % by
        // hand.
        assert!((1.0 - even.high - 0.005_283).abs() < 3e-6, "{even:?}");
        assert!((1.0 - even.low - 0.018_848).abs() < 3e-6, "{even:?}");
        assert!(burst.low < 0.95 && state(&misses, 0.98) == State::Unclear, "{burst:?}");
        assert_eq!(state(&[1; 16], 0.98), State::Kept);
        assert_eq!(state(&[1; 16], 0.995), State::Missed);
    }

    #[test]
    fn misses_that_may_be_the_generators_prove_nothing() {
        let judge = |missed, doubtful| {
            KeptShare::judge(&[Counts { missed, doubtful, all: 100 }; 16], 0.98).1
        };
        assert_eq!(judge(1, 0), State::Kept);
        assert_eq!(judge(1, 1), State::Kept);
        assert_eq!(judge(5, 0), State::Missed);
        assert_eq!(judge(9, 4), State::Missed);
        assert_eq!(judge(5, 4), State::Unclear);
        assert_eq!(judge(2, 0), State::Unclear);
    }

    #[test]
    fn no_miss_in_few_requests_proves_little() {
        assert_eq!(state(&[0, 0], 0.99), State::Unclear);
        assert_eq!(state(&[0; 16], 0.99), State::Kept);
        assert_eq!(state(&[], 0.99), State::Unclear);
        assert_eq!(state(&[100; 4], 0.99), State::Missed);
    }
}
