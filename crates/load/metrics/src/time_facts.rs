//! What changed during a run: the moments that a summary without its timeline could not name.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalog::Metric;
use crate::run_metadata::{LoadModel, RunMetadata};
use crate::time_facts::change::Step;
use crate::timeline::{RunTimeline, TimelineGroup, TimelineInterval, TimelineStage, median_ms};

mod change;
mod silence;

pub(crate) use silence::TENTHS;

/// The key of requests that timed out, beside error classes and statuses.
pub const TIMED_OUT: &str = "timed_out";

/// What changed during a run, in seconds from the start of its load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TimeFacts {
    /// When failures of each kind occurred, by target, outside of warm-up.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailureSpan>,
    /// Targets whose last requests all failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<Outage>,
    /// Open stages in which the target fell behind.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub backlogs: Vec<Backlog>,
    /// Stages whose median changed once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// The longest silence of each target, where it is out of proportion.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub silences: Vec<Silence>,
}

/// When failures of one kind occurred.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FailureSpan {
    /// Name of the target.
    pub target: String,
    /// Error class, status, or `timed_out`.
    pub kind: String,
    /// Start of the interval of the first one.
    pub since_s: f64,
    /// End of the interval of the last one, if requests went on without it for two intervals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_s: Option<f64>,
}

/// The failures at the end of a target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outage {
    /// Name of the target.
    pub target: String,
    /// When they began.
    pub since_s: f64,
    /// Requests that failed since then; none succeeded.
    pub failed: u64,
}

/// An open stage in which the target fell behind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Backlog {
    /// Name of the stage.
    pub stage: String,
    /// Requests due in its second half, per second.
    pub planned_per_s: f64,
    /// Requests that ended in its second half, per second.
    pub done_per_s: f64,
    /// Requests in flight at its end.
    pub in_flight: u64,
}

/// A median that changed once, and stayed so.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// Name of the stage.
    pub stage: String,
    /// Name of the target.
    pub target: String,
    /// The first second of the new level.
    pub at_s: f64,
    /// The median before, in milliseconds.
    pub before_ms: f64,
    /// The median after, in milliseconds.
    pub after_ms: f64,
}

/// A time in which no request of a target ended although some were in flight.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Silence {
    /// Name of the target.
    pub target: String,
    /// Its start.
    pub start_s: f64,
    /// Its length in seconds, at least.
    pub length_s: f64,
    /// Requests in flight.
    pub in_flight: u64,
}

impl TimeFacts {
    /// The facts of a timeline. `ended` holds the requests that ended, by target and tenth of a
    /// second; it is empty where the intervals are longer than a second.
    pub(crate) fn collect(
        timeline: &RunTimeline,
        metadata: &RunMetadata,
        ended: &[Vec<u32>],
    ) -> Self {
        let view = View { timeline, metadata };
        let targets = timeline.targets.iter().enumerate();
        Self {
            failures: timeline.targets.iter().flat_map(|target| view.failures(target)).collect(),
            outages: timeline.targets.iter().filter_map(|target| view.outage(target)).collect(),
            backlogs: timeline.stages.iter().filter_map(|stage| view.backlog(stage)).collect(),
            changes: timeline.stages.iter().flat_map(|stage| view.changes(stage)).collect(),
            silences: targets
                .filter_map(|(index, target)| {
                    silence::longest(timeline, index, target, ended.get(index)?)
                })
                .collect(),
        }
    }

    /// When failures of these kinds occurred, at one target or at all: the first moment, and the
    /// last one if they ended.
    pub(crate) fn span(
        &self,
        target: Option<&str>,
        kinds: impl Fn(&str) -> bool,
    ) -> Option<(f64, Option<f64>)> {
        let spans = self
            .failures
            .iter()
            .filter(|span| kinds(&span.kind) && target.is_none_or(|target| target == span.target));
        spans.map(|span| (span.since_s, span.until_s)).reduce(|one, other| {
            (one.0.min(other.0), one.1.zip(other.1).map(|(a, b): (f64, f64)| a.max(b)))
        })
    }
}

