//! What a rule looks for, and how the text that it reads is meant.

use std::fmt;

use serde::Deserialize;

/// What a rule looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// Text that would change the meaning of a statement it is pasted into.
    SqlInjection,
    /// Statements that destroy data or hand out rights.
    Dangerous,
    /// Reads or changes of system catalogues, audit trails and stores of credentials.
    Admin,
    /// Data that identifies a person or an account.
    Pii,
    /// Text that tries to overrule the instructions of a language model.
    PromptInjection,
}

impl Category {
    /// All, in the order in which they are evaluated and reported.
    pub const ALL: [Self; 5] =
        [Self::SqlInjection, Self::Dangerous, Self::Admin, Self::Pii, Self::PromptInjection];

    /// As it is written in rules and settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SqlInjection => "sql_injection",
            Self::Dangerous => "dangerous",
            Self::Admin => "admin",
            Self::Pii => "pii",
            Self::PromptInjection => "prompt_injection",
        }
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How a text is meant by who sends it, which decides what is suspicious in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reading {
    /// A statement for a database: every rule applies. `drop table x` is what it says.
    Query,
    /// Prose, a chat prompt, an answer: rules with `context: query` do not apply, as people write
    /// of tables and of dropping things.
    Text,
}

/// Where a rule applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Context {
    /// Everywhere.
    #[default]
    Any,
    /// Only in a [`Reading::Query`].
    Query,
}
