//! The vocabulary of Plimsoll: every other crate speaks in these words.
//!
//! - [`time`]: [`Moment`] (a point on the run's clock), [`Nanos`] (a length of time) and the [`Clock`]
//! - [`id`]: what a sample belongs to: stage, scenario, target, conversation
//! - [`outcome`]: how a scheduled request ended, and whose fault it was
//! - [`tokens`]: token counts that remember where they came from
//! - [`timeline`]: the instants of one turn, and the durations that the glossary defines on them
//! - [`sample`]: one measured turn, `Copy`, without heap
//! - [`draw`]: random numbers that are functions of (seed, stream, index)
//!
//! Nothing here knows HTTP, JSON, async or any other crate of the workspace.

pub mod draw;
pub mod id;
pub mod outcome;
pub mod sample;
pub mod time;
pub mod timeline;
pub mod tokens;

pub use draw::{Rng, Seed};
pub use id::{ConversationKey, ScenarioId, StageId, Stripe, TargetId};
pub use outcome::{ErrorClass, Outcome, PolicyDecision, Side};
pub use sample::{FlowControl, GapSummary, LATE_READ, Sample};
pub use time::{Clock, ManualClock, Moment, MonotonicClock, Nanos, ParseNanosError};
pub use timeline::{ConnectPhases, Timeline};
pub use tokens::{TokenCount, TokenSource, Usage};
