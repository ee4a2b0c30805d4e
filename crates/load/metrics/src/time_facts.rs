//! Changes during a run: moments that a summary without its timeline could not report.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalog::Metric;
use crate::run_metadata::{LoadModel, RunEnd, RunMetadata};
use crate::starts::{FailedAt, FailedBy};
use crate::time_facts::change::Step;
use crate::timeline::{RunTimeline, TimelineGroup, TimelineInterval, TimelineStage, median_ms};

mod change;
mod silence;
/// Requests due in an interval of an open stage, or those in flight.
fn load_of(interval: &TimelineInterval, stage: &str, is_open: bool) -> u64 {
    if !is_open {
        return interval.in_flight.iter().sum();
    }
    interval.groups.iter().filter(|group| group.stage == stage).map(|group| group.due).sum()
}

#[cfg(test)]
mod simulation;

pub(crate) use silence::TENTHS;

/// The key of requests that timed out, beside error classes and statuses.
pub const TIMED_OUT: &str = "timed_out";

/// Changes during a run, in seconds from the start of its load.
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
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FailureSpan {
    /// Name of the target.
    pub target: String,
    /// Error class, status, or `timed_out`.
    pub kind: String,
    /// When the first one was sent, if fewer before it than chance explains.
    pub since_s: Option<f64>,
    /// When the last one was sent, if fewer after it than chance explains.
    pub until_s: Option<f64>,
}

/// The failures at the end of a target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outage {
    /// Name of the target.
    pub target: String,
    /// After the last request that succeeded was sent.
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

/// Evidence about the requests to a target, beside the timeline.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moments {
    /// Those that ended, by tenth of a second; none where intervals are longer than a second.
    pub(crate) ended: Vec<u32>,
    /// Those that failed.
    pub(crate) failed: FailedAt,
}

impl TimeFacts {
    /// The facts of a timeline, with the moments of each target.
    pub(crate) fn collect(
        timeline: &RunTimeline,
        metadata: &RunMetadata,
        moments: &[Moments],
    ) -> Self {
        let view = View { timeline, metadata };
        let targets = || timeline.targets.iter().zip(moments);
        Self {
            failures: targets().flat_map(|(target, own)| view.failures(target, own)).collect(),
            outages: targets().filter_map(|(target, own)| view.outage(target, own)).collect(),
            backlogs: timeline.stages.iter().filter_map(|stage| view.backlog(stage)).collect(),
            changes: timeline.stages.iter().flat_map(|stage| view.changes(stage)).collect(),
            silences: targets()
                .enumerate()
                .filter_map(|(index, (target, own))| {
                    silence::longest(timeline, index, target, &own.ended)
                })
                .collect(),
        }
    }

    /// When failures of these kinds began and ended, at one target or at all, where that was later
    /// than the load's start and earlier than its end.
    pub(crate) fn span(
        &self,
        target: Option<&str>,
        kinds: impl Fn(&str) -> bool,
    ) -> (Option<f64>, Option<f64>) {
        let own = self.failures.iter().filter(|span: &&FailureSpan| {
            kinds(&span.kind) && target.is_none_or(|target| target == span.target)
        });
        let spans = own.map(|span| (span.since_s, span.until_s));
        spans
            .reduce(|one, other| {
                let earlier = one.0.zip(other.0).map(|(a, b): (f64, f64)| a.min(b));
                (earlier, one.1.zip(other.1).map(|(a, b): (f64, f64)| a.max(b)))
            })
            .unwrap_or_default()
    }
}

