//! The shared vocabulary of the load generator: time, ids, outcomes, samples and random numbers.
//!
//! - [`time`]: [`Moment`] (a point on the run's clock), [`Nanos`] (a duration) and the [`Clock`]
//! - [`id`]: ids of stages, scenarios, targets, conversations and runs, and the parts of a run
//! - [`operation`]: operations of tool servers and agents
//! - [`outcome`]: how a scheduled request ended, and which side caused an error
//! - [`stream`]: how the content events of a stream arrived, and why it ended
//! - [`sample`]: one measured turn, `Copy`, without heap: its instants, the durations that the
//!   glossary defines on them, and token counts with their source
//! - [`task`]: one task of an agent: a conversation whose requests depend on the responses
//! - [`pair`]: the same turn on every target of a comparison
//! - [`server_report`]: times and states that a target reports in its response headers
//! - [`request_bounds`]: bounds on the times of a good request
//! - [`rng`]: random numbers that are functions of (seed, stream, index)
//!
//! The crate does not depend on HTTP, JSON, async or any other crate of the workspace.

pub mod id;
mod named_enum;
pub mod operation;
pub mod outcome;
pub mod pair;
pub mod request_bounds;
pub mod rng;
pub mod sample;
pub mod server_report;
pub mod stream;
pub mod task;
pub mod time;

pub use id::{
    ConversationKey, IdSeed, ParseRunIdError, RunId, ScenarioId, StageId, Stripe, TargetId,
};
pub use operation::{Operation, RpcReport};
pub use outcome::{ErrorClass, Outcome, PolicyDecision, Side};
pub use pair::{Block, PairedTurn};
pub use request_bounds::{RequestBounds, RequestBoundsError};
pub use rng::{Rng, Seed};
pub use sample::{
    AnswerContent, FlowControl, GapSummary, GeneratorShare, LATE_READ, LEAST_ONE_IN, LEAST_SHARE,
    LateRead, Sample, TokenCount, TokenSource, Usage,
};
pub use server_report::{
    CacheState, NAMED_PARTS, OTHER_PARTS, PartTimes, ServerParts, ServerReport,
};
pub use stream::{FinishReason, StreamReads, StreamShape};
pub use task::{TaskCounts, TaskEnd, TaskPart, TaskSample};
pub use time::{
    Clock, ConnectPhases, ManualClock, Moment, MonotonicClock, Nanos, ParseNanosError, Timeline,
};
