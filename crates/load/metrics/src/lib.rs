//! Counts requests, sums them up and judges the result.
//!
//! - [`catalog`]: the one table of metrics, from which every report, threshold and page is made
//! - [`Recorder`]: the counts of one worker, without locks; [`Snapshot`]: a copy that can be merged
//! - [`Results`]: the measured results, by stage, scenario, category and target
//! - [`TaskTally`] and [`TaskGroup`]: the tasks of agents
//! - [`TimeSeries`] and [`RunTimeline`]: what happened when
//! - [`Limit`] and [`Judgement`]: whether the target was good enough
//! - [`InstrumentHealth`]: measurements of Plimsoll itself
//! - [`TimeFacts`]: what changed during a run
//! - [`RunSummary`]: all of it, as `summary.json` holds it
//!
//! ```text
//! Recorder::take -> Snapshot --merge--> Snapshot + RunMetadata -> Results --judge--> RunSummary
//! ```
//!
//! This crate knows no async, HTTP, files or terminals.

mod batch_means;
pub mod bounded_figure;
pub mod catalog;
pub mod confidence;
pub mod confusion_matrix;
pub mod distribution;
mod edges;
pub mod error;
mod findings;
pub mod group_stats;
pub mod health;
pub mod limit;
pub mod recorder;
pub mod results;
pub mod run_metadata;
mod server_load;
pub mod shard_part;
pub mod snapshot;
mod sparse_histogram;
pub mod stage_resources;
mod starts;
pub mod stream_diagnosis;
mod summarize;
pub mod summary;
pub mod tasks;
pub mod time_facts;
pub mod time_series;
pub mod timeline;
mod token_tally;
mod without_generator;

pub use bounded_figure::{Bias, BoundedFigure, Refusal};
pub use catalog::{Counters, Disturbance, Figure, Metric, Population, Rates, Unit};
pub use confidence::Interval;
pub use confusion_matrix::ConfusionMatrix;
pub use distribution::{Distribution, QUANTILES, Quantile};
pub use edges::Edges;
pub use error::MetricsError;
pub use findings::{REFUSED_USAGE, UNLIKE_TOTAL, half_failed, words_of_failure};
pub use group_stats::{GroupKey, GroupStats};
pub use health::{CalibrationQuote, Conversations, DisturbedWindow, InstrumentHealth, Lag};
pub use limit::{
    BandLevel, Bound, Comparison, Gate, Judgement, Limit, Margin, Scope, ThresholdResult, Verdict,
    widened,
};
pub use plimsoll_rules::{Finding, Level, Rule};
pub use plimsoll_stats::runs::Worse;
pub use plimsoll_stats::{NoIntervalReason, samples_needed, samples_that_agree};
pub use recorder::Recorder;
pub use results::{
    DistributionSummary, Group, LimitedFigure, Middle, Results, ServerTiming, TokenRate,
};
pub use run_metadata::{
    Environment, Expectation, FailureKind, LoadModel, RunEnd, RunInfo, RunMetadata, StageInfo,
    TargetInfo,
};
pub use server_load::{ServerFigure, ServerLoad, ServerTrack, ServerValues};
pub use shard_part::{Interruption, Losses, ShardPart, ShardState};
pub use snapshot::{IntervalUpdate, ProcessNow, Snapshot};
pub use stage_resources::{
    Bottleneck, HostLoad, ProcessLoad, ProcessPlace, ProcessTrack, ProcessUse, QuotaLoad,
    StageResources, ThreadLoad,
};
pub use stream_diagnosis::{StreamDiagnosis, StreamWord};
pub use summary::{RunJudgement, RunSummary};
pub use tasks::{CountFigures, TaskGroup, TaskTally, TaskTime, TaskTotals};
pub use time_facts::TimeFacts;
pub use time_series::{IntervalHistogram, TimeRecord, TimeSeries};
pub use timeline::{RunTimeline, TimelineGroup, TimelineInterval, TimelineStage, TimelineTimes};
pub use token_tally::{TokenFigures, ValueSummary};
