//! Errors in rules and settings.

use std::fmt;

/// One problem of one rule.
///
/// Displayed as `RULE (line N): CAUSE; FIX`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleProblem {
    /// The rule's id as in the file. It may itself be invalid.
    pub rule: String,
    /// The line of the file on which the rule begins, from 1.
    pub line: u64,
    /// The problem.
    pub cause: String,
    /// How to fix it.
    pub fix: String,
}

impl fmt::Display for RuleProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (line {}): {}; {}", self.rule, self.line, self.cause, self.fix)
    }
}

/// Rules or settings cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// The rules are not YAML of the expected shape: a key is unknown, missing or of the wrong
    /// type. Fix the place that the text names.
    #[error("the rules cannot be read: {0}")]
    Syntax(String),
    /// Invalid rules, with all problems. Fix each as its problem says.
    #[error("the rules are wrong:\n  {}", lines(.0))]
    Rules(Vec<RuleProblem>),
}

fn lines(problems: &[RuleProblem]) -> String {
    problems.iter().map(RuleProblem::to_string).collect::<Vec<_>>().join("\n  ")
}
