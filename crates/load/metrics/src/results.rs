//! The measured results of a run: groups of requests, rolled up from counters and distributions.

pub(crate) mod distribution_summary;
mod group;
mod rollup;

use std::collections::BTreeMap;

pub use distribution_summary::{DistributionSummary, Middle};
pub use group::{Group, TokenRate};
use plimsoll_measure::{NAMED_PARTS, Nanos, OTHER_PARTS};
use plimsoll_stats::normal::NORMAL_95;
use plimsoll_stats::student_t;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounded_figure::{BoundedFigure, REFUSED_SHARE, RESOLUTION_MS, Refusal};
use crate::catalog::{Counters, Metric, RATES};
use crate::distribution::{Distribution, QUANTILES};
use crate::edges::WHOLE;
use crate::error::MetricsError;
use crate::group_stats::{GroupStats, PartsTally};
use crate::limit::Scope;
use crate::run_metadata::{LoadModel, StageInfo};

/// The measured results of a run. Only the groups of warm-up stages include warm-up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Results {
    /// The whole run without warm-up.
    pub total: Group,
    /// One per stage, warm-up stages too.
    pub by_stage: Vec<Group>,
    /// One per scenario, without warm-up.
    pub by_scenario: Vec<Group>,
    /// One per category of scenarios, by name, without warm-up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_category: Vec<Group>,
    /// One per target, without warm-up.
    pub by_target: Vec<Group>,
    /// One per operation of tool servers and agents, without warm-up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_operation: Vec<Group>,
    /// One per stage x scenario x target, and per operation where there are any, in which anything
    /// was scheduled.
    pub cells: Vec<Group>,
}

impl Results {
    /// The group that a scope names. A stage is named by its name, or by its number counted from 1.
    pub fn group(&self, scope: &Scope) -> Option<&Group> {
        match scope {
            Scope::Run => Some(&self.total),
            Scope::Stage(name) => find(&self.by_stage, |g| g.stage.as_deref(), name)
                .or_else(|| self.by_stage.get(name.parse::<usize>().ok()?.checked_sub(1)?)),
            Scope::Scenario(name) => find(&self.by_scenario, |g| g.scenario.as_deref(), name),
            Scope::Category(name) => find(&self.by_category, |g| g.category.as_deref(), name),
            Scope::Target(name) => find(&self.by_target, |g| g.target.as_deref(), name),
            Scope::Operation(name) => find(&self.by_operation, |g| g.operation.as_deref(), name),
        }
    }

    /// The counters of the whole run, warm-up included.
    pub fn accounting(&self) -> Counters {
        let mut counters = Counters::default();
        for group in &self.by_stage {
            counters.merge(&group.counters);
        }
        counters
    }
}

fn find<'a>(
    groups: &'a [Group],
    label: impl Fn(&Group) -> Option<&str>,
    name: &str,
) -> Option<&'a Group> {
    groups.iter().find(|group| label(group) == Some(name))
}

/// The rates of answers.
const OF_ANSWERS: [&str; 4] =
    ["throughput", "goodput", "output_token_rate_reported", "output_token_rate_estimated"];

/// A count with the limits of its 95 % interval.
#[derive(Clone, Copy, Debug, Default)]
struct CountLimits {
    low: f64,
    value: f64,
    high: f64,
}

impl CountLimits {
    /// The completed requests of a stage of this length. Each request that an edge cuts counts at
    /// least as nothing and at most as a whole.
    fn in_stage(model: LoadModel, seconds: f64, stats: &GroupStats) -> Self {
        let (counters, edges) = (stats.counters(), &stats.edges);
        let moments = counters.completed_in_stage as f64;
        let value = moments + edges.completed as f64 / WHOLE as f64;
        let (low, high) = match model {
            _ if edges.entered + edges.left == 0 => (value, value),
            LoadModel::Closed => closed(value, moments, stats),
            LoadModel::Open => open(moments, seconds, stats),
        };
        let unknown = counters.in_flight as f64;
        let most = moments + edges.left as f64;
        let least = (moments - edges.entered_completed as f64).min(value);
        Self { low: low.max(least), value, high: (high + unknown).min(most.max(value)) }
    }

