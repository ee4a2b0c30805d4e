//! Which stage decides, and whether its load was at its limit.

use plimsoll_metrics::{Counters, Group, LoadModel, RunSummary, StageInfo, StageResources};
use plimsoll_report::format::{digits, percent};

use crate::result::Load;

/// An open stage that missed more of its requests was at its limit: the share from which the rate
/// of a stage is refused (`lost_rate` in `plimsoll-metrics`).
pub(crate) const MISSED: f64 = 0.01;
/// A stage that fell behind steadily ends with twice its mean in flight; one that keeps up ends
/// with its mean. Both without what was in flight when it began.
const GROWN: f64 = 1.5;
/// Requests by which what is in flight differs by chance: standard deviations of a Poisson number.
const DEVIATIONS: f64 = 4.0;
/// And at least so many.
const FEW: f64 = 10.0;
/// Users of a closed stage of whom fewer are in flight mostly think: more of them would send more.
const THINKING: f64 = 0.5;

/// A measured stage with what was counted in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stage<'r> {
    pub(crate) info: &'r StageInfo,
    pub(crate) group: &'r Group,
    pub(crate) resources: Option<&'r StageResources>,
    /// Requests in flight at its start: those that the stages before it, a warm-up too, left.
    left_before: f64,
}

/// The measured stages in which anything was sent.
pub(crate) fn stages(summary: &RunSummary) -> Vec<Stage<'_>> {
    let mut left_before = 0.0;
    let mut measured = Vec::new();
    for (info, group) in summary.metadata.stages.iter().zip(&summary.results.by_stage) {
        let resources = summary.resources.iter().find(|found| found.stage == info.name);
        let stage = Stage { info, group, resources, left_before };
        left_before = f64::max(left_before + stage.grown_by(), 0.0);
        if !info.warmup && info.duration_s > 0.0 && group.counters.dispatched_in_stage > 0 {
            measured.push(stage);
        }
    }
    measured
}

impl Stage<'_> {
    /// How much was asked for: users, or requests per second.
    pub(crate) fn asked(&self) -> f64 {
        let planned = self.group.counters.scheduled as f64 / self.info.duration_s;
        self.info.users.unwrap_or(planned)
    }

    /// The share of the requests that got no good answer.
    pub(crate) fn without_answer(&self) -> f64 {
        let counters = &self.group.counters;
        let bad = counters.unexpected + counters.timed_out + counters.in_flight;
        (bad as f64 / counters.scheduled.max(1) as f64).min(1.0)
    }

    pub(crate) fn throughput(&self) -> f64 {
        self.group.rates.throughput_per_s.unwrap_or_default()
    }

    /// Whether more could not be carried.
    pub(crate) fn load(&self) -> Load {
        let (at_limit, because) = match self.info.model {
            LoadModel::Closed => self.closed(),
            LoadModel::Open => self.open(),
        };
        Load {
            stage: self.info.name.clone(),
            model: self.info.model,
            users: self.info.users,
            throughput_per_s: self.throughput(),
            sent_per_s: self.group.rates.achieved_rate_per_s.unwrap_or_default(),
            in_flight: self.info.mean_in_flight,
            at_limit,
            because,
        }
    }

    /// A user of a closed loop sends as soon as it can.
    fn closed(&self) -> (bool, String) {
        let Some(users) = self.info.users else { return (true, "a closed loop".to_owned()) };
        // Who had no request was no user of this load.
        let users = users.min(self.group.counters.scheduled as f64);
        let users_words = if users <= 1.0 { "user" } else { "users" };
        match self.info.mean_in_flight {
            Some(busy) if busy < users * THINKING => {
                let words = "in flight: they mostly think";
                (false, format!("a closed loop of {users:.0} {users_words}, {busy:.1} {words}"))
            }
            _ => (true, format!("a closed loop of {users:.0} {users_words}")),
        }
    }

    /// How many more were in flight at its end than when it began; less than 0 if they were fewer.
    fn grown_by(&self) -> f64 {
        let counters = &self.group.counters;
        let ended =
            counters.completed_in_stage + counters.rejected + counters.failed + counters.cancelled;
        counters.dispatched_in_stage as f64 - ended as f64
    }

    /// Whether it ended with more in flight than on average, beyond chance. What was in flight when
    /// it began counts to neither.
    fn queue_grew(&self, mean: f64) -> bool {
        let behind = self.grown_by();
        let own_mean = (mean - self.left_before).max(0.0);
        let by_chance = (DEVIATIONS * mean.sqrt()).max(FEW);
        behind > GROWN * own_mean && behind - own_mean > by_chance
    }

    fn open(&self) -> (bool, String) {
        let counters = &self.group.counters;
        if let Some(held) = held(counters).filter(|held| *held > MISSED) {
            let share = percent(held);
            return (true, format!("{share} of the arrivals found every slot in flight taken"));
        }
        let lost = counters.timed_out + counters.in_flight + counters.never_sent;
        let share = lost as f64 / counters.scheduled.max(1) as f64;
        if share > MISSED {
            return (true, format!("{} of the requests had no answer in time", percent(share)));
        }
        if self.info.mean_in_flight.is_some_and(|mean| self.queue_grew(mean)) {
            let behind = digits(self.grown_by());
            return (true, format!("the queue grew: {behind} more sent than answered"));
        }
        let share = counters.unexpected as f64 / counters.scheduled.max(1) as f64;
        if share > MISSED {
            let words = "of the requests got no good answer";
            return (false, format!("no queue grew, but {} {words}", percent(share)));
        }
        (false, "the rate was carried, and no queue grew".to_owned())
    }
}

/// Share of the arrivals that found no slot in flight; `None` without planned ones, as in closed
/// stages.
pub(crate) fn held(counters: &Counters) -> Option<f64> {
    (counters.arrivals_planned > 0)
        .then(|| counters.arrivals_held() as f64 / counters.arrivals_planned as f64)
}

/// The stage that decides: of those at their limit, else of all, the one of which most was asked.
/// Users and rates cannot be compared, so that of stages of both models the throughput counts.
pub(crate) fn deciding<'s, 'r>(stages: &'s [Stage<'r>]) -> Option<&'s Stage<'r>> {
    let mixed = stages.iter().any(|stage| stage.info.model != stages[0].info.model);
    let size = |stage: &Stage<'_>| if mixed { stage.throughput() } else { stage.asked() };
    stages.iter().max_by(|one, other| {
        let limits = [one, other].map(|stage| stage.load().at_limit);
        limits[0].cmp(&limits[1]).then(size(one).total_cmp(&size(other)))
    })
}
