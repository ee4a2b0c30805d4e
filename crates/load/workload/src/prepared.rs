//! A workload as it is prepared once and shared by all conversations.

use plimsoll_measure::{IdSeed, Seed};

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
    /// Precedes text that conversations share, in `bust` mode.
    pub(crate) run_marker: ConversationId,
}

impl PreparedWorkload {
    /// A row of the trace, if there is a trace and it has that row.
    pub(crate) fn row(&self, row: Option<u64>) -> Option<TraceRow<'_>> {
        self.trace.as_ref()?.row(row?)
    }
}
