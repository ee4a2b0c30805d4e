//! From what was collected to the files of a run.

use std::collections::BTreeMap;

use plimsoll_measure::{Moment, StageId, TargetId};

use super::compact::{self, CompactDistribution};
use super::{Slice, TIMED, TimeSeries, Times};
use crate::catalog::Metric;
use crate::distribution::Distribution;
use crate::error::MetricsError;
use crate::group_stats::unfinished;
use crate::health::{DisturbedWindow, InstrumentHealth, Lag};
use crate::process_use::ProcessTrack;
use crate::quantile::QUANTILES;
use crate::results::DistributionSummary;
use crate::results::distribution_summary::Ends;
use crate::run_metadata::RunMetadata;
use crate::server_load::ServerTrack;
use crate::time_facts::TimeFacts;
use crate::timeline::{
    RunTimeline, SCHEMA, TimelineGroup, TimelineInterval, TimelineStage, TimelineTimes, bins,
};

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
    #[must_use]
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
                compact::add(&mut lag, slice.pacing_lag.as_ref());
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
    }
}

fn value_of(summary: &DistributionSummary, key: &str) -> Option<f64> {
    let quantile = QUANTILES.iter().find(|known| known.key == key)?;
    summary.figure(quantile).map(|figure| figure.value)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time in a run")]
fn nanos(seconds: f64) -> u64 {
    (seconds.max(0.0) * 1e9) as u64
}
