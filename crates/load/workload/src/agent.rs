//! Agents: conversations in which each response decides the next request.
//!
//! - `rules`: the validated agent of a scenario
//! - `requests`: the requests to tools and for approvals
//! - `task`: the loop of one conversation

mod rules;
mod task;

pub(crate) use rules::AgentRules;
pub(crate) use task::{Answer, Task, name_calls};
