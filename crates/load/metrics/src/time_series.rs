//! Collects what happened when while a run goes on, in bounded memory.
//!
//! ```text
//! Snapshot of a worker, once a second --add--> TimeSeries --TimeRecord::build--> RunTimeline
//! ```

use std::collections::BTreeMap;

use plimsoll_measure::{ErrorClass, Moment, Nanos, StageId, TargetId};
use serde::{Deserialize, Serialize};

use crate::catalog::{Counters, Metric};
use crate::distribution::{Distribution, ExactFigures, QUANTILES};
use crate::error::MetricsError;
use crate::group_stats::{GroupStats, unfinished};
use crate::health::{DisturbedWindow, InstrumentHealth, Lag};
use crate::results::DistributionSummary;
use crate::results::distribution_summary::Ends;
use crate::run_metadata::RunMetadata;
use crate::server_load::ServerTrack;
use crate::snapshot::Snapshot;
use crate::sparse_histogram::SparseHistogram;
use crate::stage_resources::ProcessTrack;
use crate::starts::FailedAt;
use crate::time_facts::{Moments, TENTHS, TimeFacts};
use crate::timeline::{
    RunTimeline, SCHEMA, TimelineGroup, TimelineInterval, TimelineStage, TimelineTimes, bins,
};

/// The metrics whose times are kept by interval.
pub const TIMED: [Metric; 4] =
    [Metric::ResponseTime, Metric::ServiceTime, Metric::Ttft, Metric::Itl];

/// The most intervals of a run.
pub const MAX_INTERVALS: u32 = 600;

const SECOND: u64 = 1_000_000_000;

/// Interval, stage and target.
type Key = (u32, StageId, TargetId);

/// Counts and times by interval, stage and target.
///
/// An interval is a second. Whenever there would be more than [`MAX_INTERVALS`], each two
/// neighbours become one. So memory depends on the stages and targets, not on the run's length.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TimeSeries {
    origin: Moment,
    /// Seconds of an interval, as a power of two.
    doublings: u32,
    slices: BTreeMap<Key, Slice>,
    /// When the run was over.
    end: Option<Moment>,
    /// Requests that ended, by target and tenth of a second; none once intervals are longer than a
    /// second.
    ended: BTreeMap<TargetId, Vec<u32>>,
    /// When requests were sent that failed.
    failed: BTreeMap<(StageId, TargetId), FailedAt>,
}

impl TimeSeries {
    /// An empty series of a run that began at `origin`.
    pub fn new(origin: Moment) -> Self {
        Self { origin, ..Self::default() }
    }

    /// Adds what a worker counted since its last snapshot, which it took at `at`.
    ///
    /// A snapshot that is up to half a second late belongs to the second before. The worker may
    /// have been stopped: then its counts belong to the second in which it went on.
    pub fn add(&mut self, at: Moment, snapshot: &Snapshot) {
        self.add_second(self.nearest_second(at).saturating_sub(1), snapshot);
    }

    /// Adds what a worker counted from its last snapshot at `from` until the run was over at `end`.
    pub fn add_rest(&mut self, from: Moment, end: Moment, snapshot: &Snapshot) {
        let last = self.nearest_second(end).saturating_sub(1);
        self.add_second(self.nearest_second(from).max(last), snapshot);
    }

    /// Notes when the run was over.
    pub fn end(&mut self, end: Moment) {
        self.end = self.end.max(Some(end));
    }

    /// The run's start, by its own clock.
    pub const fn origin(&self) -> Moment {
        self.origin
    }

    /// How far the counts go after the run's start, to the second.
    pub fn length(&self) -> Nanos {
        Nanos::new(u64::from(self.intervals()) * (SECOND << self.doublings))
    }

