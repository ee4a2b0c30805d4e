//! Changes during a run: moments that a summary without its timeline could not report.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalog::Metric;
use crate::run_metadata::{LoadModel, RunEnd, RunMetadata};
use crate::starts::{FailedAt, FailedBy};
use crate::timeline::{RunTimeline, TimelineGroup, TimelineInterval, TimelineStage};

/// Requests due in an interval of an open stage, or those in flight.
fn load_of(interval: &TimelineInterval, stage: &str, is_open: bool) -> u64 {
    if !is_open {
        return interval.in_flight.iter().sum();
    }
    interval.groups.iter().filter(|group| group.stage == stage).map(|group| group.due).sum()
}

// A change point of medians: Pettitt's rank CUSUM (1979).
//
// A step must fit better than a line: trends are not changes. `simulation.rs` has the false alarms
// and the power: none in stationary, bursty and autocorrelated runs and those with a linear trend;
// in up to 1 % of runs with a trend and strong autocorrelation. In 30 s it finds a factor of 2 in
// 99 %, with bursts in 62 %, with strong autocorrelation in 50 %.

/// Seconds that there must be.
const LEAST_S: f64 = 20.0;
/// Values on each side.
const LEAST: usize = 5;
/// Standard errors.
const LEAST_Z: f64 = 4.5;
/// The factor between the medians.
const LEAST_FACTOR: f64 = 1.7;
/// The share of values on the right side of the middle of the jump.
const SEPARATE: f64 = 0.8;
/// The drift within a side, as a share of the jump.
const MOST_DRIFT: f64 = 0.33;
/// The residual sum of squares of a step, divided by that of a line.
const MOST_OF_LINE: f64 = 0.6;
/// A step is clear where this share of the values lies within a part of the jump around the median
/// of their side.
const CLEAR: (f64, f64) = (0.85, 0.125);
/// The largest autocorrelation that is corrected for.
const MOST_CORRELATION: f64 = 0.9;

/// A step from one level to another.
struct Step {
    /// The first value of the new level.
    index: usize,
    /// The median before.
    before: f64,
    /// The median after.
    after: f64,
}

/// The step in a series of moments and medians that covers `length` seconds.
fn find_change(medians: &[(f64, f64)], length: f64) -> Option<Step> {
    let values: Vec<f64> = medians.iter().map(|(_, value)| value.ln()).collect();
    let n = values.len();
    if length < LEAST_S || n < 2 * LEAST + 2 {
        return None;
    }
    let ranks = ranks(&values);
    let index = split(&ranks);
    let (first, second) = values.split_at(index);
    let (before, after) = (median(first), median(second));
    let jump = after - before;
    let middle = f64::midpoint(before, after);
    let (low_first, low_second) = (share_below(middle, first), share_below(middle, second));
    let separate =
        if jump > 0.0 { low_first * (1.0 - low_second) } else { (1.0 - low_first) * low_second };
    let drift = drift(first).abs().max(drift(second).abs());
    let is_clear = [(first, before), (second, after)].iter().all(|(part, median)| {
        let near = part.iter().filter(|value| (*value - median).abs() <= CLEAR.1 * jump.abs());
        near.count() as f64 >= CLEAR.0 * part.len() as f64
    });
    let is_step = z(&ranks, index, is_clear) > LEAST_Z
        && jump.abs() >= LEAST_FACTOR.ln()
        && separate >= SEPARATE
        && drift < MOST_DRIFT * jump.abs()
        && fits_better(&values, index, before, after);
    is_step.then(|| Step { index, before: before.exp(), after: after.exp() })
}

/// Whether a step leaves much less than a line. Values beyond both levels count as half a step
/// beyond them.
fn fits_better(values: &[f64], index: usize, before: f64, after: f64) -> bool {
    let beyond = (after - before).abs() / 2.0;
    let (low, high) = (before.min(after) - beyond, before.max(after) + beyond);
    let values: Vec<f64> = values.iter().map(|value| value.clamp(low, high)).collect();
    let (first, second) = values.split_at(index);
    let centre = (values.len() as f64 - 1.0) / 2.0;
    let times: Vec<f64> = (0..values.len()).map(|at| at as f64 - centre).collect();
    let along: f64 = times.iter().zip(&values).map(|(time, value)| time * value).sum();
    let line = squares(&values) - along.powi(2) / times.iter().map(|time| time * time).sum::<f64>();
    squares(first) + squares(second) < MOST_OF_LINE * line
}

