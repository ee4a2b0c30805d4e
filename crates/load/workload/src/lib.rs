//! What: scenario mix, conversations and turns, prompt synthesis, cache busting, traces.
//!
//! A conversation is a function of (spec, seed, [`plimsoll_measure::ConversationKey`]): which worker or
//! shard carries it makes no difference to what is said.
//!
//! - [`spec`]: what a user can ask for
//! - [`workload`]: the mix, and everything that all conversations share
//! - [`conversation`]: turns in order, each fed by the answers to those before
//! - [`id`]: ids of conversations
//! - [`trace`]: recorded traffic
//! - [`error`]: what can be wrong
//!
//! Synthetic text is made of words that are exactly one token each by the estimate of four bytes per
//! token, so that a prompt of a given size is exactly of that size by the estimate; with a tokenizer
//! file it is so by the tokenizer.

pub mod conversation;
pub mod error;
mod gauge;
pub mod id;
mod lexicon;
mod materials;
mod mix;
mod request;
mod scenario;
pub mod spec;
mod template;
pub mod trace;
pub mod workload;

pub use conversation::Conversation;
pub use error::{
    ScenarioFault, ScenarioProblem, TemplateFault, TraceFault, TraceProblem, WindowFault,
    WorkloadError,
};
pub use id::{ConversationId, RequestId, conversation_id, id_rank, request_id};
pub use spec::{
    CacheMode, Content, DurationSpec, ExpectedDecision, HttpSpec, PolicyDecisionSpec, PrefixPool,
    ResponseMatch, ScenarioSpec, SystemPrompt, TraceFormat, TraceSpec,
};
pub use trace::{Trace, TraceRow};
pub use workload::Workload;
