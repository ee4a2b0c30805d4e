//! A probe: a load for some seconds, and what its requests show.

use plimsoll_measure::{Moment, Outcome, named_enum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::objective_share::{Counts, KeptShare, State};

/// Batches of a probe: few enough that neighbours are nearly independent.
const BATCHES: usize = 10;
/// Failures in a row, up to the end of a probe, after which the target may be down.
const DOWN: usize = 10;

named_enum! {
    /// The purpose of a probe.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Phase {
        /// Short: finds the place of the capacity and proves nothing.
        Place => "place",
        /// Long: proves that a load is kept or missed, together with the others at that load.
        Prove => "prove",
        /// The lowest load again, after many failures: is the target up?
        Check => "check",
    }
}

/// A probe to be made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Planned {
    /// Requests per second, or virtual users.
    pub load: f64,
    /// Length of the warm-up before it, in seconds.
    pub warmup_s: f64,
    /// Length of the part that counts, in seconds.
    pub seconds: f64,
    /// Its purpose.
    pub phase: Phase,
    /// With more misses than this, besides those of the generator, it may end early.
    pub most_misses: u64,
}

/// A request of a probe.
#[derive(Clone, Copy, Debug)]
pub struct ProbeRequest {
    /// When it was due.
    pub intended: Moment,
    /// How it ended.
    pub outcome: Outcome,
    /// Whether it missed the objective.
    pub missed: bool,
    /// Whether it would have kept it without the generator's own lateness or errors.
    pub doubtful: bool,
}

impl ProbeRequest {
    /// Whether it failed otherwise than by lateness.
    const fn has_failed(&self) -> bool {
        let is_answer = matches!(self.outcome, Outcome::Failed(_) | Outcome::Rejected(_));
        self.missed && !self.doubtful && is_answer
    }

    fn counts(&self) -> Counts {
        let [missed, doubtful] = [self.missed, self.missed && self.doubtful].map(u64::from);
        Counts { missed, doubtful, all: 1 }
    }
}

/// Failures after which the target may be down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Failed requests.
    pub failed: usize,
    /// All requests.
    pub all: usize,
    /// When the first failure of the row was due.
    pub since: Moment,
    /// The last failure.
    pub last: Outcome,
}

/// The measurement of a probe.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Counts of stretches of equal length, in their order in time.
    pub batches: Vec<Counts>,
    /// Failures that may mean that the target is down.
    pub failure: Option<Failure>,
    /// Whether it ended early, because it plainly missed.
    pub has_ended_early: bool,
    /// Length of the part that counts, in seconds.
    pub seconds: f64,
    /// Seconds that it took in all, with warm-up, drain and rest.
    pub took_s: f64,
    /// Mean service time of good answers, in seconds.
    pub answer_s: Option<f64>,
    /// Further figures, for the reader.
    pub figures: ProbeFigures,
}

impl Measured {
    /// The counts of requests; all else is zero or unknown.
    pub fn from_requests(mut requests: Vec<ProbeRequest>) -> Self {
        requests.sort_by_key(|request| request.intended);
        let (Some(first), Some(last)) = (requests.first(), requests.last()) else {
            return Self::default();
        };
        let (first, seconds) = (first.intended, last.intended.since(first.intended).as_secs_f64());
        let mut batches = vec![Counts::default(); BATCHES];
        for request in &requests {
            let part = request.intended.since(first).as_secs_f64() / seconds.max(f64::MIN_POSITIVE);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
            let index = (part * BATCHES as f64) as usize;
            batches[index.min(BATCHES - 1)].add(request.counts());
        }
        Self { batches, failure: failure(&requests), seconds, ..Self::default() }
    }

    /// All of its counts.
    pub fn counts(&self) -> Counts {
        Counts::sum(self.batches.iter().copied())
    }
}