/// The sum of the squared distances from the mean.
fn squares(part: &[f64]) -> f64 {
    let mean = mean(part);
    part.iter().map(|value| (value - mean).powi(2)).sum()
}

fn share_below(middle: f64, part: &[f64]) -> f64 {
    part.iter().filter(|value| **value < middle).count() as f64 / part.len() as f64
}

/// The mid-ranks, less their mean.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mean = f64::midpoint(values.len() as f64, 1.0);
    values
        .iter()
        .map(|value: &f64| {
            let below = values.iter().filter(|other| *other < value).count() as f64;
            let equal = values.iter().filter(|other| other.total_cmp(value).is_eq()).count() as f64;
            below + f64::midpoint(equal, 1.0) - mean
        })
        .collect()
}

/// The place with the largest weighted cumulative sum.
fn split(ranks: &[f64]) -> usize {
    let n = ranks.len();
    let (mut sum, mut best) = (0.0, (0.0, LEAST));
    for (before, rank) in ranks.iter().enumerate() {
        let weight = ((before * (n - before)) as f64).sqrt().max(1.0);
        if (LEAST..=n - LEAST).contains(&before) && f64::abs(sum) / weight > best.0 {
            best = (f64::abs(sum) / weight, before);
        }
        sum += rank;
    }
    best.1
}

/// The difference of the mean ranks in standard errors, with the autocorrelation of the residuals.
/// Beside a clear step they are too small for their order to matter.
fn z(ranks: &[f64], index: usize, is_clear: bool) -> f64 {
    let (first, second) = ranks.split_at(index);
    let (n, before, after) = (ranks.len() as f64, first.len() as f64, second.len() as f64);
    let (low, high) = (mean(first), mean(second));
    let rest: Vec<f64> =
        first.iter().map(|rank| rank - low).chain(second.iter().map(|rank| rank - high)).collect();
    let squares: f64 = rest.iter().map(|value| value * value).sum();
    let products: f64 = rest.windows(2).map(|two| two[0] * two[1]).sum();
    let correlation = if is_clear { 0.0 } else { products / squares.max(1e-9) + 1.0 / n };
    let correlation = correlation.clamp(0.0, MOST_CORRELATION);
    let variance = (squares / (n - 2.0)).max(n * n / 12.0 * 0.02);
    let error = (variance * (1.0 + correlation) / (1.0 - correlation)).sqrt();
    (high - low).abs() / (error * (1.0 / before + 1.0 / after).sqrt())
}

fn mean(part: &[f64]) -> f64 {
    part.iter().sum::<f64>() / part.len() as f64
}

fn drift(part: &[f64]) -> f64 {
    let (first, second) = part.split_at(part.len() / 2);
    if part.len() < 4 { 0.0 } else { median(second) - median(first) }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.get(middle) {
        Some(upper) if sorted.len() % 2 == 1 => *upper,
        Some(upper) => f64::midpoint(sorted[middle - 1], *upper),
        None => 0.0,
    }
}

// The longest silence of a target.

/// Parts of a second in which ended requests are counted.
pub(crate) const TENTHS: usize = 10;
/// The shortest silence, in tenths.
const SILENCE_LEAST: usize = 3;
/// Times the 90th percentile of all silences.
const TIMES: f64 = 8.0;
/// The number of silences as long that chance explains.
const CHANCE: f64 = 1e-4;
/// Requests that must have ended.
const LEAST_ENDED: u64 = 30;
/// The 90th percentile of exponential gaps, in means.
const P90: f64 = 2.303;
/// Times the median response, so that users in lockstep are not silent.
const RESPONSES: f64 = 1.5;
/// Requests in flight, and multiples of the median response without any end, that make a silence
/// unusual.
const PILED: (u64, f64) = (5, 20.0);

