//! Which stage decides, and whether its load was at its limit.

use plimsoll_metrics::{
    Group, LoadModel, Metric, QUANTILES, RunSummary, StageInfo, StageResources,
};

use crate::result::Load;

/// An open stage that missed more of its requests was at its limit: the share from which the rate
/// of a stage is refused (`lost_rate` in `plimsoll-metrics`).
const MISSED: f64 = 0.01;
/// A stage that fell behind steadily ends with twice its mean in flight; one that keeps up ends
/// with its mean. Both without what was in flight when it began.
const GROWN: f64 = 1.5;
/// Requests by which those in flight differ by chance: standard deviations of a Poisson number.
const DEVIATIONS: f64 = 4.0;
/// And at least so many.
const FEW: f64 = 10.0;
/// Closed stages with fewer of their users in flight are limited by think time.
const THINKING: f64 = 0.5;
/// The highest load is at least this many times the lowest.
const LEVELS: f64 = 2.0;
/// A time that grows by less has not grown.
const FLAT: f64 = 1.1;

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
        left_before = f64::max(left_before + stage.backlog(), 0.0);
        if !info.warmup && info.duration_s > 0.0 && group.counters.dispatched_in_stage > 0 {
            measured.push(stage);
        }
    }
    measured
}

impl Stage<'_> {
    /// The planned load: users, or requests per second.
    fn asked(&self) -> f64 {
        let planned = self.group.counters.scheduled as f64 / self.info.duration_s;
        self.info.users.unwrap_or(planned)
    }

    /// A number of requests as a share of those planned.
    fn share(&self, requests: u64) -> f64 {
        requests as f64 / self.group.counters.scheduled.max(1) as f64
    }

    /// The share of the requests without a good answer.
    pub(crate) fn without_answer(&self) -> f64 {
        let counters = &self.group.counters;
        self.share(counters.unexpected + counters.timed_out + counters.in_flight).min(1.0)
    }

    pub(crate) fn throughput(&self) -> f64 {
        self.group.rates.throughput_per_s.unwrap_or_default()
    }

    /// Whether Plimsoll sent too many requests late; closed loops have no such requests.
    pub(crate) fn is_late(&self) -> bool {
        self.share(self.group.counters.arrivals_late_by_generator) > MISSED
    }

    pub(crate) fn load(&self) -> Load {
        Load {
            stage: self.info.name.clone(),
            model: self.info.model,
            users: self.info.users,
            throughput_per_s: self.throughput(),
            sent_per_s: self.group.rates.achieved_rate_per_s.unwrap_or_default(),
            in_flight: self.info.mean_in_flight,
            backlog: self.backlog(),
            at_limit: self.is_at_limit(),
        }
    }

    fn is_at_limit(&self) -> bool {
        match self.info.model {
            LoadModel::Closed => self.users_wait(),
            LoadModel::Open => self.falls_behind(),
        }
    }

    /// Whether users of a closed loop wait for each other. A single user waits for nobody.
    fn users_wait(&self) -> bool {
        // Who had no request was no user of this load.
        let requests = self.group.counters.scheduled as f64;
        let users = self.info.users.unwrap_or(f64::INFINITY).min(requests);
        users > 1.0 && self.info.mean_in_flight.is_none_or(|busy| busy >= users * THINKING)
    }

    /// How many more were in flight at its end than when it began; less than 0 if they were fewer.
    fn backlog(&self) -> f64 {
        let counters = &self.group.counters;
        let ended =
            counters.completed_in_stage + counters.rejected + counters.failed + counters.cancelled;
        counters.dispatched_in_stage as f64 - ended as f64
    }

    /// Whether it ended with more in flight than on average, beyond chance. What was in flight when
    /// it began counts to neither.
    fn queue_grew(&self, mean: f64) -> bool {
        let own_mean = (mean - self.left_before).max(0.0);
        let by_chance = (DEVIATIONS * mean.sqrt()).max(FEW);
        self.backlog() > GROWN * own_mean && self.backlog() - own_mean > by_chance
    }

    fn falls_behind(&self) -> bool {
        let counters = &self.group.counters;
        let held = counters.arrivals_held() as f64 / counters.arrivals_planned.max(1) as f64;
        let lost = counters.timed_out + counters.in_flight + counters.never_sent;
        held > MISSED
            || self.share(lost) > MISSED
            || self.info.mean_in_flight.is_some_and(|mean| self.queue_grew(mean))
    }

    /// The median service time, if nothing disturbed it.
    fn median(&self) -> Option<f64> {
        self.group.distribution(Metric::ServiceTime)?.figure(&QUANTILES[0])?.sound()
    }
}

/// The stage that decides: of those at their limit, else of all, the one of which most was asked.
/// Users and rates cannot be compared, so that of stages of both models the throughput counts.
pub(crate) fn deciding<'s, 'r>(stages: &'s [Stage<'r>]) -> Option<&'s Stage<'r>> {
    let size = |stage: &Stage<'_>| {
        if are_alike(stages) { stage.asked() } else { stage.throughput() }
    };
    stages.iter().max_by(|one, other| {
        let limits = [one, other].map(|stage| stage.is_at_limit());
        limits[0].cmp(&limits[1]).then(size(one).total_cmp(&size(other)))
    })
}

fn are_alike(stages: &[Stage<'_>]) -> bool {
    stages.iter().all(|stage| stage.info.model == stages[0].info.model)
}

/// Whether times do not grow with the load: then requests do not queue in the stage with most load.
pub(crate) fn is_flat(stages: &[Stage<'_>]) -> bool {
    let by_load = |one: &&Stage<'_>, other: &&Stage<'_>| one.asked().total_cmp(&other.asked());
    let (low, high) = (stages.iter().min_by(by_load), stages.iter().max_by(by_load));
    low.zip(high).is_some_and(|(low, high)| {
        let times = low.median().zip(high.median());
        let is_known = are_alike(stages) && high.asked() >= LEVELS * low.asked();
        is_known && times.is_some_and(|(low, high)| high < FLAT * low)
    })
}