    /// Writes the intervals of a group's rates of answers, if they are wider than 5 %.
    fn write(self, group: &mut Group) {
        let Self { low, value, high } = self;
        if group.duration_s <= 0.0 || (high - value).max(value - low) <= value * REFUSED_SHARE {
            return;
        }
        for rate in RATES.iter().filter(|rate| OF_ANSWERS.contains(&rate.name)) {
            // Without an answer, nothing is known of its tokens.
            let share = if value > 0.0 {
                (rate.of)(&group.rates).map(|rate| rate / value)
            } else {
                (rate.name == OF_ANSWERS[0]).then(|| 1.0 / group.duration_s)
            };
            let interval = share.map(|share| (rate.key.to_owned(), [low * share, high * share]));
            group.rate_intervals.extend(interval);
        }
    }

    fn add(self, other: Self) -> Self {
        let [low, high] = [self.low + other.low, self.high + other.high];
        Self { low, value: self.value + other.value, high }
    }
}

/// Independent cycles: the variance of their number is the squared coefficient of variation over
/// it. In a queue that users enter at once the first answers are shorter than later ones, and their
/// shares too large: then the mean in flight over the mean time (Little) differs.
fn closed(value: f64, moments: f64, stats: &GroupStats) -> (f64, f64) {
    let edges = &stats.edges;
    let (mut count, mut sum) = (edges.entered as f64, edges.time as f64);
    let (mut squares, mut little) = (edges.squares as f64, value);
    if let Some(times) = stats.distribution(Metric::ResponseTime) {
        let (of, total) = (times.count() as f64, times.sum() as f64);
        squares += of * times.standard_deviation().powi(2) + total.powi(2) / of;
        (count, sum) = (count + of, sum + total);
        if stats.counters().completed == stats.counters().scheduled {
            little = stats.in_flight_time as f64 * of / total;
        }
    }
    if count < 2.0 || value <= 0.0 {
        return (0.0, f64::INFINITY);
    }
    let variation = (squares * count / sum.powi(2) - 1.0).max(0.0);
    let half = student_t::critical_95(count - 1.0) * (variation / value).sqrt();
    let (mut least, mut most) = (value, value);
    if (little / value - 1.0).abs() > LEAST_DRIFT {
        (least, most) = (value.min(little).min(moments), value.max(little));
    }
    let most = if half < 1.0 { most / (1.0 - half) } else { f64::INFINITY };
    (least / (1.0 + half), most)
}

/// Two rates of a closed stage that differ by less agree.
const LEAST_DRIFT: f64 = 0.02;

/// Answers that came and went in flight over the edges, as Poisson numbers. At the start of a load
/// no answer can end before the shortest has passed: those due in the stage end in the rest of it.
fn open(moments: f64, seconds: f64, stats: &GroupStats) -> (f64, f64) {
    let (counters, edges) = (stats.counters(), &stats.edges);
    let half = NORMAL_95 * ((edges.entered + edges.left) as f64).sqrt();
    let own = moments - edges.entered_completed as f64;
    let shortest = stats.distribution(Metric::ResponseTime).and_then(Distribution::min);
    let rest = 1.0 - shortest.map_or(seconds, Nanos::as_secs_f64) / seconds;
    let steady = if rest > 0.0 { own / rest } else { counters.dispatched_in_stage as f64 };
    (moments.min(steady) - half, moments.max(steady) + half)
}

/// A figure whose value is refused; only its limits are valid.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitedFigure {
    /// Its stage.
    pub stage: String,
    /// Title of its metric, like `TTFT`.
    pub title: &'static str,
    /// Which figure of that, like `p99`; empty for a rate.
    pub label: &'static str,
    /// The figure; it has a reason.
    pub figure: BoundedFigure,
    /// The reason.
    pub why: Refusal,
}

/// A printed figure: what it measures, which figure of that, and its value.
type Printed = (&'static str, &'static str, BoundedFigure);

