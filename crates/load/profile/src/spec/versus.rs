//! The keys of a comparison: its targets, and how they share the time.

use std::collections::BTreeMap;

use plimsoll_measure::Nanos;
use plimsoll_protocol::Dialect;
use plimsoll_schedule::{PairMode, PairOrder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use crate::byte_size::ByteSize;
use plimsoll_plan::Replies;

/// A target that `plimsoll versus` compares with the others.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetFile {
    /// Name in reports, unique among the targets: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Base URL, as in `target`.
    pub url: String,
    /// What it is. The others are compared with the one that is `direct`.
    #[serde(default)]
    pub role: RoleFile,
    /// Its key. Left out: that of the profile.
    #[serde(default)]
    pub key: Option<String>,
    /// Name of the model. Left out: that of the profile.
    #[serde(default)]
    pub model: Option<String>,
    /// Wire format of every scenario. Left out: that of the scenarios.
    #[serde(default)]
    pub protocol: Option<Dialect>,
    /// Headers of its requests, added to those of the profile.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Its process on this host, whose CPU and memory use is reported: `pid:4711`, or `:8080` by
    /// the port that it listens on.
    #[serde(default)]
    pub watch: Option<String>,
    /// The size of its container image or package, like `85MB`: it stands beside what is measured.
    #[serde(default)]
    pub image: Option<ByteSize>,
    /// How long its start takes, like `1.2s`: it stands beside what is measured.
    #[serde(default)]
    #[schemars(with = "Option<String>", extend("format" = "duration"))]
    pub startup: Option<Nanos>,
}

/// What a target of a comparison is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RoleFile {
    /// One of those that are compared.
    #[default]
    Gateway,
    /// The upstream itself, without a gateway: what the others are measured against.
    Direct,
    /// Another way to the upstream itself, which must not differ from `direct`: where it does, the
    /// measurement is wrong, and nothing is said. Left out: `versus.control`.
    Control,
}

/// How `plimsoll versus` compares the targets.
#[derive(Clone, Debug, SmartDefault, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct VersusFile {
    /// How the targets share the time. `spread`: every request goes to all of them, one after
    /// another, a fixed time apart. `together`: to all of them at once, for targets on different
    /// hosts. `turns`: one target is loaded alone for some seconds, then the next. Virtual users:
    /// each target has its own, with the same conversations, at the same time or by turns.
    pub schedule: PairMode,
    /// The order of the targets: `random` and balanced, or `fixed` to see how much it matters.
    pub order: PairOrder,
    /// `spread`: the most time between the requests of a block. It is less where the requests of
    /// all targets are then evenly spaced.
    #[default(Nanos::from_millis(50))]
    #[schemars(with = "String", extend("format" = "duration"))]
    pub gap: Nanos,
    /// `turns`: the least time for which one target is loaded alone. The first second of it, and at
    /// most a fifth, does not count.
    #[default(Nanos::from_secs(5))]
    #[schemars(with = "String", extend("format" = "duration"))]
    pub window: Nanos,
    /// `spread` and `together`: how long each target is loaded alone, ten times in a stage, to see
    /// whether targets disturb each other. It should be longer than a response. Shorter where it
    /// would take more than a third of the stage; `0s` for not at all.
    #[default(Nanos::from_secs(1))]
    #[schemars(with = "String", extend("format" = "duration"))]
    pub alone: Nanos,
    /// Whether the reference is loaded twice, under two names: a difference between the two shows
    /// that the measurement is wrong. The second copy loads the reference's process twice as much
    /// as the others, which makes it faster where a warmer process is faster, and slower near its
    /// limit. A target with `role: control` and a process of its own has no such effect.
    pub control: bool,
    /// What later turns of a chat repeat as the model's answers: `canned` texts, the same for all
    /// targets, or the `live` answers, which differ between targets.
    pub replies: Replies,
    /// Name of the target that the others are compared with. Left out: the one whose role is
    /// `direct`, else the first.
    pub reference: Option<String>,
    /// How much worse than the best a target may be, as a share: 0.05 is 5 %. Beyond it the command
    /// ends with exit code 1. Left out: a difference is a result and not a failure.
    #[schemars(range(min = 0))]
    pub margin: Option<f64>,
    /// Whether the run ends as soon as it is decided which target is slower; or, with a `margin`,
    /// that they differ by less. Intervals then hold at every moment at which it could have ended,
    /// and are about 1.5 times as wide. For `spread` and `together`, and one round.
    pub decide: bool,
    /// How often the whole comparison is repeated. Its result is then the mean over the rounds.
    #[default(1)]
    #[schemars(range(min = 1))]
    pub rounds: u32,
    /// From the start of one round to the start of the next. Left out: they follow each other.
    #[schemars(with = "Option<String>", extend("format" = "duration"))]
    pub every: Option<Nanos>,
}
