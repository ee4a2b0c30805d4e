//! A workload that all conversations share.

use std::collections::HashSet;
use std::sync::{Arc, RwLock};

use plimsoll_measure::{ConversationKey, IdSeed, ScenarioId, Seed, TargetId};

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
    /// By target, at least one: the marker in front of shared text, in `bust` mode.
    pub(crate) run_markers: Vec<ConversationId>,
    /// Number of targets in a comparison, whose conversations have the same content; else 1.
    pub(crate) targets: u16,
    /// Whether canned texts replace the model's responses.
    pub(crate) canned: bool,
    /// The shared prefixes that requests have sent: scenario, target and number of each.
    pub(crate) sent_prefixes: RwLock<HashSet<(ScenarioId, TargetId, u64)>>,
}

impl PreparedWorkload {
    /// The recorded session of a conversation, from the trace or from the scenario's file.
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

    /// The sessions to send once each, in order. They require a single scenario.
    pub(crate) fn ordered_sessions(&self) -> Option<&Trace> {
        let (trace, ordered) = self.scenarios.first()?.recorded()?;
        Some(&**trace).filter(|_| ordered)
    }

    /// The conversation that determines the content, and the target.
    #[inline]
    pub(crate) const fn content_of(&self, key: ConversationKey) -> (ConversationKey, TargetId) {
        key.block(self.targets)
    }

    /// The marker in front of text that the conversations of a target share.
    pub(crate) fn run_marker(&self, target: TargetId) -> ConversationId {
        let first = self.run_markers[0];
        self.run_markers.get(target.index()).copied().unwrap_or(first)
    }
}
