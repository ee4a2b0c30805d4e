//! The part of a run that a threshold or a report is about.

/// The part of a run that a threshold is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The whole run, without warm-up.
    Run,
    /// One stage, by its name or its number counted from 1.
    Stage(String),
    /// One scenario.
    Scenario(String),
    /// The scenarios of one category.
    Category(String),
    /// One target.
    Target(String),
    /// One operation of tool servers and agents, like `tools/call`.
    Operation(String),
}
