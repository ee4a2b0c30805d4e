//! Facts about an LLM request or a tool call for its log row.

use std::cell::Cell;
use std::sync::Arc;

use plimsoll_gateway_dialect::{StreamStatus, Usage};

/// Facts about an LLM request or a tool call for its log row.
#[derive(Debug, Default)]
pub(crate) struct LlmInfo {
    pub(crate) model: Option<Arc<str>>,
    /// Request members that the translation omitted.
    pub(crate) left_out: Option<Arc<str>>,
    /// `hit`, `miss` or `bypass`.
    pub(crate) cache: Option<&'static str>,
    /// The most severe action that the policy took.
    pub(crate) policy_decision: Option<&'static str>,
    /// Ids of the policy rules that matched.
    pub(crate) rules: Vec<String>,
    /// The tool that was called, as `SERVER/TOOL`.
    pub(crate) tool: Option<Box<str>>,
    /// Outcome of the call.
    pub(crate) outcome: Option<&'static str>,
}

/// The usage of one response, for its log row.
#[derive(Debug, Default)]
pub(crate) struct ObservedUsage {
    usage: Cell<Option<Usage>>,
    truncated: Cell<bool>,
    failed: Cell<bool>,
    is_answer: Cell<bool>,
}

impl ObservedUsage {
    pub(crate) fn set(&self, usage: Option<Usage>) {
        self.usage.set(usage);
    }

    pub(crate) fn get(&self) -> Option<Usage> {
        self.usage.get()
    }

    /// Whether the ended response is a complete and good answer.
    pub(crate) fn is_answer(&self) -> bool {
        self.is_answer.get()
    }

    /// Whether the upstream's stream had an error event, or continued after its end.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.get()
    }

    /// Whether the upstream's stream ended before its last event, although the connection was
    /// closed properly.
    pub(crate) fn is_truncated(&self) -> bool {
        self.truncated.get()
    }

    /// Records how the response ended. `ending` is set for a stream.
    pub(crate) fn set_ending(&self, ending: Option<StreamStatus>, is_answer: bool) {
        self.truncated.set(ending == Some(StreamStatus::Truncated));
        self.failed.set(ending == Some(StreamStatus::Failed));
        self.is_answer.set(is_answer);
    }
}
