//! A workload as it is prepared once and shared by all conversations.

use std::sync::Arc;

use plimsoll_measure::{ConversationKey, IdSeed, Seed, TargetId};

use crate::id::ConversationId;
use crate::mix::ScenarioMix;
use crate::prompt_builder::PromptBuilder;
use crate::scenario::Scenario;
use crate::trace::{Trace, TraceRow};

/// Everything that the conversations of a run share.
#[derive(Debug)]
pub(crate) struct PreparedWorkload {
    pub(crate) scenarios: Vec<Scenario>,
    pub(crate) trace: Option<Trace>,
    pub(crate) prompts: PromptBuilder,
    pub(crate) mix: ScenarioMix,
    pub(crate) seed: Seed,
    pub(crate) ids: IdSeed,
    /// By target, one at least: precedes text that its conversations share, in `bust` mode.
    pub(crate) run_markers: Vec<ConversationId>,
    /// Targets of a comparison, whose conversations have the same content; else 1.
    pub(crate) targets: u16,
    /// Whether the model's answers are replaced by texts of our own.
    pub(crate) canned: bool,
}

impl PreparedWorkload {
    /// A row of the trace, if there is a trace and it has that row.
    pub(crate) fn row(&self, row: Option<u64>) -> Option<TraceRow<'_>> {
        self.trace.as_ref()?.row(row?)
    }

    /// The prompts that are to be sent in order, each once; only where there is one scenario.
    fn ordered_prompts(&self) -> Option<&[Arc<str>]> {
        self.scenarios.first()?.ordered_prompts()
    }

    /// Whether prompts are to be sent in order.
    pub(crate) fn is_ordered(&self) -> bool {
        self.ordered_prompts().is_some()
    }

    /// The number of these prompts.
    pub(crate) fn ordered_count(&self) -> Option<u64> {
        self.ordered_prompts().map(|prompts| prompts.len() as u64)
    }

    /// One of these prompts.
    pub(crate) fn ordered_prompt(&self, row: u64) -> Option<&Arc<str>> {
        self.ordered_prompts()?.get(usize::try_from(row).ok()?)
    }

    /// The conversation whose content this one has, and its target.
    #[inline]
    pub(crate) const fn content_of(&self, key: ConversationKey) -> (ConversationKey, TargetId) {
        key.block(self.targets)
    }

    /// What precedes the text that the conversations of a target share.
    pub(crate) fn run_marker(&self, target: TargetId) -> ConversationId {
        let first = self.run_markers[0];
        self.run_markers.get(target.index()).copied().unwrap_or(first)
    }
}
