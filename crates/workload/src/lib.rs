//! What: scenario mix, conversations and turns, prompt synthesis, cache busting, traces.
//!
//! A conversation is a function of (spec, seed, [`plimsoll_measure::ConversationKey`]): which worker or
//! shard carries it makes no difference to what is said.

pub mod spec;

pub use spec::{
    CacheMode, Content, DurationSpec, HttpSpec, PrefixPool, ScenarioSpec, SystemPrompt,
    TraceFormat, TraceSpec,
};
