//! Rules as they are written.

use serde::Deserialize;
use serde_saphyr::Spanned;

use crate::category::{Category, Context};

/// A file of rules.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleFile {
    pub(crate) rules: Vec<Spanned<RuleSpec>>,
}

/// One rule.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleSpec {
    /// Lower-case words joined by hyphens, unique.
    pub(crate) id: String,
    pub(crate) category: Category,
    /// For a person who was blocked by it.
    pub(crate) description: String,
    /// One of them must occur in the text, in any case, for the pattern to run.
    #[serde(default)]
    pub(crate) literals: Vec<String>,
    /// One of them must occur as well, if there are any.
    #[serde(default)]
    pub(crate) and: Vec<String>,
    /// And one of them, if there are any.
    #[serde(default)]
    pub(crate) also: Vec<String>,
    /// So many ASCII digits must occur in the text for the pattern to run.
    #[serde(default)]
    pub(crate) digits: usize,
    /// ASCII classes; a group called `value` is the part that is reported and redacted.
    pub(crate) pattern: String,
    #[serde(default)]
    pub(crate) case: Case,
    /// A name from the table of validators.
    pub(crate) validator: Option<String>,
    #[serde(default)]
    pub(crate) context: Context,
    /// Whether the scrubber of streams applies it too.
    #[serde(default)]
    pub(crate) stream: bool,
    /// Texts in which it must match.
    #[serde(default)]
    pub(crate) positive: Vec<String>,
    /// Texts in which it must not match.
    #[serde(default)]
    pub(crate) negative: Vec<String>,
    /// Ways around it: counted, not required.
    #[serde(default)]
    pub(crate) evasion: Vec<String>,
}

impl RuleSpec {
    /// The lists of literals, of each of which one must occur; empty ones ask for nothing.
    pub(crate) fn lists(&self) -> impl Iterator<Item = &[String]> {
        [&*self.literals, &*self.and, &*self.also].into_iter()
    }
}

/// Which letters a pattern's letters match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Case {
    #[default]
    Any,
    Exact,
}