/// The longest silence, if it is out of proportion without the pauses of Plimsoll in it.
fn longest(timeline: &RunTimeline, index: usize, target: &str, ended: &[u32]) -> Option<Silence> {
    // After the load the last requests end one by one.
    let load = timeline.stages.last().map(|last| (last.start_s + last.duration_s) * 10.0)?;
    let ended: Vec<u32> = ended
        .iter()
        .zip(0_u32..)
        .take_while(|(_, at)| f64::from(*at) < load)
        .map(|(count, _)| *count)
        .collect();
    let ended = ended.as_slice();
    let all: u64 = ended.iter().map(|count| u64::from(*count)).sum();
    let runs = silent_runs(ended);
    let (start, length) = runs.iter().copied().max_by_key(|(_, length)| *length)?;
    if length < SILENCE_LEAST || all < LEAST_ENDED {
        return None;
    }
    let (start_s, length_s) = (start as f64 / 10.0, length as f64 / 10.0);
    let intervals = timeline.intervals.iter();
    let overlapping: Vec<_> = intervals
        .filter(|interval| {
            interval.start_s < start_s + length_s
                && interval.start_s + interval.length_s > start_s - 1.0
        })
        .collect();
    // Those in flight are counted at the ends of intervals. A silence without such an end is judged
    // by those around it.
    let waiting = overlapping.iter().filter_map(|interval| {
        Some((interval.start_s + interval.length_s, *interval.in_flight.get(index)?))
    });
    let within =
        waiting.clone().filter(|(end, _)| *end > start_s + 0.1 && *end < start_s + length_s);
    let within = within.map(|(_, waiting)| waiting).min();
    let in_flight = within.or_else(|| waiting.map(|(_, waiting)| waiting).min())?;
    let response = response_ms(timeline, target)? / 100.0;
    let (many, responses) = PILED;
    let piled = if in_flight >= many { responses * response } else { f64::INFINITY };
    let least = (TIMES * usual_tenths(&runs, all, ended.len()))
        .min(piled)
        .max(by_chance(&runs, length))
        .max(RESPONSES * response);
    // Its own pauses explain no more than their length.
    let disturbed: f64 = overlapping.iter().map(|interval| interval.disturbed_s).sum();
    (length as f64 - 10.0 * disturbed >= least && in_flight > 0).then(|| Silence {
        target: target.to_owned(),
        start_s,
        length_s,
        in_flight,
    })
}

/// Start and length of each run without an end, between two ends.
fn silent_runs(ended: &[u32]) -> Vec<(usize, usize)> {
    let busy: Vec<usize> =
        ended.iter().enumerate().filter(|(_, count)| **count > 0).map(|(tenth, _)| tenth).collect();
    let gaps = busy.windows(2).map(|two| (two[0] + 1, two[1] - two[0] - 1));
    gaps.filter(|(_, length)| *length > 0).collect()
}

/// The length that chance explains, if the lengths of all other silences are geometric.
fn by_chance(runs: &[(usize, usize)], longest: usize) -> f64 {
    let others = runs.len() - 1;
    let all: usize = runs.iter().map(|(_, length)| length).sum();
    let goes_on = 1.0 - others as f64 / (all - longest).max(1) as f64;
    if others > 0 && goes_on > 0.0 {
        1.0 + (CHANCE / others as f64).ln() / goes_on.ln()
    } else {
        0.0
    }
}

/// The 90th percentile of the time between two ends, in tenths.
fn usual_tenths(runs: &[(usize, usize)], all: u64, tenths: usize) -> f64 {
    let beyond = usize::try_from(all / 10).unwrap_or(usize::MAX);
    let mut lengths: Vec<usize> = runs.iter().map(|(_, length)| length + 1).collect();
    lengths.sort_unstable_by(|a, b| b.cmp(a));
    let of_exponential = P90 * tenths as f64 / all as f64;
    lengths.get(beyond).map_or(of_exponential, |length| (*length as f64).max(of_exponential))
}

/// The median response of a target.
fn response_ms(timeline: &RunTimeline, target: &str) -> Option<f64> {
    let groups = timeline.intervals.iter().flat_map(|interval| &interval.groups);
    let own = groups.filter(|group| group.target == target);
    let medians: Vec<f64> =
        own.filter_map(|group| group.times.get(Metric::ServiceTime.key())?.median_ms).collect();
    (!medians.is_empty()).then(|| median(&medians))
}