    /// Adds the series of another shard, which has its own clock: both are aligned by their starts.
    pub fn merge(&mut self, other: &Self) {
        while self.doublings < other.doublings {
            self.coarsen();
        }
        let finer = self.doublings - other.doublings;
        for ((index, stage, target), slice) in &other.slices {
            self.slices.entry((index >> finer, *stage, *target)).or_default().merge(slice);
        }
        for (target, ended) in &other.ended {
            let tenths = (0..).zip(ended).filter(|(_, count)| **count > 0);
            tenths.for_each(|(tenth, count)| self.ended_in(*target, tenth, *count));
        }
        for (key, failed) in &other.failed {
            self.failed.entry(*key).or_default().merge(failed);
        }
        if let Some(end) = other.end {
            self.end(self.origin + end.since(other.origin));
        }
    }

    fn nearest_second(&self, at: Moment) -> u32 {
        let nearest = (at.since(self.origin).as_u64() + SECOND / 2) / SECOND;
        u32::try_from(nearest).unwrap_or(u32::MAX)
    }

    /// Adds requests that ended in a second of the run.
    fn add_second(&mut self, second: u32, snapshot: &Snapshot) {
        for (key, cell) in snapshot.cells() {
            let (stage, target) = (key.stage, key.target);
            for (due, n) in cell.starts.due.iter() {
                self.slice(due, stage, target).due += u64::from(n);
            }
            let mut sent = 0;
            for (at, n) in cell.starts.sent.iter() {
                sent += u64::from(n);
                self.slice(at, stage, target).sent += u64::from(n);
            }
            for (tenth, n) in cell.starts.ended.iter() {
                self.ended_in(target, tenth, n);
            }
            self.failed.entry((stage, target)).or_default().merge(&cell.starts.failed);
            let slice = self.slice(second, stage, target);
            slice.ended_after_sent += sent;
            slice.add(cell);
        }
    }

    fn ended_in(&mut self, target: TargetId, tenth: u32, count: u32) {
        let most = MAX_INTERVALS as usize * TENTHS;
        let Ok(tenth) = usize::try_from(tenth) else { return };
        if self.doublings == 0 && tenth < most {
            let ended = self.ended.entry(target).or_default();
            ended.resize(ended.len().max(tenth + 1), 0);
            ended[tenth] = ended[tenth].saturating_add(count);
        }
    }

    fn slice(&mut self, second: u32, stage: StageId, target: TargetId) -> &mut Slice {
        while second >> self.doublings >= MAX_INTERVALS {
            self.coarsen();
        }
        self.slices.entry((second >> self.doublings, stage, target)).or_default()
    }

    /// Makes each two neighbours one.
    fn coarsen(&mut self) {
        self.doublings += 1;
        self.ended.clear();
        let mut halved: BTreeMap<Key, Slice> = BTreeMap::new();
        for ((index, stage, target), slice) in std::mem::take(&mut self.slices) {
            halved.entry((index / 2, stage, target)).or_default().merge(&slice);
        }
        self.slices = halved;
    }

    /// When requests to a target ended or failed, failures outside of warm-up alone.
    fn moments(&self, target: TargetId, metadata: &RunMetadata) -> Moments {
        let mut failed = FailedAt::default();
        for ((stage, of), own) in &self.failed {
            let stage = metadata.stages.get(stage.index());
            if *of == target && stage.is_none_or(|stage| !stage.warmup) {
                failed.merge(own);
            }
        }
        Moments { ended: self.ended.get(&target).cloned().unwrap_or_default(), failed }
    }

    /// Length of an interval.
    fn width(&self) -> Nanos {
        Nanos::new(SECOND << self.doublings)
    }

    /// The slices of an interval, by stage and target.
    fn of_interval(&self, index: usize) -> impl Iterator<Item = (StageId, TargetId, &Slice)> {
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        let first = (index, StageId(0), TargetId(0));
        let last = (index, StageId(u16::MAX), TargetId(u16::MAX));
        let slices = self.slices.range(first..=last);
        slices.map(|((_, stage, target), slice)| (*stage, *target, slice))
    }

    /// The number of intervals.
    fn intervals(&self) -> u32 {
        self.slices.last_key_value().map_or(0, |((index, ..), _)| index + 1)
    }
}