/// Failures of half of the requests, or of the last ten.
fn failure(requests: &[ProbeRequest]) -> Option<Failure> {
    // No answer at all is not lateness.
    let unanswered = [Outcome::InFlight, Outcome::TimedOut, Outcome::NeverSent];
    let is_mute = requests.iter().all(|request| unanswered.contains(&request.outcome));
    let has_failed = |request: &&ProbeRequest| is_mute || request.has_failed();
    let failed = requests.iter().filter(has_failed).count();
    let row = requests.iter().rev().take_while(has_failed).count();
    if failed == 0 || (2 * failed < requests.len() && row < DOWN) {
        return None;
    }
    let since = match row {
        0 => requests.iter().find(has_failed)?,
        row => &requests[requests.len() - row],
    };
    let last = requests.iter().rfind(has_failed)?;
    Some(Failure { failed, all: requests.len(), since: since.intended, last: last.outcome })
}

/// Figures of a probe for the reader. The search does not look at them. Those that the generator
/// itself may have changed are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeFigures {
    /// Requests that were due, per second.
    #[serde(default)]
    pub offered_per_s: Option<f64>,
    /// Good answers per second.
    #[serde(default)]
    pub throughput_per_s: Option<f64>,
    /// Requests that kept the objective, per second.
    pub goodput_per_s: Option<f64>,
    /// Mean number of requests in flight.
    pub in_flight: Option<f64>,
    /// Median of the objective's first time, in milliseconds.
    pub p50_ms: Option<f64>,
    /// Its p99.
    pub p99_ms: Option<f64>,
    /// Median response time, in milliseconds.
    #[serde(default)]
    pub response_time_p50_ms: Option<f64>,
    /// Its p99.
    #[serde(default)]
    pub response_time_p99_ms: Option<f64>,
    /// Median time to the first token, in milliseconds.
    #[serde(default)]
    pub ttft_p50_ms: Option<f64>,
    /// Its p99.
    #[serde(default)]
    pub ttft_p99_ms: Option<f64>,
    /// Output tokens per second, of all requests together.
    pub tokens_per_s: Option<f64>,
    /// Interactivity: tokens per second that one user sees, 1 / median time per output token.
    #[serde(default)]
    pub tokens_per_s_per_user: Option<f64>,
}

/// A probe that was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Probe {
    /// Requests per second, or virtual users.
    pub load: f64,
    /// Length of the part that counts, in seconds.
    pub seconds: f64,
    /// Its purpose.
    pub phase: Phase,
    /// Requests that missed the objective.
    pub missed: u64,
    /// Those of them that the generator may have caused.
    pub doubtful: u64,
    /// All requests that were due.
    pub requests: u64,
    /// The share that kept it in this probe; `null` without a request.
    pub kept: Option<KeptShare>,
    /// The share in all `prove` probes at this load so far; `null` after any other probe.
    #[serde(default)]
    pub pooled: Option<KeptShare>,
    /// What they show.
    pub state: State,
    /// Whether it ended early, because it plainly missed.
    #[serde(default)]
    pub has_ended_early: bool,
    /// Seconds that it took, with warm-up, drain and rest.
    pub took_s: f64,
    /// Further figures.
    pub figures: ProbeFigures,
}

impl Probe {
    pub(crate) const fn counts(&self) -> Counts {
        Counts { missed: self.missed, doubtful: self.doubtful, all: self.requests }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_measure::{ErrorClass, Nanos};

    /// Requests each 10 ms: `.` kept, `s` slow, `r` refused, `d` slow by the generator.
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
            let found = Measured::from_requests(requests(outcomes)).failure;
            let found = found.map(|failure| {
                let since = failure.since.since(Moment::EPOCH).as_secs_f64();
                (failure.failed, f64::round((since - 1.0) * 100.0))
            });
            assert_eq!(found, says, "{outcomes}");
        }
    }

    #[test]
    fn requests_are_counted_by_ten_stretches() {
        let measured = Measured::from_requests(requests(&"....s...d..........r".repeat(5)));
        assert_eq!(measured.batches.len(), BATCHES);
        assert!(measured.batches.iter().all(|batch| (9..=11).contains(&batch.all)));
        assert_eq!(measured.counts(), Counts { missed: 15, doubtful: 5, all: 100 });
        assert!((measured.seconds - 0.99).abs() < 1e-9);
        assert_eq!(measured.batches[0].missed, 2);
    }
}
