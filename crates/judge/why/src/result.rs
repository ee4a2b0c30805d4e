//! The bottleneck with its evidence, stored as `why.json`.

use plimsoll_measure::named_enum;
use plimsoll_metrics::{Bottleneck, LoadModel, ProcessLoad};
use plimsoll_rules::Finding;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Layout of `why.json`.
pub const SCHEMA: &str = "plimsoll.why/2";

/// The bottleneck of a run with its evidence.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Why {
    /// Layout of the file: `plimsoll.why/2`.
    pub schema: String,
    /// Name of the run.
    pub run: String,
    /// The bottleneck.
    pub answer: Answer,
    /// Finding on the bottleneck, rules 501 to 507; absent if the load was not proven to be at its
    /// limit.
    pub finding: Option<Finding>,
    /// Load of the deciding stage; `None` without measurements.
    pub load: Option<Load>,
    /// Evidence of each process, in the order in which requests pass them.
    pub observed: Vec<Observed>,
    /// Mean requests in flight by place, by Little's law.
    pub split: Option<Split>,
    /// Reason for a missing split.
    pub no_split: Option<NoSplit>,
    /// Parts of the time to first byte that the target reports in its headers.
    pub own_word: Option<TtfbParts>,
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
        /// The process at the target's address, if it is not known to be a gateway.
        Target => "target",
        /// The gateway at the target's address.
        Gateway => "gateway",
        /// The upstream of the gateway.
        Upstream => "upstream",
        /// The store of the gateway.
        Store => "store",
        /// The CPUs of this host, which several processes use.
        Host => "host",
        /// The network link.
        Network => "network",
        /// The load was or may have been at its limit, but no cause is proven.
        Unknown => "unknown",
    }
}

impl Answer {
    /// Code of the rule.
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
        /// The process at the target's address, if it is not known to be a gateway.
        Target => "target",
        /// The gateway at the target's address.
        Gateway => "gateway",
        /// The upstream of the gateway.
        Upstream => "upstream",
        /// The store of the gateway.
        Store => "store",
        /// A monitored process of unknown role.
        Other => "other",
    }
}

impl Suspect {
    /// The answer if only this process is at its limit; `Unknown` for a process of unknown role.
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

/// Load of the deciding stage.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Load {
    /// Name of the stage.
    pub stage: String,
    /// Open or closed.
    pub model: LoadModel,
    /// Virtual users of a closed stage.
    pub users: Option<f64>,
    /// Requests completed per second.
    pub throughput_per_s: f64,
    /// Requests sent per second.
    pub sent_per_s: f64,
    /// Mean number of requests in flight.
    pub in_flight: Option<f64>,
    /// Growth of the number of requests in flight over the stage.
    pub backlog: f64,
    /// Whether the load was at its limit: a closed loop whose times grow with its users, whose
    /// bottleneck is known or most of whose requests failed, or an open stage that fell behind.
    pub at_limit: bool,
}

/// The evidence of a process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Observed {
    /// Role of the process.
    pub suspect: Suspect,
    /// Whether it is at its limit.
    pub state: State,
    /// Evidence in words, with figures.
    pub evidence: String,
    /// CPU time, waits and quota in the stage; `None` if the process is not monitored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessLoad>,
}

/// Whether a process is at its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It used all its available CPU time.
    Full,
    /// It lacked CPU time that others used.
    Starved,
    /// Neither at its limit nor short of CPU time.
    Clear,
    /// Unknown.
    Unknown,
}

/// Mean number of requests in flight by place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Split {
    /// Requests in flight as counted by the workers.
    pub in_flight: f64,
    /// Parts of the split.
    pub parts: Vec<Part>,
    /// Sum of the parts, divided by `in_flight`.
    pub adds_up_to: f64,
    /// Share of the requests sent through the gateway that wait for the upstream.
    pub in_upstream: f64,
    /// Number of matched requests in the gateway's own log; `None` with a direct target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched: Option<u64>,
}

named_enum! {
    /// Reason for a missing split.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum NoSplit {
        /// The run has neither a direct target nor a join with the gateway's own log.
        NoSource => "no_source",
        /// The generator distorted a mean response time.
        DisturbedMean => "disturbed_mean",
        /// A target sent no response in the stage.
        NoResponse => "no_response",
        /// The mean response time of a gateway is below the direct target's.
        MeansCross => "means_cross",
        /// The run has several targets, and a log belongs to one.
        SeveralTargets => "several_targets",
        /// The join belongs to another run.
        OtherRun => "other_run",
        /// `plimsoll join` found disagreements between run and log, or was inconclusive.
        JoinRefused => "join_refused",
        /// The log has upstream times for fewer than 99 % of the stage's requests.
        FewTimes => "few_times",
        /// The sum of the parts differs by more than 2 % from the requests in flight.
        PartsDiffer => "parts_differ",
    }
}

/// A part of the requests in flight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// Place of the requests.
    pub place: String,
    /// Mean number of requests.
    pub in_flight: f64,
}

/// Parts of the time to first byte that the target reports in its headers: means of the deciding
/// stage. Plimsoll did not measure them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TtfbParts {
    /// Responses with such headers.
    pub responses: u64,
    /// Their mean time to first byte, in milliseconds, as measured by Plimsoll.
    pub ttfb_ms: f64,
    /// Parts, named by the target.
    pub parts: Vec<NamedTime>,
    /// Remaining time in milliseconds: the network, and everything the target does not report.
    pub rest_ms: f64,
}

/// A named time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NamedTime {
    /// Name.
    pub name: String,
    /// Mean, in milliseconds.
    pub mean_ms: f64,
}

impl Why {
    /// The bottleneck for the reports of the run.
    pub fn bottleneck(&self) -> Option<Bottleneck> {
        let text = self.finding.as_ref()?.text();
        Some(Bottleneck { answer: self.answer.name().to_owned(), text })
    }
}
