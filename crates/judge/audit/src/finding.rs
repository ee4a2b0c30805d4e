//! A violated law.

use schemars::JsonSchema;
use serde::Serialize;

/// A law that a row violates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    /// Line of the row.
    pub line: usize,
    /// Whether the figures are impossible, or only unsupported.
    pub level: Level,
    /// Name of the law.
    pub law: &'static str,
    /// The contradicting figures and the arithmetic.
    pub text: String,
}

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// No measurement can produce these figures together.
    Impossible,
    /// The figures may be true, but the samples do not support them.
    Unsupported,
}