/// Counts and times of one stage and target in one interval.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Slice {
    /// Requests whose intended start is in the interval.
    due: u64,
    /// Requests dispatched in it.
    sent: u64,
    /// Requests that ended in it and had been dispatched.
    ended_after_sent: u64,
    counters: Counters,
    errors: BTreeMap<ErrorClass, u64>,
    statuses: BTreeMap<u16, u64>,
    pacing_lag: Option<CompactDistribution>,
    times: [Times; TIMED.len()],
}

/// The values of one metric.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Times {
    measured: Option<CompactDistribution>,
    /// The same without the generator's part, if that is another distribution.
    undisturbed: Option<CompactDistribution>,
}

impl Slice {
    /// Adds what a worker counted in the interval.
    fn add(&mut self, stats: &GroupStats) {
        let times = TIMED.map(|metric| Times {
            measured: stats.distribution(metric).map(CompactDistribution::from_distribution),
            undisturbed: stats.distribution(metric).and_then(|_| {
                stats.undisturbed(metric).as_ref().map(CompactDistribution::from_distribution)
            }),
        });
        self.merge(&Self {
            counters: *stats.counters(),
            errors: stats.errors().clone(),
            statuses: stats.statuses().clone(),
            pacing_lag: stats.pacing_lag().map(CompactDistribution::from_distribution),
            times,
            ..Self::default()
        });
    }

    fn merge(&mut self, other: &Self) {
        self.due += other.due;
        self.sent += other.sent;
        self.ended_after_sent += other.ended_after_sent;
        self.counters.merge(&other.counters);
        other.errors.iter().for_each(|(class, n)| *self.errors.entry(*class).or_default() += n);
        other.statuses.iter().for_each(|(code, n)| *self.statuses.entry(*code).or_default() += n);
        add_compact(&mut self.pacing_lag, other.pacing_lag.as_ref());
        for (mine, theirs) in self.times.iter_mut().zip(&other.times) {
            mine.merge(theirs);
        }
    }
}

impl Times {
    fn merge(&mut self, other: &Self) {
        if self.undisturbed.is_some() || other.undisturbed.is_some() {
            let mut without = self.undisturbed.take().or_else(|| self.measured.clone());
            add_compact(&mut without, other.undisturbed.as_ref().or(other.measured.as_ref()));
            self.undisturbed = without;
        }
        add_compact(&mut self.measured, other.measured.as_ref());
    }
}

// A distribution that takes little memory.

/// A distribution to full resolution, with exact sum and extremes.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct CompactDistribution {
    histogram: SparseHistogram,
    sum: u128,
    min: u64,
    max: u64,
}

impl CompactDistribution {
    fn from_distribution(distribution: &Distribution) -> Self {
        Self {
            histogram: SparseHistogram::from_distribution(Some(distribution)),
            sum: distribution.sum(),
            min: distribution.min().map_or(u64::MAX, Nanos::as_u64),
            max: distribution.max().map_or(0, Nanos::as_u64),
        }
    }

