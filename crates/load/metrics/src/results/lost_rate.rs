//! What the generator took of the rates of a stage.

use plimsoll_stats::normal::NORMAL_95;

use super::Group;
use crate::bounded_figure::{REFUSED_SHARE, Refusal};
use crate::catalog::{Counters, Metric};
use crate::group_stats::GroupStats;
use crate::run_metadata::{LoadModel, StageInfo};

/// Open model: the share of the planned arrivals that the generator may send too late for their
/// stage before the rate is refused.
const LATE_SHARE: f64 = 0.01;

/// A generator that took more than this share of the users' time would let no other time be known.
const MOST_TIME_LOST: f64 = 0.99;

/// The requests that the generator may have prevented, as a share of those that were sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LostRate {
    share: f64,
    model: LoadModel,
    /// Closed model: the standard deviation of a cycle of a virtual user, as a share of its mean.
    spread: f64,
}

impl LostRate {
    /// Closed model: the generator's time in the cycles of the virtual users, over the rest of
    /// their time, which is what the cycles would have taken without it. Open model: the arrivals
    /// that it sent too late for their stage, over the others.
    pub(super) fn in_stage(stage: &StageInfo, stats: &GroupStats) -> Self {
        if stage.model == LoadModel::Open {
            let counters = stats.counters();
            let late = counters.arrivals_late_by_generator;
            let others = counters.arrivals_planned.saturating_sub(late).max(1);
            let share = late as f64 / others as f64;
            return Self { share, model: stage.model, spread: 0.0 };
        }
        let user_seconds = stage
            .users
            .map_or_else(|| stats.in_flight_time() as f64 / 1e9, |users| users * stage.duration_s);
        let lost = stats.generator_time as f64 / 1e9;
        let lost = if user_seconds > 0.0 { (lost / user_seconds).min(MOST_TIME_LOST) } else { 0.0 };
        let share = lost / (1.0 - lost);
        Self { share, model: stage.model, spread: spread(stats, user_seconds) }
    }
}

/// The standard deviation of the service times over the mean length of a cycle. Of the think times
/// only the mean counts: so the spread is rather too small. At most 1, that of cycles that end at
/// random.
fn spread(stats: &GroupStats, user_seconds: f64) -> f64 {
    let cycles = stats.counters().dispatched_in_stage as f64;
    let deviation = stats
        .distribution(Metric::ServiceTime)
        .map_or(0.0, |times| times.standard_deviation() / 1e9);
    if user_seconds > 0.0 { (deviation * cycles / user_seconds).min(1.0) } else { 1.0 }
}

/// The requests and tokens that are missing in the rates of a group.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MissingRates {
    dispatched: f64,
    completed: f64,
    tokens_reported: f64,
    tokens_estimated: f64,
    good: f64,
    /// Requests that may be missing in open stages before rates are refused.
    allowed_open: f64,
    /// Requests of closed stages, and the variance of their number if the cycles of the users are
    /// independent (renewal theory: Cox, 1962, 4.2).
    sent_closed: f64,
    variance_closed: f64,
}

impl MissingRates {
    /// Adds a cell of a stage that lost this share.
    pub(super) fn add(&mut self, counters: &Counters, lost: &LostRate) {
        self.dispatched += counters.dispatched_in_stage as f64 * lost.share;
        // A target that turns most requests away, or fails them, has more of them than it serves:
        // more would not be served either.
        let is_turned_away = 2 * counters.failures() > counters.answered();
        let served = if is_turned_away { 0.0 } else { lost.share };
        self.completed += counters.completed_in_stage as f64 * served;
        self.tokens_reported += counters.output_tokens_reported_in_stage as f64 * served;
        self.tokens_estimated += counters.output_tokens_estimated_in_stage as f64 * served;
        self.good += counters.good_in_stage as f64 * served;
        let sent = counters.dispatched_in_stage as f64;
        match lost.model {
            LoadModel::Open => self.allowed_open += sent * LATE_SHARE,
            LoadModel::Closed => {
                self.sent_closed += sent;
                self.variance_closed += sent * lost.spread.powi(2);
            }
        }
    }

    /// Writes the bounds of the group's rates, and refuses them if the generator took too much: in
    /// closed stages more than 5 % and half of the 95 % interval of a count of independent cycles,
    /// in open ones more than 1 %.
    pub(super) fn bound(&self, group: &mut Group) {
        if group.duration_s <= 0.0 || self.dispatched <= 0.0 {
            return;
        }
        let half_interval = NORMAL_95 * self.variance_closed.sqrt();
        let allowed_closed = (self.sent_closed * REFUSED_SHARE).max(half_interval);
        let refused = self.dispatched > self.allowed_open + allowed_closed;
        for (key, missing) in [
            ("achieved_rate_per_s", self.dispatched),
            ("throughput_per_s", self.completed),
            ("goodput_per_s", self.good),
            ("output_token_rate_reported_per_s", self.tokens_reported),
            ("output_token_rate_estimated_per_s", self.tokens_estimated),
        ] {
            if missing > 0.0 {
                group.rate_bounds.insert(key.to_owned(), missing / group.duration_s);
            }
            if refused && missing > 0.0 {
                group.refused_rates.insert(key.to_owned(), Refusal::Generator);
            }
        }
    }
}