#[cfg(test)]
mod simulation;

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
    /// Name of the target.
    #[serde(default)]
    pub target: String,
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
            backlogs: timeline.stages.iter().flat_map(|stage| view.backlogs(stage)).collect(),
            changes: timeline.stages.iter().flat_map(|stage| view.changes(stage)).collect(),
            silences: targets()
                .enumerate()
                .filter_map(|(index, (target, own))| longest(timeline, index, target, &own.ended))
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
/// The share of a time that pauses of Plimsoll may disturb without a part in its median.
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
            let parts = self.measured(target).map(|(interval, group)| {
                let (start, end) = (interval.start_s, interval.start_s + interval.length_s);
                let part = (end.min(to) - start.max(from)) / interval.length_s;
                // In a part of an interval, those that did not fail are spread evenly.
                let bad = moments.failed.bad.iter().filter(|_| part < 0.999);
                let bad = bad.filter(|(tenth, _)| (start..end).contains(&seconds(**tenth)));
                let bad: u64 = bad.flat_map(|(_, n)| n).sum();
                group.sent.saturating_sub(bad) as f64 * part.clamp(0.0, 1.0)
            });
            parts.sum::<f64>()
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
        let last_good = moments.failed.last_good?;
        let since_s = seconds(last_good + 1);
        let end = self.timeline.intervals.last().map(|last| last.start_s + last.length_s)?;
        let answer_s = response_ms(self.timeline, target)? / 1e3;
        let is_interrupted = self.metadata.run.ended == RunEnd::Interrupted;
        let (mut failed, mut all_failed) = (0, 0);
        for (tenth, [ended, open]) in &moments.failed.bad {
            let is_hung = !is_interrupted && end - seconds(*tenth) > HUNG_ANSWERS * answer_s;
            let bad = ended + open * u64::from(is_hung);
            all_failed += bad;
            failed += bad * u64::from(*tenth > last_good);
        }
        let good = self
            .measured(target)
            .map(|(_, group)| group.counters.answered().saturating_sub(group.counters.failures()));
        let all = good.sum::<u64>() + all_failed;
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

    fn backlogs(&self, stage: &TimelineStage) -> Vec<Backlog> {
        let targets = self.timeline.targets.iter().enumerate();
        targets.filter_map(|(index, target)| self.backlog(stage, index, target)).collect()
    }

    fn backlog(&self, stage: &TimelineStage, index: usize, target: &str) -> Option<Backlog> {
        let intervals = self.intervals(stage);
        let (count, length) = (intervals.len(), intervals.first()?.length_s);
        let is_judged = !stage.warmup && self.model(stage) == LoadModel::Open;
        if !is_judged || length * (count as f64) < LEAST_OVERLOAD_S || count < 4 {
            return None;
        }
        let quarter = |from: usize| {
            let part = &intervals[count * from / 4..count * (from + 1) / 4];
            part.iter().filter_map(|one| one.in_flight.get(index)).sum::<u64>() as f64
                / part.len() as f64
        };
        let grows = quarter(3) > quarter(2) && quarter(2) > quarter(1);
        let half = &intervals[count / 2..];
        let groups = half.iter().flat_map(|interval| &interval.groups);
        let groups = groups.filter(|group| group.target == target);
        let own = groups.clone().filter(|group| group.stage == stage.name);
        let due: Vec<f64> = own.map(|group| group.due as f64).collect();
        let (planned, done) = (
            due.iter().sum::<f64>(),
            groups.map(|group| group.counters.answered()).sum::<u64>() as f64,
        );
        let (errors, least, share) = OVERLOAD;
        // Arrivals at a constant rate do not vary.
        let variance = squares(&due).min(planned) + done;
        let lacks = planned - done > (errors * variance.sqrt()).max(least).max(share * planned);
        let early = &intervals[..count.div_ceil(4)];
        let answers = early.iter().chain(&intervals).flat_map(|interval| &interval.groups);
        let answer = answers
            .filter(|group| group.stage == stage.name && group.target == target)
            .find_map(|group| group.times.get(Metric::ResponseTime.key())?.median_ms)?;
        let is_long = stage.duration_s * 1e3 > 2.0 * answer;
        let seconds = length * half.len() as f64;
        let in_flight = *intervals.last()?.in_flight.get(index)?;
        (grows && lacks && is_long).then(|| Backlog {
            stage: stage.name.clone(),
            target: target.to_owned(),
            planned_per_s: planned / seconds,
            done_per_s: done / seconds,
            in_flight,
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
                Some((interval.start_s, own.times.get(metric.key())?.median_ms?))
            })
            .collect();
        let length = medians.len() as f64 * self.timeline.interval_s;
        let Step { index, before, after } = find_change(&medians, length)?;
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
