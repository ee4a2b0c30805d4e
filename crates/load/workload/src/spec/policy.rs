//! What a scenario expects the target to decide, and how its decision is read.

use std::collections::BTreeMap;

use plimsoll_measure::PolicyDecision;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A decision that can be expected of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExpectedDecision {
    /// Let through.
    Allow,
    /// Refused by a rule.
    Block,
    /// Let through with parts removed.
    Redact,
    /// Refused for its rate.
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

/// How policy decisions are read from answers, where the status alone does not tell. Looked at in this order, the first sign that
/// an answer bears decides: block, redact, `rate_limited`, allow. An answer that bears none has the policy decision of its status
/// (2xx allow, 403 block, 429 `rate_limited`), unless that policy decision has a sign of its own here: then it is unexpected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyDecisionSpec {
    /// The sign of a refusal by a rule.
    #[serde(default)]
    pub block: Option<ResponseMatch>,
    /// The sign of an answer with parts removed.
    #[serde(default)]
    pub redact: Option<ResponseMatch>,
    /// The sign of a refusal for its rate.
    #[serde(default)]
    pub rate_limited: Option<ResponseMatch>,
    /// The sign of an answer that was let through.
    #[serde(default)]
    pub allow: Option<ResponseMatch>,
}

impl PolicyDecisionSpec {
    /// The signs in the order in which they are looked at.
    pub fn signs(&self) -> impl Iterator<Item = (PolicyDecision, &ResponseMatch)> {
        let ordered = [
            (PolicyDecision::Block, &self.block),
            (PolicyDecision::Redact, &self.redact),
            (PolicyDecision::RateLimited, &self.rate_limited),
            (PolicyDecision::Allow, &self.allow),
        ];
        ordered
            .into_iter()
            .filter_map(|(policy_decision, sign)| Some((policy_decision, sign.as_ref()?)))
    }
}

/// What an answer must have, all of it, for a policy decision.
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
    /// This text in the body, as bytes: escapes and blanks count. Left out: any body.
    #[serde(default)]
    pub body_contains: Option<String>,
}

impl ResponseMatch {
    /// Does it ask for nothing, so that every answer bears it?
    pub fn is_empty(&self) -> bool {
        let text = self.body_contains.as_deref().unwrap_or_default();
        self.status.is_empty() && self.header.is_empty() && text.is_empty()
    }
}