    fn merge(&mut self, other: &Self) {
        self.histogram.merge(&other.histogram);
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    fn restore(&self) -> Distribution {
        let exact = ExactFigures { sum: self.sum, min: self.min, max: self.max };
        let buckets = self.histogram.buckets();
        Distribution::from_buckets(buckets.map(|(bucket, n)| (bucket, u64::from(n))), &exact)
    }
}

/// Adds `other` to `mine`.
fn add_compact(mine: &mut Option<CompactDistribution>, other: Option<&CompactDistribution>) {
    match (mine, other) {
        (_, None) => {}
        (Some(mine), Some(other)) => mine.merge(other),
        (mine @ None, Some(other)) => *mine = Some(other.clone()),
    }
}

// From what was collected to the files of a run.

/// Time series of a run, for `timeline.json` and `histograms.hlog`.
#[derive(Clone, Debug, Default)]
pub struct TimeRecord {
    /// Counts and figures.
    pub timeline: RunTimeline,
    /// Every distribution of an interval to full resolution, in the order of time.
    pub histograms: Vec<IntervalHistogram>,
    /// Changes during the run.
    pub facts: TimeFacts,
}

/// A distribution of an interval, a stage and a target.
#[derive(Clone, Debug, PartialEq)]
pub struct IntervalHistogram {
    /// Start of the interval, in seconds from the start of the load.
    pub start_s: f64,
    /// Its length in seconds.
    pub length_s: f64,
    /// Whether the stage is a warm-up.
    pub warmup: bool,
    /// Name of the target.
    pub target: String,
    /// The metric.
    pub metric: Metric,
    /// Largest value in milliseconds.
    pub max_ms: f64,
    /// HDR histogram in nanoseconds: V2 encoding, deflated, base64.
    pub histogram: String,
}

impl TimeRecord {
    /// The record of a run with this metadata and health. `tracks`: the CPU time of the watched
    /// processes.
    ///
    /// # Errors
    /// [`MetricsError::EncodeHistogram`], which only an exhausted memory can cause.
    pub fn build(
        series: &TimeSeries,
        metadata: &RunMetadata,
        health: &InstrumentHealth,
        tracks: &[ProcessTrack],
    ) -> Result<Self, MetricsError> {
        let origin_s = metadata.stages.first().map_or(0.0, |stage| stage.start_s);
        let stages = metadata.stages.iter().map(|stage| TimelineStage {
            name: stage.name.clone(),
            warmup: stage.warmup,
            start_s: stage.start_s - origin_s,
            duration_s: stage.duration_s,
        });
        let timeline = RunTimeline {
            schema: SCHEMA.to_owned(),
            name: metadata.run.name.clone(),
            run_id: metadata.run.run_id.clone(),
            started_unix_ns: metadata.run.started_unix_ns + nanos(origin_s),
            interval_s: series.width().as_secs_f64(),
            stages: stages.collect(),
            targets: metadata.targets.iter().map(|target| target.name.clone()).collect(),
            intervals: empty_intervals(series, &health.disturbed_windows, tracks),
        };
        let mut record = Self { timeline, ..Self::default() };
        record.fill(series)?;
        let targets = (0..).map(TargetId).take(metadata.targets.len());
        let moments: Vec<_> = targets.map(|target| series.moments(target, metadata)).collect();
        record.facts = TimeFacts::collect(&record.timeline, metadata, &moments);
        Ok(record)
    }

    /// Adds the figures of servers to each interval.
    pub fn with_servers(mut self, series: &TimeSeries, servers: &[ServerTrack]) -> Self {
        let origin_s = series.origin().since(Moment::EPOCH).as_secs_f64();
        for interval in &mut self.timeline.intervals {
            let from_s = origin_s + interval.start_s;
            let to_s = from_s + interval.length_s;
            let figures = servers.iter().map(|one| (one.name.clone(), one.figures(from_s, to_s)));
            interval.servers = figures.filter(|(_, figures)| !figures.is_empty()).collect();
        }
        self
    }

    fn fill(&mut self, series: &TimeSeries) -> Result<(), MetricsError> {
        let mut in_flight = vec![0u64; self.timeline.targets.len()];
        for index in 0..self.timeline.intervals.len() {
            let mut lag = None;
            for (stage, target, slice) in series.of_interval(index) {
                add_compact(&mut lag, slice.pacing_lag.as_ref());
                go_on(&mut in_flight, target, slice);
                self.add_group(index, stage, target, slice)?;
            }
            let interval = &mut self.timeline.intervals[index];
            interval.pacing_lag_ms = lag.and_then(|lag| Lag::from_distribution(&lag.restore()));
            interval.in_flight.clone_from(&in_flight);
        }
        Ok(())
    }

