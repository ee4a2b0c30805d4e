//! The categories of rules, and the kinds of input that rules apply to.

use serde::Deserialize;

/// The category of a rule, in the order in which they are evaluated and reported.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Deserialize,
    strum::Display,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Category {
    /// Text that changes the meaning of an SQL statement that it is pasted into.
    SqlInjection,
    /// Statements that destroy data or grant privileges.
    Dangerous,
    /// Access to system catalogues, audit trails and credential stores.
    Admin,
    /// Data that identifies a person or an account.
    Pii,
    /// Text that tries to override the instructions of a language model.
    PromptInjection,
}

impl Category {
    /// All of them.
    pub const ALL: &[Self] = <Self as strum::VariantArray>::VARIANTS;
}

/// The kind of a text, which decides which rules apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InputKind {
    /// A database statement: every rule applies.
    Query,
    /// Prose, such as a chat prompt or a model's answer: rules with `context: query` do not apply,
    /// because `drop table` may be harmless there.
    Text,
}

/// The inputs that a rule applies to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Context {
    /// All inputs.
    #[default]
    Any,
    /// [`InputKind::Query`] only.
    Query,
}
