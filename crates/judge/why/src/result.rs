//! The answer, as `why.json` holds it.

use plimsoll_measure::named_enum;
use plimsoll_metrics::{Bottleneck, LoadModel};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Layout of `why.json`.
pub const SCHEMA: &str = "plimsoll.why/1";

/// What limited the load of a run, with the evidence.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Why {
    /// Layout of the file: `plimsoll.why/1`.
    pub schema: String,
    /// Name of the run.
    pub run: String,
    /// The answer.
    pub answer: Answer,
    /// The answer in a sentence, with its main figure.
    pub sentence: String,
    /// The suspects at their limits; several if they cannot be separated.
    pub saturated: Vec<Suspect>,
    /// What would tell more, where something is missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// The stage that decides; `None` if nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<Load>,
    /// What was found of each suspect, in the order of the way of a request.
    pub findings: Vec<Finding>,
    /// Where the requests in flight were, on average, by Little's law.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<Split>,
    /// Why there is no split.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split_refused: Option<String>,
    /// Where the time to the first byte went, as the target's own headers say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_word: Option<OwnWord>,
    /// What a reader must know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

named_enum! {
    /// What limited the load.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Answer {
        /// Plimsoll itself.
        Generator => "generator",
        /// The process at the target's address, of which it is not known whether it is a gateway.
        Target => "target",
        /// The gateway at the target's address: a process has this name, or a direct target or the
        /// gateway's own log tells what is behind it.
        Gateway => "gateway",
        /// What the gateway asks.
        Provider => "provider",
        /// What the gateway keeps its state in.
        Store => "store",
        /// Nothing that was looked at is at its limit.
        NothingSaturated => "nothing_saturated",
        /// The evidence does not carry an answer.
        #[default]
        CannotBeTold => "cannot_be_told",
    }
}

named_enum! {
    /// Who may limit a load.
    #[derive(
        Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
    )]
    #[serde(rename_all = "snake_case")]
    pub enum Suspect {
        /// Plimsoll itself.
        Generator => "generator",
        /// The process at the target's address, of which it is not known whether it is a gateway.
        Target => "target",
        /// The gateway at the target's address.
        Gateway => "gateway",
        /// What the gateway asks.
        Provider => "provider",
        /// What the gateway keeps its state in.
        Store => "store",
        /// A watched process whose part is not known.
        Other => "other",
    }
}

impl Suspect {
    /// The answer if it alone is at its limit; a process whose part is not known is none.
    pub(crate) const fn answer(self) -> Option<Answer> {
        match self {
            Self::Generator => Some(Answer::Generator),
            Self::Target => Some(Answer::Target),
            Self::Gateway => Some(Answer::Gateway),
            Self::Provider => Some(Answer::Provider),
            Self::Store => Some(Answer::Store),
            Self::Other => None,
        }
    }
}

/// The load of the stage that decides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Load {
    /// Name of the stage.
    pub stage: String,
    /// Open or closed.
    pub model: LoadModel,
    /// Virtual users of a closed stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<f64>,
    /// Requests completed per second.
    pub throughput_per_s: f64,
    /// Requests sent per second.
    #[serde(default)]
    pub sent_per_s: f64,
    /// Requests in flight, on average.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<f64>,
    /// Whether more could not be carried: a closed loop, or an open one that fell behind.
    pub at_limit: bool,
    /// How that was seen.
    pub because: String,
}

/// What was found of a suspect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Who.
    pub suspect: Suspect,
    /// The name of the process, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<String>,
    /// Whether it is at its limit.
    pub state: State,
    /// The evidence: each with its figures.
    pub evidence: Vec<String>,
    /// Share of its limit that it used, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<f64>,
    /// What would tell it, if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

/// Whether a suspect is at its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It is.
    Saturated,
    /// It is not.
    Clear,
    /// It is not known.
    Unknown,
}

/// Where the requests in flight were, on average.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Split {
    /// Requests in flight, as the workers counted them.
    pub in_flight: f64,
    /// The parts.
    pub parts: Vec<Part>,
    /// The sum of the parts, divided by `in_flight`.
    pub adds_up_to: f64,
    /// What tells the parts; `None` in files of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
}

/// A part of the requests in flight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// Where.
    pub place: String,
    /// Requests, on average.
    pub in_flight: f64,
}

/// Where the time to the first byte went, as the target says in its headers: means of
/// the deciding stage, which nobody measured but the target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OwnWord {
    /// Responses that name parts.
    pub responses: u64,
    /// Their mean time to the first byte, in milliseconds, as Plimsoll measured it.
    pub ttfb_ms: f64,
    /// The parts by the target's names.
    pub parts: Vec<NamedTime>,
    /// What the parts leave, in milliseconds: the network, and what the target does not name.
    pub rest_ms: f64,
}

/// A time with a name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NamedTime {
    /// Name.
    pub name: String,
    /// Mean, in milliseconds.
    pub mean_ms: f64,
}

impl Why {
    /// The line in the reports of the run.
    pub fn bottleneck(&self) -> Bottleneck {
        Bottleneck { answer: self.answer.name().to_owned(), text: self.sentence.clone() }
    }
}
