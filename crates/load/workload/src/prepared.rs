//! A workload as it is prepared once and shared by all conversations.

use std::sync::Arc;

use plimsoll_measure::{ConversationKey, IdSeed, Seed, TargetId};

use crate::id::ConversationId;
use crate::mix::ScenarioMix;
use crate::prompt_builder::PromptBuilder;
use crate::scenario::Scenario;
use crate::trace::Trace;

/// Everything that the conversations of a run share.
#[derive(Debug)]
pub(crate) struct PreparedWorkload {
    pub(crate) scenarios: Vec<Scenario>,
    pub(crate) trace: Option<Arc<Trace>>,
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
    /// The recorded session of a conversation: of the trace, or of the scenario's file.
    pub(crate) fn session(
        &self,
        scenario: &Scenario,
        row: Option<u64>,
        conversation: Seed,
    ) -> Option<(Arc<Trace>, usize)> {
        let row = row.and_then(|row| usize::try_from(row).ok());
        let own = self.trace.as_ref().zip(row).filter(|(trace, row)| *row < trace.len());
        if let Some((trace, row)) = own {
            return Some((Arc::clone(trace), row));
        }
        let (trace, ordered) = scenario.recorded()?;
        let row = row.filter(|row| ordered && *row < trace.len()).unwrap_or_else(|| {
            let choice = conversation.rng("session", 0).below(trace.len() as u64);
            usize::try_from(choice).unwrap_or_default()
        });
        Some((Arc::clone(trace), row))
    }

    /// The prompts that are to be sent in order, each once; only where there is one scenario.
    fn ordered_prompts(&self) -> Option<&[Arc<str>]> {
        self.scenarios.first()?.ordered_prompts()
    }

    /// The number of these prompts, or of recorded sessions of which the same is true.
    pub(crate) fn ordered_count(&self) -> Option<u64> {
        let prompts = self.ordered_prompts().map(<[_]>::len);
        prompts.or_else(|| self.ordered_sessions().map(Trace::len)).map(|count| count as u64)
    }

    fn ordered_sessions(&self) -> Option<&Trace> {
        let (trace, ordered) = self.scenarios.first()?.recorded()?;
        Some(&**trace).filter(|_| ordered)
    }

    /// The requests of one of them.
    pub(crate) fn ordered_turns(&self, row: u64) -> u64 {
        let row = usize::try_from(row).unwrap_or(usize::MAX);
        self.ordered_sessions().map_or(1, |trace| u64::from(trace.turns(row)))
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
