//! The resolved plan of a comparison.

use std::collections::BTreeMap;

use plimsoll_measure::Nanos;
use plimsoll_schedule::{PairMode, PairOrder, PairSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a target is in a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetRole {
    /// One of those that are compared; the only target of a run that compares nothing.
    #[default]
    Candidate,
    /// What the others are compared with.
    Reference,
    /// The reference once more, or another way to the same. A difference between the two shows that
    /// the measurement is wrong.
    Control,
}

impl TargetRole {
    /// Whether it is the only role of a run that compares nothing.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What later turns of a chat repeat as the model's answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Replies {
    /// Texts of our own, the same for all targets.
    #[default]
    Canned,
    /// What the target answered.
    Live,
}

/// How the targets of a run are compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VersusPlan {
    /// How they share the time of open stages.
    pub schedule: PairMode,
    /// Their order.
    pub order: PairOrder,
    /// `spread`: the most time between two requests of a block.
    pub gap: Nanos,
    /// `turns`: the least length of a window.
    pub window: Nanos,
    /// How long each target is loaded alone, to see whether they disturb each other.
    pub alone: Nanos,
    /// What later turns repeat as answers.
    pub replies: Replies,
    /// How much worse than the best a target may be, as a share.
    pub margin: Option<f64>,
    /// Whether the run ends as soon as it is decided.
    #[serde(skip_serializing_if = "is_false")]
    pub decide: bool,
    /// How often the comparison is repeated.
    pub rounds: u32,
    /// From the start of one round to the start of the next.
    pub every: Option<Nanos>,
    /// Bounds on what targets add to the times of the reference: `added.ttft{target:a}` ->
    /// `["p(50)<200us"]`. They are read where they are judged.
    pub thresholds: BTreeMap<String, Vec<String>>,
}

impl VersusPlan {
    /// What makes pairs of the schedule of so many targets.
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

/// The start of the keys of bounds on what targets add.
pub const ADDED: &str = "added.";
