//! The content of a run: scenario mix, conversations, synthetic prompts, cache busting, traces.
//!
//! A conversation is a function of (spec, seed, [`plimsoll_measure::ConversationKey`]): it does not
//! depend on the worker or shard that runs it.
//!
//! - [`spec`]: scenarios and traces as a profile describes them
//! - [`workload`]: scenarios and prompts, checked and prepared for a run
//! - [`conversation`]: the turns of a conversation; answers become part of later requests
//! - `agent`: conversations whose requests the answers decide
//! - [`id`]: ids of conversations and requests
//! - [`trace`]: recorded traffic
//! - [`error`]: errors in all of these
//!
//! Synthetic text consists of words that are one token each in common tokenizers, so a prompt of a
//! given size has that size in them. With a tokenizer file it has exactly that size by the
//! tokenizer.

mod agent;
pub mod conversation;
pub mod error;
mod http_request;
pub mod id;
mod mix;
mod prepared;
mod prompt_builder;
mod scenario;
mod session;
pub mod spec;
mod synthetic_text;
mod template;
pub mod trace;
pub mod workload;

pub use conversation::Conversation;
pub use error::{ScenarioFault, ScenarioProblem, TemplateFault, WindowFault, WorkloadError};
pub use id::{ConversationId, RequestId, conversation_id, id_rank, request_id};
pub use prompt_builder::marked_id;
pub use session::{DiscoveryAnswer, RpcEnd, ToolDiscovery, offered_to_model};
pub use spec::{
    A2aAction, A2aSpec, A2aStep, AgentRole, AgentSpec, ApproveSpec, ByteRange, CacheMode, Content,
    DurationSpec, ExpectedDecision, HttpSpec, LengthDistribution, LengthSpec, LognormalLength,
    McpMethod, McpSpec, McpStep, PolicyDecisionSpec, PrefixPool, PromptOrder, ResponseMatch,
    ScenarioSpec, StatusSet, StatusSetError, SystemPrompt, ToolProtocol, WebSocketSpec, part_names,
    with_parts,
};
pub use trace::{ReplySource, Trace, TraceRow, TraceSpec, TrafficFile};
pub use workload::Workload;
