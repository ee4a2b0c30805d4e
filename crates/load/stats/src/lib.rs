//! Statistics of measured times: intervals of one run, paired differences, tests and their power.
//!
//! - [`batches`]: the variance of a figure from batches in their order in time
//! - [`woodruff`]: a quantile of values with its interval; of paired differences, the *overhead*
//! - [`shift`]: the difference of the same quantile of two targets
//! - [`descriptive`]: mean, median, variance and spread of few values
//! - [`ratio`]: ratios of sums, such as CPU time per request
//! - [`sign_test`]: failures and refusals of only one side of a pair
//! - [`multiple`]: several comparisons at once
//! - [`looks`]: intervals that stay valid with early stopping
//! - [`runs`]: several rounds of a measurement, groups of runs, and smallest detectable differences
//! - [`normal`], [`student_t`], [`tails`]: textbook distributions
//!
//! Values are numbers without a unit; their order in time comes from the caller. This crate does
//! not use files, sockets or clocks. `docs/statistics.md` explains the methods for readers.

pub mod batches;
pub mod descriptive;
pub mod interval;
pub mod looks;
pub mod multiple;
pub mod normal;
pub mod ratio;
pub mod runs;
pub mod shift;
pub mod sign_test;
mod special;
pub mod student_t;
pub mod tails;
pub mod woodruff;

pub use batches::{BatchVariance, LimitCount, rounded};
pub use descriptive::{lower_rank, nearest_rank, samples_needed, samples_that_agree};
pub use interval::{BATCHES_NEEDED, Estimate, Interval, NoIntervalReason};
pub use looks::Looks;