/// The rates that are counted as figures, and their titles.
const COUNTED_RATES: [(&str, &str); 2] = [("achieved_rate", "sent/s"), ("throughput", "done/s")];

impl Results {
    /// The refused figures of the measured stages. The maximum of the completed requests is exact,
    /// and so left out.
    pub fn limited_figures(&self) -> Vec<LimitedFigure> {
        self.limited(|label, figure| {
            figure.refused.filter(|why| label != "max" || *why != Refusal::Censored)
        })
    }

    /// The figures of the measured stages with a measurement error above 5 %, even if their
    /// confidence interval is wider still.
    pub fn figures_of_generator(&self) -> Vec<LimitedFigure> {
        self.limited(|_, figure| is_of_generator(figure).then_some(Refusal::Generator))
    }

    fn limited(
        &self,
        reason: impl Fn(&str, &BoundedFigure) -> Option<Refusal>,
    ) -> Vec<LimitedFigure> {
        let mut limited = Vec::new();
        for stage in self.by_stage.iter().filter(|stage| !stage.warmup) {
            for (title, label, figure) in figures(stage) {
                let stage = stage.stage.clone().unwrap_or_default();
                let why = reason(label, &figure);
                limited.extend(why.map(|why| LimitedFigure { stage, title, label, figure, why }));
            }
        }
        limited
    }
}

fn is_of_generator(figure: &BoundedFigure) -> bool {
    let allowed = (figure.value * REFUSED_SHARE).max(RESOLUTION_MS);
    figure.refused == Some(Refusal::Generator) || figure.bound > allowed
}

/// Every printed figure of a group that has a bound.
fn figures(group: &Group) -> Vec<Printed> {
    let mut figures = Vec::new();
    for metric in Metric::ALL.into_iter().filter(|metric| metric.is_bounded()) {
        let Some(times) = group.distribution(metric) else { continue };
        let title = metric.title();
        figures.push((title, "mean", times.mean_figure()));
        let quantiles = QUANTILES.iter();
        figures.extend(quantiles.filter_map(|q| Some((title, q.label, times.figure(q)?))));
        figures.push((title, "max", times.max_figure()));
    }
    let rates = COUNTED_RATES.iter();
    figures.extend(rates.filter_map(|(name, title)| Some((*title, "", group.named_rate(name)?))));
    figures
}

/// Open model: the share of the planned arrivals that the generator may send too late for their
/// stage before the rate is refused.
const LATE_SHARE: f64 = 0.01;

/// A generator that took more than this share of the users' time would let no other time be known.
const MOST_TIME_LOST: f64 = 0.99;

/// Requests that the generator may have prevented, as a share of the sent ones.
#[derive(Clone, Copy, Debug, Default)]
struct LostRate {
    share: f64,
    model: LoadModel,
    /// Closed model: the standard deviation of a cycle of a virtual user, as a share of its mean.
    spread: f64,
}