    fn add_group(
        &mut self,
        index: usize,
        stage: StageId,
        target: TargetId,
        slice: &Slice,
    ) -> Result<(), MetricsError> {
        let stage = self.timeline.stages.get(stage.index());
        let warmup = stage.is_some_and(|stage| stage.warmup);
        let target = self.timeline.targets.get(target.index()).cloned().unwrap_or_default();
        let stage = stage.map(|stage| stage.name.clone()).unwrap_or_default();
        let interval = &mut self.timeline.intervals[index];
        let mut times = BTreeMap::new();
        for (metric, values) in TIMED.iter().zip(&slice.times) {
            let Some(measured) = &values.measured else { continue };
            let whole = measured.restore();
            let summary = summarize(*metric, values, &whole, unfinished(&slice.counters, *metric))?;
            times.insert(metric.key().to_owned(), figures(&summary, &whole));
            self.histograms.push(IntervalHistogram {
                start_s: interval.start_s,
                length_s: interval.length_s,
                warmup,
                target: target.clone(),
                metric: *metric,
                max_ms: summary.raw_mean_min_max()[2],
                histogram: summary.histogram,
            });
        }
        interval.groups.push(TimelineGroup {
            stage,
            target,
            due: slice.due,
            sent: slice.sent,
            counters: slice.counters,
            errors: slice.errors.iter().map(|(class, n)| (class.name().to_owned(), *n)).collect(),
            statuses: slice.statuses.iter().map(|(code, n)| (code.to_string(), *n)).collect(),
            times,
        });
        Ok(())
    }
}

/// Counts the requests of a target that are in flight after an interval.
fn go_on(in_flight: &mut [u64], target: TargetId, slice: &Slice) {
    if let Some(open) = in_flight.get_mut(target.index()) {
        *open = (*open + slice.sent).saturating_sub(slice.ended_after_sent);
    }
}

/// The intervals, with the figures of all their requests together.
fn empty_intervals(
    series: &TimeSeries,
    disturbed: &[DisturbedWindow],
    tracks: &[ProcessTrack],
) -> Vec<TimelineInterval> {
    let width = series.width().as_secs_f64();
    let end = series.end.map_or(f64::MAX, |end| end.since(series.origin).as_secs_f64());
    (0..series.intervals())
        .map(|index: u32| {
            let start_s = f64::from(index) * width;
            let end_s = (start_s + width).min(end);
            // The last requests may be counted a moment after the run was over.
            let length_s = if end_s > start_s { end_s - start_s } else { width };
            TimelineInterval {
                start_s,
                length_s,
                disturbed_s: disturbed.iter().map(|window| overlap(window, start_s, end_s)).sum(),
                cores: tracks
                    .iter()
                    .filter_map(|track: &ProcessTrack| {
                        Some((track.name.clone(), track.cores(start_s, start_s + length_s)?))
                    })
                    .collect(),
                ..TimelineInterval::default()
            }
        })
        .collect()
}

/// For how long a window lies in an interval, in seconds.
fn overlap(window: &DisturbedWindow, from: f64, to: f64) -> f64 {
    ((window.start_s + window.length_s).min(to) - window.start_s.max(from)).max(0.0)
}

/// Summarizes an interval by the rules of a run.
fn summarize(
    metric: Metric,
    times: &Times,
    whole: &Distribution,
    unfinished: u64,
) -> Result<DistributionSummary, MetricsError> {
    let least = times.undisturbed.as_ref().map(CompactDistribution::restore);
    let mut summary = DistributionSummary::from_distribution(whole)?;
    summary.add_bounds(metric, whole, &Ends { least, most: None }, unfinished)?;
    Ok(summary)
}

fn figures(summary: &DistributionSummary, whole: &Distribution) -> TimelineTimes {
    TimelineTimes {
        count: summary.count,
        p50: value_of(summary, "p50"),
        p90: value_of(summary, "p90"),
        p99: value_of(summary, "p99"),
        max: Some(summary.max_figure().value),
        refused: summary
            .refused
            .clone()
            .into_iter()
            .filter(|(key, _)| ["p50", "p90", "p99", "max"].contains(&key.as_str()))
            .collect(),
        bins: bins(whole),
        median_ms: whole.nearest_rank(0.5).map(Nanos::as_millis_f64),
    }
}

fn value_of(summary: &DistributionSummary, key: &str) -> Option<f64> {
    let quantile = QUANTILES.iter().find(|known| known.key == key)?;
    summary.figure(quantile).map(|figure| figure.value)
}

#[expect(clippy::cast_possible_truncation, reason = "a time in a run")]
fn nanos(seconds: f64) -> u64 {
    (seconds.max(0.0) * 1e9) as u64
}