/// Seconds of the shortest stage that is judged for overload.
const LEAST_OVERLOAD_S: f64 = 8.0;
/// Standard errors, requests and share by which fewer requests end than are due in overload.
const OVERLOAD: (f64, f64, f64) = (2.3, 5.0, 0.02);
/// The chance of failures in a row at which an outage is one.
const OUTAGE_CHANCE: f64 = 0.001;
/// Failures at the end that are enough, or seconds if they are unlikely, or seconds in any case.
const OUTAGE: (u64, f64, f64) = (10, 2.0, 10.0);
/// Median responses after which a request without an end has failed.
const HUNG_ANSWERS: f64 = 3.0;
/// The share of failures before that is assumed at least.
const LEAST_SHARE: f64 = 0.05;
/// The share of a time that pauses of Plimsoll may disturb without a part in its median or silence.
const DISTURBED: f64 = 0.1;
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

    fn failures(&self, target: &str, moments: &Moments) -> Vec<FailureSpan> {
        let sent = |from: f64, to: f64| {
            let own = self.measured(target).filter(|(interval, _)| {
                interval.start_s >= from && interval.start_s + interval.length_s <= to
            });
            own.map(|(_, group)| group.sent).sum::<u64>() as f64
        };
        let all = sent(0.0, f64::MAX).max(1.0);
        let kinds = moments.failed.kinds.iter();
        let spans = kinds.map(|(kind, (first, last, n))| {
            let (since, until) = (seconds(*first), seconds(last + 1));
            // Failures at any time miss a part of the requests by a chance of `(1 - part)^n`.
            let is_gap = |sent: f64| *n as f64 * sent / all > -OUTAGE_CHANCE.ln();
            FailureSpan {
                target: target.to_owned(),
                kind: match kind {
                    FailedBy::Class(class) => class.name().to_owned(),
                    FailedBy::Status(status) => status.to_string(),
                    FailedBy::Timeout => TIMED_OUT.to_owned(),
                },
                since_s: Some(since).filter(|since| is_gap(sent(0.0, *since))),
                until_s: Some(until).filter(|until| is_gap(sent(*until, f64::MAX))),
            }
        });
        spans.collect()
    }

    fn outage(&self, target: &str, moments: &Moments) -> Option<Outage> {
        let since_s = seconds(moments.failed.last_good? + 1);
        let end = self.timeline.intervals.last().map(|last| last.start_s + last.length_s)?;
        let load_ends = self.timeline.stages.last().map(|last| last.start_s + last.duration_s)?;
        let waited_ms = (end - load_ends) * 1e3;
        let answer_ms = silence::response_ms(self.timeline, target)?;
        let is_interrupted = self.metadata.run.ended == RunEnd::Interrupted;
        let is_hung = !is_interrupted && waited_ms > HUNG_ANSWERS * answer_ms;
        let (mut failed, mut all, mut all_failed) = (0, 0, 0);
        for (interval, group) in self.measured(target) {
            let open = if is_hung { group.counters.in_flight } else { 0 };
            let bad = group.counters.failures() + open;
            let ended = group.counters.answered() + open;
            if interval.start_s + interval.length_s > since_s && bad == ended {
                failed += bad;
            }
            all += ended;
            all_failed += bad;
        }
        let before = (all_failed - failed) as f64 / (all - failed).max(1) as f64;
        let chance = before.max(LEAST_SHARE).powf(failed as f64) * all as f64;
        let (many, long, longest) = OUTAGE;
        let lasted = end - since_s;
        let is_unlikely = chance <= OUTAGE_CHANCE && (failed >= many || lasted >= long);
        (all > failed && failed > 1 && (is_unlikely || lasted >= longest)).then(|| Outage {
            target: target.to_owned(),
            since_s,
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
        let [first, second] = [first, second].map(|part| {
            let loads = part.iter().map(|interval| load_of(interval, &stage.name, is_open));
            loads.sum::<u64>() as f64 / part.len().max(1) as f64
        });
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
            .filter(|interval| interval.disturbed_s <= DISTURBED * interval.length_s)
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

fn seconds(tenth: u32) -> f64 {
    f64::from(tenth) / 10.0
}

fn in_flight(interval: &TimelineInterval) -> u64 {
    interval.in_flight.iter().sum()
}
