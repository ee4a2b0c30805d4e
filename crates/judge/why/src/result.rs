//! The bottleneck with its evidence, as `why.json` holds it.

use plimsoll_measure::named_enum;
use plimsoll_metrics::{Bottleneck, LoadModel, ProcessLoad};
use plimsoll_rules::Finding;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Layout of `why.json`.
pub const SCHEMA: &str = "plimsoll.why/2";

/// The bottleneck of a run, with the evidence.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Why {
    /// Layout of the file: `plimsoll.why/2`.
    pub schema: String,
    /// Name of the run.
    pub run: String,
    /// The bottleneck.
    pub answer: Answer,
    /// The rule of the bottleneck, 501 to 507; none where the load was not at its limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<Finding>,
    /// The stage that decides; `None` if nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<Load>,
    /// The evidence of each process, in the order in which a request passes them.
    pub observed: Vec<Observed>,
    /// Mean requests in flight by place, by Little's law.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<Split>,
    /// Why there is no split.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_split: Option<NoSplit>,
    /// Time to the first byte by part, as the target's own headers state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_word: Option<OwnWord>,
}

named_enum! {
    /// The bottleneck of a load.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Answer {
        /// The load was not at its limit, or most of it failed.
        #[default]
        None => "none",
        /// Plimsoll itself.
        Generator => "generator",
        /// The process at the target's address, which is not known to be a gateway.
        Target => "target",
        /// The gateway at the target's address.
        Gateway => "gateway",
        /// The upstream of the gateway.
        Upstream => "upstream",
        /// The store of the gateway.
        Store => "store",
        /// The CPUs of this host, used by several processes.
        Host => "host",
        /// The network link.
        Network => "network",
        /// The load was at its limit, and no cause is proven.
        Unknown => "unknown",
    }
}

impl Answer {
    /// The code of its rule.
    pub(crate) const fn rule(self) -> Option<u16> {
        match self {
            Self::None => None,
            Self::Generator => Some(501),
            Self::Target | Self::Gateway => Some(502),
            Self::Upstream => Some(503),
            Self::Store => Some(504),
            Self::Host => Some(505),
            Self::Network => Some(506),
            Self::Unknown => Some(507),
        }
    }
}

named_enum! {
    /// A process that may be the bottleneck.
    #[derive(
        Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
    )]
    #[serde(rename_all = "snake_case")]
    pub enum Suspect {
        /// Plimsoll itself.
        Generator => "generator",
        /// The process at the target's address, which is not known to be a gateway.
        Target => "target",
        /// The gateway at the target's address.
        Gateway => "gateway",
        /// The upstream of the gateway.
        Upstream => "upstream",
        /// The store of the gateway.
        Store => "store",
        /// A watched process of unknown role.
        Other => "other",
    }
}

impl Suspect {
    /// The answer if it alone is at its limit; `Unknown` for a process of unknown role.
    pub(crate) const fn answer(self) -> Answer {
        match self {
            Self::Generator => Answer::Generator,
            Self::Target => Answer::Target,
            Self::Gateway => Answer::Gateway,
            Self::Upstream => Answer::Upstream,
            Self::Store => Answer::Store,
            Self::Other => Answer::Unknown,
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
    pub sent_per_s: f64,
    /// Requests in flight, on average.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<f64>,
    /// Requests by which those in flight grew over the stage.
    pub backlog: f64,
    /// Whether the load was at its limit: a closed loop whose times grow with its users, or an open
    /// stage that fell behind.
    pub at_limit: bool,
}

/// The evidence of a process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Observed {
    /// Its role.
    pub suspect: Suspect,
    /// Whether it is at its limit.
    pub state: State,
    /// The evidence of that, with its figures.
    pub evidence: String,
    /// Its CPU time, waits and quota in the stage; `None` if it is not watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessLoad>,
}

/// Whether a process is at its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It used the CPU time that it may use.
    Full,
    /// It lacked CPU time that others used.
    Starved,
    /// Neither.
    Clear,
    /// It is not known.
    Unknown,
}

/// Mean requests in flight by place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Split {
    /// Requests in flight, as the workers counted them.
    pub in_flight: f64,
    /// The parts.
    pub parts: Vec<Part>,
    /// The sum of the parts, divided by `in_flight`.
    pub adds_up_to: f64,
    /// Share of the requests sent through the gateway that wait for the upstream.
    pub in_upstream: f64,
    /// Requests of the gateway's own log that it rests on; `None` with a direct target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched: Option<u64>,
}

named_enum! {
    /// Why there is no split.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum NoSplit {
        /// The run has neither a direct target nor a join with the gateway's own log.
        NoSource => "no_source",
        /// The generator disturbed a mean response time.
        DisturbedMean => "disturbed_mean",
        /// A target sent no response in the stage.
        NoResponse => "no_response",
        /// The mean response time of a gateway is below that of the direct target.
        MeansCross => "means_cross",
        /// The run has several targets, and a log is that of one.
        SeveralTargets => "several_targets",
        /// The join is of another run.
        OtherRun => "other_run",
        /// `plimsoll join` found run and log to disagree, or could not judge them.
        JoinRefused => "join_refused",
        /// The log has upstream times of fewer than 99 % of the requests of the stage.
        FewTimes => "few_times",
        /// The parts differ by more than 2 % from the requests in flight.
        PartsDiffer => "parts_differ",
    }
}

/// A part of the requests in flight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// Where.
    pub place: String,
    /// Requests, on average.
    pub in_flight: f64,
}

/// Parts of the time to the first byte as the target states them in its headers: means of the
/// deciding stage, measured by the target alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OwnWord {
    /// Responses that name parts.
    pub responses: u64,
    /// Their mean time to the first byte, in milliseconds, as Plimsoll measured it.
    pub ttfb_ms: f64,
    /// The parts by the target's names.
    pub parts: Vec<NamedTime>,
    /// Time outside of the parts, in milliseconds: the network, and what the target does not name.
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
    pub fn bottleneck(&self) -> Option<Bottleneck> {
        let text = self.finding.as_ref()?.text();
        Some(Bottleneck { answer: self.answer.name().to_owned(), text })
    }
}