/// Seconds of the shortest stage that is judged for overload.
const LEAST_OVERLOAD_S: f64 = 8.0;
/// Standard errors, requests and share by which fewer requests end than are due in overload.
const OVERLOAD: (f64, f64, f64) = (2.3, 5.0, 0.02);
/// The chance of failures in a row at which an outage is one.
const OUTAGE_CHANCE: f64 = 0.001;
/// Failures at the end that there must be.
const LEAST_OUTAGE: u64 = 10;
/// The share of failures before that is assumed at least.
const LEAST_SHARE: f64 = 0.05;
/// Loads of two halves of a stage that differ by more are a ramp.
const RAMP: f64 = 1.3;

struct View<'t> {
    timeline: &'t RunTimeline,
    metadata: &'t RunMetadata,
}

impl View<'_> {
    fn is_warmup(&self, name: &str) -> bool {
        self.timeline.stages.iter().any(|stage| stage.warmup && stage.name == name)
    }

    fn measured<'a>(
        &'a self,
        target: &'a str,
    ) -> impl DoubleEndedIterator<Item = (&'a TimelineInterval, &'a TimelineGroup)> {
        self.timeline.intervals.iter().flat_map(move |interval| {
            let groups = interval.groups.iter();
            let own =
                groups.filter(move |group| group.target == target && !self.is_warmup(&group.stage));
            own.map(move |group| (interval, group))
        })
    }

    fn failures(&self, target: &str) -> Vec<FailureSpan> {
        let mut spans: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
        let mut ended_at = Vec::new();
        for (interval, group) in self.measured(target) {
            let (start, end) = (interval.start_s, interval.start_s + interval.length_s);
            if group.counters.ended() > 0 && ended_at.last() != Some(&end) {
                ended_at.push(end);
            }
            let refusals = group.statuses.keys().filter(|status| status.as_str() >= "400");
            let timed_out = (group.counters.timed_out > 0).then_some(TIMED_OUT);
            let kinds = group.errors.keys().chain(refusals).map(String::as_str).chain(timed_out);
            for kind in kinds {
                let span = spans.entry(kind).or_insert((start, end));
                span.1 = end;
            }
        }
        let spans = spans.into_iter().map(|(kind, (since_s, until))| {
            let ended_later = ended_at.iter().filter(|end| **end > until).count();
            FailureSpan {
                target: target.to_owned(),
                kind: kind.to_owned(),
                since_s,
                until_s: (ended_later >= 2).then_some(until),
            }
        });
        spans.collect()
    }

    fn outage(&self, target: &str) -> Option<Outage> {
        let (mut since_s, mut failed) = (None, 0);
        let (mut all, mut all_failed) = (0, 0);
        let mut at_end = true;
        for (interval, group) in self.measured(target).collect::<Vec<_>>().into_iter().rev() {
            let bad = group.counters.failures();
            let good = group.counters.answered().saturating_sub(bad);
            at_end &= good == 0;
            if at_end && bad > 0 {
                since_s = Some(interval.start_s);
                failed += bad;
            }
            all += good + bad;
            all_failed += bad;
        }
        let before = (all_failed - failed) as f64 / (all - failed).max(1) as f64;
        let chance = before.max(LEAST_SHARE).powf(failed as f64) * all as f64;
        (failed >= LEAST_OUTAGE && all > failed && chance <= OUTAGE_CHANCE).then(|| Outage {
            target: target.to_owned(),
            since_s: since_s.unwrap_or_default(),
            failed,
        })
    }

    /// The whole intervals of a stage.
    fn intervals(&self, stage: &TimelineStage) -> Vec<&TimelineInterval> {
        let end = stage.start_s + stage.duration_s;
        let intervals = self.timeline.intervals.iter();
        let whole = intervals.filter(|interval| {
            interval.start_s >= stage.start_s - 1e-6
                && interval.start_s + interval.length_s <= end + 1e-6
        });
        whole.collect()
    }

    fn model(&self, stage: &TimelineStage) -> LoadModel {
        let stages = self.metadata.stages.iter();
        let mut found = stages.filter(|info| info.name == stage.name).map(|info| info.model);
        found.next_back().unwrap_or_default()
    }

    fn backlog(&self, stage: &TimelineStage) -> Option<Backlog> {
        let intervals = self.intervals(stage);
        let (count, length) = (intervals.len(), intervals.first()?.length_s);
        let is_judged = !stage.warmup && self.model(stage) == LoadModel::Open;
        if !is_judged || length * (count as f64) < LEAST_OVERLOAD_S || count < 4 {
            return None;
        }
        let quarter = |from: usize| {
            let part = &intervals[count * from / 4..count * (from + 1) / 4];
            part.iter().map(|interval| in_flight(interval)).sum::<u64>() as f64 / part.len() as f64
        };
        let grows = quarter(3) > quarter(2) && quarter(2) > quarter(1);
        let half = &intervals[count / 2..];
        let groups = half.iter().flat_map(|interval| &interval.groups);
        let own = groups.clone().filter(|group| group.stage == stage.name);
        let planned: u64 = own.map(|group| group.due).sum();
        let done: u64 = groups.map(|group| group.counters.answered()).sum();
        let (planned, done) = (planned as f64, done as f64);
        let (errors, least, share) = OVERLOAD;
        let lacks =
            planned - done > (errors * (planned + done).sqrt()).max(least).max(share * planned);
        let early = &intervals[..count.div_ceil(4)];
        let answers = early.iter().chain(&intervals).flat_map(|interval| &interval.groups);
        let answer = answers
            .filter(|group| group.stage == stage.name)
            .find_map(|group| median_ms(&group.times.get(Metric::ResponseTime.key())?.bins))?;
        let is_long = stage.duration_s * 1e3 > 2.0 * answer;
        let seconds = length * half.len() as f64;
        (grows && lacks && is_long).then(|| Backlog {
            stage: stage.name.clone(),
            planned_per_s: planned / seconds,
            done_per_s: done / seconds,
            in_flight: intervals.last().map_or(0, |interval| in_flight(interval)),
        })
    }

    fn changes(&self, stage: &TimelineStage) -> Vec<Change> {
        let intervals = self.intervals(stage);
        if stage.warmup || self.is_ramp(stage, &intervals) {
            return Vec::new();
        }
        let targets = self.timeline.targets.iter();
        targets.filter_map(|target| self.change(stage, &intervals, target)).collect()
    }

    /// Whether the load of the halves of a stage differs.
    fn is_ramp(&self, stage: &TimelineStage, intervals: &[&TimelineInterval]) -> bool {
        let is_open = self.model(stage) == LoadModel::Open;
        let (first, second) = intervals.split_at(intervals.len() / 2);
        let load_of = |interval: &&TimelineInterval| -> u64 {
            let own = interval.groups.iter().filter(|group| group.stage == stage.name);
            if is_open { own.map(|group| group.due).sum() } else { interval.in_flight.iter().sum() }
        };
        let mean = |part: &[&TimelineInterval]| {
            part.iter().map(load_of).sum::<u64>() as f64 / part.len().max(1) as f64
        };
        let (first, second) = (mean(first), mean(second));
        first.max(second) > RAMP * first.min(second) + 1.0
    }

    fn change(
        &self,
        stage: &TimelineStage,
        intervals: &[&TimelineInterval],
        target: &str,
    ) -> Option<Change> {
        let metric = match self.model(stage) {
            LoadModel::Open => Metric::ResponseTime,
            LoadModel::Closed => Metric::ServiceTime,
        };
        let medians: Vec<_> = intervals
            .iter()
            .filter(|interval| interval.disturbed_s <= 0.0)
            .filter_map(|interval| {
                let mut groups = interval.groups.iter();
                let own =
                    groups.find(|group| group.stage == stage.name && group.target == target)?;
                Some((interval.start_s, median_ms(&own.times.get(metric.key())?.bins)?))
            })
            .collect();
        let length = medians.len() as f64 * self.timeline.interval_s;
        let Step { index, before, after } = change::find(&medians, length)?;
        Some(Change {
            stage: stage.name.clone(),
            target: target.to_owned(),
            at_s: medians[index].0,
            before_ms: before,
            after_ms: after,
        })
    }
}

fn in_flight(interval: &TimelineInterval) -> u64 {
    interval.in_flight.iter().sum()
}
