//! The policy layer: evaluates texts before they pass.

use std::borrow::Cow;
use std::fs;
use std::sync::{Arc, OnceLock};

use plimsoll_gateway_policy::{
    Action, Actions, EvaluatedChecks, InputKind, Policy, PolicyDecision,
};

use crate::error_response::ErrorResponse;
use crate::llm_info::LlmInfo;
use crate::metrics::Metrics;
use crate::spec::PolicySpec;

/// The rules, and the actions taken on their matches.
#[derive(Debug)]
pub(crate) struct PolicyLayer {
    policy: Arc<Policy>,
    actions: Actions,
    /// The injected fault `policy_off`: every text passes unseen.
    off: bool,
}

/// The built-in rules, compiled once.
///
/// # Errors
/// A message; none in a build that passed its tests.
pub(crate) fn builtin() -> Result<Arc<Policy>, String> {
    static BUILTIN: OnceLock<Arc<Policy>> = OnceLock::new();
    if let Some(policy) = BUILTIN.get() {
        return Ok(Arc::clone(policy));
    }
    let policy = Policy::builtin().map_err(|error| format!("policy: {error}"))?;
    Ok(Arc::clone(BUILTIN.get_or_init(|| Arc::new(policy))))
}

impl PolicyLayer {
    /// # Errors
    /// A message about rules that cannot be read.
    pub(crate) fn new(spec: &PolicySpec, off: bool) -> Result<Self, String> {
        let policy = match &spec.rules {
            None => builtin()?,
            Some(path) => {
                let text = fs::read_to_string(path)
                    .map_err(|error| format!("policy: cannot read {}: {error}", path.display()))?;
                let policy = Policy::from_yaml(&text);
                Arc::new(policy.map_err(|error| format!("policy: {}: {error}", path.display()))?)
            }
        };
        Ok(Self { policy, actions: spec.actions, off })
    }

    /// Evaluates a text, and records the decision in `info` and the metrics. Returns the text,
    /// redacted where the policy says so.
    ///
    /// # Errors
    /// The text must not pass.
    pub(crate) fn evaluate<'t>(
        &self,
        (metrics, info): (&Metrics, &mut Option<Box<LlmInfo>>),
        text: &'t str,
        reading: InputKind,
    ) -> Result<Cow<'t, str>, Box<PolicyViolation>> {
        if self.off {
            return Ok(Cow::Borrowed(text));
        }
        let decision = self.policy.scan(text, reading, &self.actions);
        if decision.matches.is_empty() {
            return Ok(Cow::Borrowed(text));
        }
        for found in &decision.matches {
            metrics.count_policy_match(found.category.name(), found.action.name());
        }
        record(info.get_or_insert_default(), &decision);
        if decision.blocked() {
            let cause = decision.cause();
            return Err(Box::new(PolicyViolation {
                category: cause.map_or("", |cause| cause.category.name()),
                rule: cause.map_or_else(String::new, |cause| cause.rule_id.to_string()),
            }));
        }
        Ok(decision.text)
    }

    /// The numbers of policies and checks that a text passes.
    pub(crate) fn evaluated(&self) -> EvaluatedChecks<'_> {
        self.policy.evaluated()
    }
}

/// Why a text must not pass.
#[derive(Debug)]
pub(crate) struct PolicyViolation {
    category: &'static str,
    rule: String,
}

impl PolicyViolation {
    /// The reason as a sentence. The text itself is not repeated.
    pub(crate) fn reason(&self) -> String {
        format!("blocked by policy: {} ({})", self.category, self.rule)
    }
}

impl From<Box<PolicyViolation>> for ErrorResponse {
    fn from(violation: Box<PolicyViolation>) -> Self {
        Self::policy_blocked(violation.reason())
    }
}

/// The position of an action on the ladder of severity.
fn severity(name: &str) -> usize {
    let ladder = [Action::Allow, Action::Log, Action::Warn, Action::Redact, Action::Block];
    ladder.iter().position(|action| action.name() == name).unwrap_or_default()
}

/// Adds a decision to the request's record; of several texts the most severe decision stays.
fn record(info: &mut LlmInfo, decision: &PolicyDecision<'_>) {
    if severity(decision.action.name()) >= info.policy_decision.map_or(0, severity) {
        info.policy_decision = Some(decision.action.name());
    }
    for found in &decision.matches {
        let rule = found.rule_id.to_string();
        if !info.rules.contains(&rule) {
            info.rules.push(rule);
        }
    }
}
