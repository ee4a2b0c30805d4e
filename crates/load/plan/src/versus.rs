//! The resolved plan of a comparison.

use std::collections::BTreeMap;

use plimsoll_measure::Nanos;
use plimsoll_schedule::{PairMode, PairOrder, PairSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The part of a target in a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetRole {
    /// A compared target; also the only target of a run without a comparison.
    #[default]
    Candidate,
    /// The target that the others are compared with.
    Reference,
    /// A second copy of the reference, or another path to the same upstream. A difference between
    /// the two shows that the measurement is wrong.
    Control,
}

impl TargetRole {
    /// Whether it is the role of a run without a comparison.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Source of the model's answers in later turns of a chat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Replies {
    /// Fixed texts, the same for all targets.
    #[default]
    Canned,
    /// The target's own answers.
    Live,
}

/// Options of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VersusPlan {
    /// How the targets share the time of open stages.
    pub schedule: PairMode,
    /// Order of the targets.
    pub order: PairOrder,
    /// `spread`: maximum time between two requests of a block.
    pub gap: Nanos,
    /// `turns`: minimum length of a window.
    pub window: Nanos,
    /// Time for which each target is loaded alone, to measure interference.
    pub alone: Nanos,
    /// Source of the model's answers in later turns.
    pub replies: Replies,
    /// Margin by which a target may be worse than the best one, as a share.
    pub margin: Option<f64>,
    /// Whether the run ends as soon as it is decided.
    #[serde(skip_serializing_if = "is_false")]
    pub decide: bool,
    /// Number of repetitions of the comparison.
    pub rounds: u32,
    /// Time from the start of one round to the start of the next.
    pub every: Option<Nanos>,
    /// Thresholds on overhead over the reference: `added.ttft{target:a}` -> `["p(50)<200us"]`.
    /// Their judge parses them.
    pub thresholds: BTreeMap<String, Vec<String>>,
}

impl VersusPlan {
    /// The pairing of the schedule for this number of targets.
    pub const fn pairs(&self, targets: u16) -> PairSpec {
        PairSpec {
            targets,
            mode: self.schedule,
            order: self.order,
            gap: self.gap,
            window: self.window,
            alone: self.alone,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// Prefix of thresholds on overhead.
pub const ADDED: &str = "added.";