impl LostRate {
    /// Closed model: the generator's time in the cycles of the virtual users, over the rest of
    /// their time, which is what the cycles would have taken without it. Open model: the arrivals
    /// that it sent too late for their stage, over the others.
    fn in_stage(stage: &StageInfo, stats: &GroupStats) -> Self {
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

/// The standard deviation of the service times over the mean length of a cycle; slightly too small,
/// because think times count by their mean only. At most 1, the value of cycles that end at random.
fn spread(stats: &GroupStats, user_seconds: f64) -> f64 {
    let cycles = stats.counters().dispatched_in_stage as f64;
    let deviation = stats
        .distribution(Metric::ServiceTime)
        .map_or(0.0, |times| times.standard_deviation() / 1e9);
    if user_seconds > 0.0 { (deviation * cycles / user_seconds).min(1.0) } else { 1.0 }
}

/// The requests and tokens that are missing in the rates of a group.
#[derive(Clone, Copy, Debug, Default)]
struct MissingRates {
    sent: f64,
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
    fn add(&mut self, counters: &Counters, lost: &LostRate) {
        let sent = counters.dispatched_in_stage.saturating_sub(counters.unsent_in_stage) as f64;
        self.sent += sent * lost.share;
        // A target that turns most requests away, or fails them, has more of them than it serves:
        // more would not be served either.
        let is_turned_away = 2 * counters.failures() > counters.answered();
        let served = if is_turned_away { 0.0 } else { lost.share };
        self.completed += counters.completed_in_stage as f64 * served;
        self.tokens_reported += counters.output_tokens_reported_in_stage as f64 * served;
        self.tokens_estimated += counters.output_tokens_estimated_in_stage as f64 * served;
        self.good += counters.good_in_stage as f64 * served;
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
    fn bound(&self, group: &mut Group) {
        if group.duration_s <= 0.0 || self.sent <= 0.0 {
            return;
        }
        let half_interval = NORMAL_95 * self.variance_closed.sqrt();
        let allowed_closed = (self.sent_closed * REFUSED_SHARE).max(half_interval);
        let refused = self.sent > self.allowed_open + allowed_closed;
        for (key, missing) in [
            ("achieved_rate_per_s", self.sent),
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

// Targets state these times in headers; Plimsoll does not measure them.
/// The parts of responses' times that a target states in its headers: `Server-Timing`, and its own
/// overhead by the name of the header. They are its own word.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerTiming {
    /// Completed requests whose header has parts that may be true.
    pub responses: u64,
    /// Completed requests whose header has invalid parts: malformed times or names, or a sum above
    /// the time to the first byte.
    #[serde(default)]
    pub refused: u64,
    /// Sum of the times to the first byte of `responses`, in milliseconds: the whole of these
    /// parts.
    pub ttfb_sum_ms: f64,
    /// The parts by name; `other` are all names beyond the first 8 of the run.
    pub parts: BTreeMap<String, DistributionSummary>,
}

impl ServerTiming {
    /// Summarizes a tally; `names` are the names of the run's parts, in the order of their numbers.
    fn from_tally(tally: &PartsTally, names: &[String]) -> Result<Self, MetricsError> {
        let mut parts = BTreeMap::new();
        for (number, times) in tally.times.iter().enumerate() {
            let name = names.get(number).map(String::as_str);
            let name = name.or_else(|| (number == NAMED_PARTS).then_some(OTHER_PARTS));
            if let Some((name, times)) = name.zip(times.as_ref()) {
                parts.insert(name.to_owned(), DistributionSummary::from_distribution(times)?);
            }
        }
        Ok(Self {
            responses: tally.responses,
            refused: tally.refused,
            ttfb_sum_ms: tally.ttfb as f64 / 1e6,
            parts,
        })
    }

    /// The mean time to the first byte of the responses, in milliseconds; `None` without any.
    pub fn mean_ttfb_ms(&self) -> Option<f64> {
        (self.responses > 0).then(|| self.ttfb_sum_ms / self.responses as f64)
    }

    /// The mean of each part, in milliseconds, over all responses: one that does not name it counts
    /// as zero, so that the means and [`ServerTiming::rest_ms`] make up the whole.
    pub fn means_ms(&self) -> impl Iterator<Item = (&str, f64)> {
        let responses = self.responses.max(1) as f64;
        self.parts.iter().map(move |(name, times)| (name.as_str(), times.raw_sum() / responses))
    }

    /// The mean time to the first byte minus all parts, in milliseconds: the network, and time that
    /// the target does not report.
    pub fn rest_ms(&self) -> f64 {
        let parts: f64 = self.means_ms().map(|(_, mean)| mean).sum();
        self.mean_ttfb_ms().unwrap_or_default() - parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_the_generators_is_named_although_few_values_say_less_still() {
        for (value, bound, refused, named) in [
            (1.15, 0.42, None, true),
            (1.15, 0.42, Some(Refusal::Generator), true),
            // 5 %, and less than clocks resolve.
            (10.0, 0.49, None, false),
            (0.096, 0.012, None, false),
        ] {
            let figure = BoundedFigure { value, bound, interval: None, refused };
            assert_eq!(is_of_generator(&figure), named, "{value} {bound}");
        }
    }
}
