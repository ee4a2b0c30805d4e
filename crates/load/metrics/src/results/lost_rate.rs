//! What the generator took of the rates of a stage.

use super::Group;
use crate::bounded_figure::{NORMAL_95, REFUSED_SHARE, Refusal};
use crate::catalog::Counters;
use crate::group_stats::GroupStats;
use crate::run_metadata::{LoadModel, StageInfo};

/// Open model: the share of the planned arrivals that the generator may send too late for their
/// stage before the rate is refused.
const LATE_SHARE: f64 = 0.01;

/// The share of a stage's requests that the generator may have prevented.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LostRate {
    share: f64,
    model: LoadModel,
}

impl LostRate {
    /// Closed model: the generator's time in the cycles of the virtual users, over the length of
    /// all cycles. Open model: the arrivals that it sent too late for their stage, over all.
    pub(super) fn of(stage: &StageInfo, stats: &GroupStats) -> Self {
        if stage.model == LoadModel::Open {
            let counters = stats.counters();
            let planned = counters.arrivals_planned.max(1) as f64;
            let share = counters.arrivals_late_by_generator as f64 / planned;
            return Self { share, model: stage.model };
        }
        let user_seconds = stage
            .users
            .map_or_else(|| stats.in_flight_time() as f64 / 1e9, |users| users * stage.duration_s);
        let lost = stats.generator_time as f64 / 1e9;
        let share = if user_seconds > 0.0 { (lost / user_seconds).min(1.0) } else { 0.0 };
        Self { share, model: stage.model }
    }
}

/// The requests and tokens that are missing in the rates of a group.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MissingRates {
    dispatched: f64,
    completed: f64,
    tokens_reported: f64,
    tokens_estimated: f64,
    /// Requests that may be missing in open stages before rates are refused.
    allowed_open: f64,
    /// Requests of closed stages.
    sent_closed: f64,
}

impl MissingRates {
    /// Adds a cell of a stage that lost this share.
    pub(super) fn add(&mut self, counters: &Counters, lost: &LostRate) {
        let missing = |count: u64| count as f64 * lost.share;
        self.dispatched += missing(counters.dispatched_in_stage);
        self.completed += missing(counters.completed_in_stage);
        self.tokens_reported += missing(counters.output_tokens_reported_in_stage);
        self.tokens_estimated += missing(counters.output_tokens_estimated_in_stage);
        let sent = counters.dispatched_in_stage as f64;
        match lost.model {
            LoadModel::Open => self.allowed_open += sent * LATE_SHARE,
            LoadModel::Closed => self.sent_closed += sent,
        }
    }

    /// Writes the bounds of the group's rates, and refuses them if the generator took too much: in
    /// closed stages more than 5 % and half of the 95 % interval of a count of independent
    /// requests, in open ones more than 1 %.
    pub(super) fn bound(&self, group: &mut Group) {
        if group.duration_s <= 0.0 || self.dispatched <= 0.0 {
            return;
        }
        let closed = self.sent_closed;
        let allowed_closed = (closed * REFUSED_SHARE).max(NORMAL_95 * closed.sqrt());
        let refused = self.dispatched > self.allowed_open + allowed_closed;
        for (key, missing) in [
            ("achieved_rate_per_s", self.dispatched),
            ("throughput_per_s", self.completed),
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
