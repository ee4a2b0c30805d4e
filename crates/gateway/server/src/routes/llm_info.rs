//! Facts about an LLM request or a tool call that end up in its log row.

use std::sync::Arc;

/// Facts about an LLM request or a tool call that end up in its log row.
#[derive(Debug, Default)]
pub(crate) struct LlmInfo {
    pub(crate) model: Option<Arc<str>>,
    /// Members of the request that the translation left out.
    pub(crate) left_out: Option<Arc<str>>,
    /// `hit`, `miss` or `bypass`.
    pub(crate) cache: Option<&'static str>,
    /// The most severe action that the policy took.
    pub(crate) policy_decision: Option<&'static str>,
    /// Ids of the policy rules that matched.
    pub(crate) rules: Vec<String>,
    /// The tool that was called, as `SERVER/TOOL`.
    pub(crate) tool: Option<Box<str>>,
    /// What became of the call.
    pub(crate) outcome: Option<&'static str>,
}
