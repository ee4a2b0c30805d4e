//! Blocks of pairs: the same request, carried out on every target.

use crate::id::{ScenarioId, StageId};
use crate::outcome::{Outcome, PolicyDecision};
use crate::sample::GeneratorShare;
use crate::stream::FinishReason;
use crate::time::Nanos;

/// One turn of a conversation, carried out on every target of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The conversation of the plan, the same for all targets.
    pub index: u64,
    /// Turn in the conversation, from 0.
    pub turn: u16,
    /// Stage in which the block was intended to begin.
    pub stage: StageId,
    /// Scenario of the turn.
    pub scenario: ScenarioId,
    /// Earliest intended start of its turns, since the run's start.
    pub start: Nanos,
    /// Round of windows that load each target alone, from 0; `None` if the targets were loaded side
    /// by side.
    pub window: Option<u32>,
    /// Turns by target, in the order of the plan. `None`: not carried out.
    pub turns: Vec<Option<PairedTurn>>,
}

/// The turn of a block on one target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairedTurn {
    /// Position of the target in the order, from 0.
    pub position: u8,
    /// How it ended.
    pub outcome: Outcome,
    /// From its own intended start to its end.
    pub response: Option<Nanos>,
    /// From its dispatch to its end.
    pub service: Option<Nanos>,
    /// From its dispatch to the first token.
    pub ttft: Option<Nanos>,
    /// From its dispatch to the last token.
    pub last_token: Option<Nanos>,
    /// The longest gap between content events.
    pub longest_gap: Option<Nanos>,
    /// Number of gaps between content events.
    pub gaps: u32,
    /// Measurement error of its instants.
    pub generator: GeneratorShare,
    /// Expected policy decision, if the scenario defines one.
    pub expected: Option<PolicyDecision>,
    /// The target's policy decision, if it responded.
    pub decision: Option<PolicyDecision>,
    /// Output tokens as reported by the target; 0 if not reported.
    pub output_tokens: u32,
    /// Input tokens as reported by the target; 0 if not reported.
    pub input_tokens: u32,
    /// HTTP status of the response; 0 if unknown.
    pub status: u16,
    /// Finish reason, if the target sent one.
    pub finish_reason: Option<FinishReason>,
    /// Bytes of text without reasoning and tool calls; 0 if unknown.
    pub content_bytes: u32,
    /// Digest of all three; 0 if unknown.
    pub content_digest: u32,
    /// Digest of the model named in the response; 0 if it names none.
    pub model: u32,
    /// Whether the response had reasoning.
    pub reasoning: bool,
    /// Whether the response called tools.
    pub tool_calls: bool,
    /// Whether the connection was reused.
    pub reused: bool,
}

impl PairedTurn {
    /// Whether the policy decision was as expected. `None` without an expectation, or without a
    /// response.
    pub fn as_expected(&self) -> Option<bool> {
        Some(self.expected? == self.decision?)
    }
}
