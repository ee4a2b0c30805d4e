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
    /// Part in the comparison. The others are compared with the `direct` one.
    #[serde(default)]
    pub role: RoleFile,
    /// API key. Default: the profile's.
    #[serde(default)]
    pub key: Option<String>,
    /// Name of the model. Default: the profile's.
    #[serde(default)]
    pub model: Option<String>,
    /// Wire format of every scenario. Default: the scenarios' own.
    #[serde(default)]
    pub protocol: Option<Dialect>,
    /// Headers of its requests, added to the profile's.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Its process on this host, whose CPU and memory use is reported: `pid:4711`, or `:8080` by
    /// its listening port.
    #[serde(default)]
    pub watch: Option<String>,
    /// Size of its container image or package, such as `85MB`, shown next to the results.
    #[serde(default)]
    pub image: Option<ByteSize>,
    /// Startup time, such as `1.2s`, shown next to the results.
    #[serde(default)]
    #[schemars(with = "Option<String>", extend("format" = "duration"))]
    pub startup: Option<Nanos>,
}

/// The part of a target in a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RoleFile {
    /// A compared target.
    #[default]
    Gateway,
    /// The upstream itself, without a gateway: the reference for the others.
    Direct,
    /// Another path to the upstream, which must not differ from `direct`: if it does, the
    /// comparison is invalid. Default: `versus.control`.
    Control,
}

/// Options of a comparison by `plimsoll versus`.
#[derive(Clone, Debug, SmartDefault, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct VersusFile {
    /// How the targets share the time. `spread`: every request goes to all of them, one after
    /// another, a fixed time apart. `together`: to all of them at once, for targets on different
    /// hosts. `turns`: one target is loaded alone for some seconds, then the next. Virtual users:
    /// each target has its own, with the same conversations, side by side or by turns.
    pub schedule: PairMode,
    /// Order of the targets: `random` and balanced, or `fixed` to measure the effect of the order.
    pub order: PairOrder,
    /// `spread`: maximum time between the requests of a block. It is shorter if the requests of all
    /// targets are then evenly spaced.
    #[default(Nanos::from_millis(50))]
    #[schemars(with = "String", extend("format" = "duration"))]
    pub gap: Nanos,
    /// `turns`: minimum time for which one target is loaded alone. Its first second, or at most a
    /// fifth of it, does not count.
    #[default(Nanos::from_secs(5))]
    #[schemars(with = "String", extend("format" = "duration"))]
    pub window: Nanos,
    /// `spread` and `together`: time for which each target is loaded alone, ten times per stage, to
    /// measure interference between targets. It should be longer than a response. Shortened if it
    /// would take more than a third of the stage; `0s` disables it.
    #[default(Nanos::from_secs(1))]
    #[schemars(with = "String", extend("format" = "duration"))]
    pub alone: Nanos,
    /// Whether to load the reference twice, under two names, as a self-check: a difference between
    /// the two shows that the measurement is wrong. The second copy doubles the load of the
    /// reference's process, which makes it faster if a warmer process is faster, and slower near
    /// its limit. A target with `role: control` and its own process has no such effect.
    pub control: bool,
    /// Source of the model's answers in later turns of a chat: `canned` texts, the same for all
    /// targets, or the `live` answers, which differ between targets.
    pub replies: Replies,
    /// Name of the reference, with which the others are compared. Default: the target with the role
    /// `direct`, or else the first.
    pub reference: Option<String>,
    /// Margin by which a target may be worse than the best one, as a share: 0.05 is 5 %. Beyond it,
    /// the exit code is 1. Default: a difference is a result, not a failure.
    #[schemars(range(min = 0))]
    pub margin: Option<f64>,
    /// Whether to end the run as soon as it is decided which target is slower; or, with a `margin`,
    /// that they differ by less. Intervals are then always-valid, and about 1.5 times as wide. For
    /// `spread` and `together`, and a single round.
    pub decide: bool,
    /// Number of repetitions of the whole comparison. The result is the mean over these rounds.
    #[default(1)]
    #[schemars(range(min = 1))]
    pub rounds: u32,
    /// Time from the start of one round to the start of the next. Default: no pause between rounds.
    #[schemars(with = "Option<String>", extend("format" = "duration"))]
    pub every: Option<Nanos>,
}
