//! What a scenario expects the target to decide, and how its decision is read.

use std::collections::BTreeMap;

use plimsoll_measure::Verdict;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A decision that can be expected of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Let through.
    Allow,
    /// Refused by a rule.
    Block,
    /// Let through with parts removed.
    Redact,
    /// Refused for its rate.
    RateLimited,
}

impl From<Decision> for Verdict {
    fn from(decision: Decision) -> Self {
        match decision {
            Decision::Allow => Self::Allow,
            Decision::Block => Self::Block,
            Decision::Redact => Self::Redact,
            Decision::RateLimited => Self::RateLimited,
        }
    }
}

/// How verdicts are read from answers, where the status alone does not tell. Looked at in this order, the first sign that
/// an answer bears decides: block, redact, `rate_limited`, allow. An answer that bears none has the verdict of its status
/// (2xx allow, 403 block, 429 `rate_limited`), unless that verdict has a sign of its own here: then it is unexpected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VerdictSpec {
    /// The sign of a refusal by a rule.
    #[serde(default)]
    pub block: Option<Sign>,
    /// The sign of an answer with parts removed.
    #[serde(default)]
    pub redact: Option<Sign>,
    /// The sign of a refusal for its rate.
    #[serde(default)]
    pub rate_limited: Option<Sign>,
    /// The sign of an answer that was let through.
    #[serde(default)]
    pub allow: Option<Sign>,
}

impl VerdictSpec {
    /// The signs in the order in which they are looked at.
    pub fn signs(&self) -> impl Iterator<Item = (Verdict, &Sign)> {
        let ordered = [
            (Verdict::Block, &self.block),
            (Verdict::Redact, &self.redact),
            (Verdict::RateLimited, &self.rate_limited),
            (Verdict::Allow, &self.allow),
        ];
        ordered.into_iter().filter_map(|(verdict, sign)| Some((verdict, sign.as_ref()?)))
    }
}

/// What an answer must have, all of it, for a verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sign {
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

impl Sign {
    /// Does it ask for nothing, so that every answer bears it?
    pub fn is_empty(&self) -> bool {
        let text = self.body_contains.as_deref().unwrap_or_default();
        self.status.is_empty() && self.header.is_empty() && text.is_empty()
    }
}
