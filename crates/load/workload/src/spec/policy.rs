//! The policy decision that a scenario expects, and how the target's decision is read.

use std::collections::BTreeMap;

use plimsoll_measure::PolicyDecision;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A decision that can be expected of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExpectedDecision {
    /// Allowed.
    Allow,
    /// Refused by a rule.
    Block,
    /// Allowed with parts removed.
    Redact,
    /// Refused for the request rate.
    RateLimited,
}

impl From<ExpectedDecision> for PolicyDecision {
    fn from(decision: ExpectedDecision) -> Self {
        match decision {
            ExpectedDecision::Allow => Self::Allow,
            ExpectedDecision::Block => Self::Block,
            ExpectedDecision::Redact => Self::Redact,
            ExpectedDecision::RateLimited => Self::RateLimited,
        }
    }
}

/// How policy decisions are read from responses if the status alone is not enough.
///
/// The first match decides, in this order: block, redact, `rate_limited`, allow. A response without
/// a match has the policy decision of its status (2xx allow, 403 block, 429 `rate_limited`), unless
/// that decision has a match here: then it is unexpected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyDecisionSpec {
    /// Matches a refusal by a rule.
    #[serde(default)]
    pub block: Option<ResponseMatch>,
    /// Matches a response with parts removed.
    #[serde(default)]
    pub redact: Option<ResponseMatch>,
    /// Matches a refusal for the request rate.
    #[serde(default)]
    pub rate_limited: Option<ResponseMatch>,
    /// Matches a response that was allowed.
    #[serde(default)]
    pub allow: Option<ResponseMatch>,
}

impl PolicyDecisionSpec {
    /// The matches in the order in which they are tried.
    pub fn matches_in_order(&self) -> impl Iterator<Item = (PolicyDecision, &ResponseMatch)> {
        let ordered = [
            (PolicyDecision::Block, &self.block),
            (PolicyDecision::Redact, &self.redact),
            (PolicyDecision::RateLimited, &self.rate_limited),
            (PolicyDecision::Allow, &self.allow),
        ];
        ordered.into_iter().filter_map(|(decision, found)| Some((decision, found.as_ref()?)))
    }
}

/// The properties that a response must have for a policy decision, all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResponseMatch {
    /// One of these statuses. Left out: any.
    #[serde(default)]
    #[schemars(inner(range(min = 100, max = 599)))]
    pub status: Vec<u16>,
    /// Each of these headers with exactly this value.
    #[serde(default)]
    pub header: BTreeMap<String, String>,
    /// This text in the body, compared byte by byte, with escapes and white space. Left out: any
    /// body.
    #[serde(default)]
    pub body_contains: Option<String>,
}

impl ResponseMatch {
    /// Whether it has no condition, so that every response matches.
    pub fn is_empty(&self) -> bool {
        let text = self.body_contains.as_deref().unwrap_or_default();
        self.status.is_empty() && self.header.is_empty() && text.is_empty()
    }
}
