//! Agents: conversations whose requests the answers decide.
//!
//! - `rules`: a scenario's agent, checked and ready
//! - `requests`: the requests to tools and for approvals
//! - `task`: the loop of one conversation

mod requests;
mod rules;
mod task;

pub(crate) use rules::AgentRules;
pub(crate) use task::{Answer, Task, name_calls};
