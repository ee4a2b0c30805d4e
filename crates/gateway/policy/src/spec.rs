//! The format of rule files.

use serde::Deserialize;
use serde_saphyr::Spanned;

use crate::category::{Category, Context};

/// A rule file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleFile {
    pub(crate) rules: Vec<Spanned<RuleSpec>>,
}

/// One rule.
#[serde_with::apply(Vec => #[serde(default)])]
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleSpec {
    /// Unique; lower-case words joined by hyphens.
    pub(crate) id: String,
    pub(crate) category: Category,
    /// A description for a person whose text was blocked.
    pub(crate) description: String,
    /// One of them must be in the text, in any case, for the pattern to run.
    pub(crate) literals: Vec<String>,
    /// If not empty, one of them must be in the text too.
    pub(crate) and: Vec<String>,
    /// If not empty, one of them must be in the text too.
    pub(crate) also: Vec<String>,
    /// The minimum number of ASCII digits in the text for the pattern to run.
    #[serde(default)]
    pub(crate) digits: usize,
    /// A regular expression with ASCII classes. A group called `value` is the part that is reported
    /// and redacted.
    pub(crate) pattern: String,
    #[serde(default)]
    pub(crate) case: Case,
    /// The name of a validator.
    pub(crate) validator: Option<String>,
    #[serde(default)]
    pub(crate) context: Context,
    /// Whether the stream scrubber applies it too.
    #[serde(default)]
    pub(crate) stream: bool,
    /// Texts in which it must match.
    pub(crate) positive: Vec<String>,
    /// Texts in which it must not match.
    pub(crate) negative: Vec<String>,
    /// Known evasions, for the reader of the file: they need not match.
    #[serde(rename = "evasion")]
    _evasion: Vec<String>,
}

impl RuleSpec {
    /// The lists of literals. One literal of each list that is not empty must be in the text.
    pub(crate) fn lists(&self) -> impl Iterator<Item = &[String]> {
        [&*self.literals, &*self.and, &*self.also].into_iter()
    }
}

/// Whether a pattern is case-sensitive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Case {
    #[default]
    Any,
    Exact,
}
