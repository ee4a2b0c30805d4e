//! The policy: texts are judged before they pass.

use std::borrow::Cow;
use std::fs;
use std::sync::{Arc, OnceLock};

use plimsoll_gateway_policy::{Action, Actions, InputKind, Policy, PolicyDecision};

use crate::exchange::Exchange;
use crate::refusal::Refusal;
use crate::spec::PolicySpec;

/// The rules, and what is done about their matches.
#[derive(Debug)]
pub(crate) struct Guard {
    pub(crate) policy: Arc<Policy>,
    pub(crate) actions: Actions,
}

/// The built-in rules, made once.
///
/// # Errors
/// In words; none in a build that passed its tests.
pub(crate) fn builtin() -> Result<Arc<Policy>, String> {
    static BUILTIN: OnceLock<Arc<Policy>> = OnceLock::new();
    if let Some(policy) = BUILTIN.get() {
        return Ok(Arc::clone(policy));
    }
    let policy = Policy::builtin().map_err(|error| format!("policy: {error}"))?;
    Ok(Arc::clone(BUILTIN.get_or_init(|| Arc::new(policy))))
}

impl Guard {
    /// # Errors
    /// In words, for rules that cannot be read.
    pub(crate) fn new(spec: &PolicySpec) -> Result<Self, String> {
        let policy = match &spec.rules {
            None => builtin()?,
            Some(path) => {
                let text = fs::read_to_string(path)
                    .map_err(|error| format!("policy: cannot read {}: {error}", path.display()))?;
                let policy = Policy::from_yaml(&text);
                Arc::new(policy.map_err(|error| format!("policy: {}: {error}", path.display()))?)
            }
        };
        Ok(Self { policy, actions: spec.actions })
    }

    /// Judges a text, and enters the verdict into the books. A text that must not pass is a refusal.
    pub(crate) fn judge<'t>(
        &self,
        exchange: &mut Exchange,
        text: &'t str,
        reading: InputKind,
    ) -> Result<Cow<'t, str>, Box<Blocked>> {
        if exchange.config.faults.policy_off {
            return Ok(Cow::Borrowed(text));
        }
        let verdict = self.policy.scan(text, reading, &self.actions);
        if verdict.matches.is_empty() {
            return Ok(Cow::Borrowed(text));
        }
        note(exchange, &verdict);
        if verdict.blocked() {
            let cause = verdict.cause();
            return Err(Box::new(Blocked {
                category: cause.map_or("", |cause| cause.category.name()),
                rule: cause.map_or_else(String::new, |cause| cause.rule_id.to_string()),
            }));
        }
        Ok(verdict.text)
    }
}

/// Why a text must not pass.
#[derive(Debug)]
pub(crate) struct Blocked {
    pub(crate) category: &'static str,
    pub(crate) rule: String,
}

impl Blocked {
    /// In words. The text itself is not repeated.
    pub(crate) fn reason(&self) -> String {
        format!("blocked by policy: {} ({})", self.category, self.rule)
    }
}

impl From<Box<Blocked>> for Refusal {
    fn from(blocked: Box<Blocked>) -> Self {
        Self::blocked(blocked.reason())
    }
}

/// How severe an action of this name is.
fn rank(name: &str) -> usize {
    let ladder = [Action::Allow, Action::Log, Action::Warn, Action::Redact, Action::Block];
    ladder.iter().position(|action| action.name() == name).unwrap_or_default()
}

/// Enters a verdict into the books; of several texts the severest one stays.
fn note(exchange: &mut Exchange, verdict: &PolicyDecision<'_>) {
    let meters = &exchange.worker.shared().meters;
    for found in &verdict.matches {
        meters.verdict(found.category.name(), found.action.name());
    }
    let notes = exchange.notes();
    if rank(verdict.action.name()) >= notes.verdict.map_or(0, rank) {
        notes.verdict = Some(verdict.action.name());
    }
    notes.rules.extend(verdict.matches.iter().map(|found| found.rule_id.to_string()));
}
