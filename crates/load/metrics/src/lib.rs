//! Count and judge: recorders, snapshots, merge, summary, thresholds, validity.
//!
//! - [`catalog`]: the one table of metrics, from which every report, threshold and page is made
//! - [`Recorder`]: what a worker counts, without lock; [`Snapshot`]: what is merged
//! - [`RunSummary`]: the merged result, as `summary.json` holds it
//! - [`Threshold`] and [`Judgement`]: was the target good enough?
//! - [`InstrumentHealth`] and [`Validity`]: was the instrument?
//!
//! ```text
//! Recorder::take -> Snapshot --merge--> Snapshot + RunMetadata + InstrumentHealth -> RunSummary
//! ```
//!
//! Nothing here knows async, HTTP, files or terminals.

pub mod accounting;
mod batches;
pub mod catalog;
pub mod cell;
pub mod confidence;
pub mod confusion;
pub mod distribution;
pub mod environment;
pub mod error;
pub mod facts;
pub mod health;
pub mod process;
pub mod quantile;
pub mod recorder;
pub mod snapshot;
pub mod summary;
pub mod threshold;
pub mod validity;

pub use accounting::Accounting;
pub use batches::WITH_INTERVALS;
pub use catalog::{Counters, Figure, Metric, Population, Rates, Unit};
pub use cell::{GroupKey, GroupStats};
pub use confidence::{Interval, NoIntervalReason};
pub use confusion::ConfusionMatrix;
pub use distribution::Distribution;
pub use environment::Environment;
pub use error::MetricsError;
pub use facts::{Expectation, LoadModel, RunEnd, RunInfo, RunMetadata, StageInfo, TargetInfo};
pub use health::{CalibrationQuote, Conversations, InstrumentHealth, Lag, LittlesLaw};
pub use process::ProcessUse;
pub use quantile::{QUANTILES, Quantile, samples_needed};
pub use recorder::Recorder;
pub use snapshot::Snapshot;
pub use summary::{DistributionSummary, Group, RunSummary};
pub use threshold::{Band, BandLevel, BandResult, Judgement, Scope, Threshold, ThresholdResult};
pub use validity::{Assessment, ClosedStage, Evidence, Reason, Validity, judge_health};
