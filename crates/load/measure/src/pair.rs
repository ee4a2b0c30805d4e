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
    /// The turn in it, from 0.
    pub turn: u16,
    /// The stage in which the block was intended to begin.
    pub stage: StageId,
    /// The scenario that the turn is an instance of.
    pub scenario: ScenarioId,
    /// The earliest intended start of its turns, after the run's start.
    pub start: Nanos,
    /// Where each target was loaded alone, one after the other: the round of these windows, from
    /// 0. `None` where the targets were loaded beside each other.
    pub window: Option<u32>,
    /// By target, in the order of the plan. `None`: it was not carried out.
    pub turns: Vec<Option<PairedTurn>>,
}

/// What one target did with the turn of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct PairedTurn {
    /// Which place it had in the order of the targets, from 0.
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
    /// What the generator itself may have added to its instants.
    pub generator: GeneratorShare,
    /// The policy decision that the scenario expects, if it states one.
    pub expected: Option<PolicyDecision>,
    /// The target's policy decision, if it responded.
    pub decision: Option<PolicyDecision>,
    /// Output tokens as the target reports them; 0 if it reports none.
    pub output_tokens: u32,
    /// Input tokens, likewise.
    pub input_tokens: u32,
    /// HTTP status of an answer; 0 if unknown.
    pub status: u16,
    /// Why the model stopped, if the target said so.
    pub finish_reason: Option<FinishReason>,
    /// Bytes of text, reasoning and tool calls; 0 if unknown.
    pub content_bytes: u32,
    /// Digest of these; 0 if unknown.
    pub content_digest: u32,
    /// Digest of the model that the answer names; 0 if it names none.
    pub model: u32,
    /// Whether the answer had reasoning.
    pub reasoning: bool,
    /// Whether it called tools.
    pub tool_calls: bool,
    /// Whether it used a connection that had been used before.
    pub reused: bool,
}

impl PairedTurn {
    /// Whether the policy decision is the expected one. `None` if nothing is expected, or if there
    /// was no response.
    pub fn as_expected(&self) -> Option<bool> {
        Some(self.expected? == self.decision?)
    }
}
