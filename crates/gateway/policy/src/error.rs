//! What can be wrong with rules and settings.

use std::fmt;

/// One thing that is wrong with one rule.
///
/// Written as `RULE (line N): CAUSE; MEND`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The rule's id as it is written in the file, which may be what is wrong with it.
    pub rule: String,
    /// The line of the file on which the rule begins, from 1.
    pub line: u64,
    /// What is wrong.
    pub cause: String,
    /// What to do about it, as an order.
    pub mend: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (line {}): {}; {}", self.rule, self.line, self.cause, self.mend)
    }
}

/// Rules or settings cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// The rules are not YAML of the expected shape: a key is unknown, missing or of the wrong
    /// type. The text says where; mend the place it names.
    #[error("the rules cannot be read: {0}")]
    Syntax(String),
    /// Rules that make no sense, all of them at once. Mend each as its problem says.
    #[error("the rules are wrong:\n  {}", lines(.0))]
    Rules(Vec<Problem>),
    /// An environment variable names no action. Set it to one of `block`, `redact`, `warn`, `log`
    /// and `allow`, or unset it.
    #[error("{name} is `{value}`; set it to block, redact, warn, log or allow, or unset it")]
    Setting {
        /// The variable.
        name: &'static str,
        /// What it holds.
        value: String,
    },
}

fn lines(problems: &[Problem]) -> String {
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n  ")
}
