//! The part of a target in a comparison.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The part of a target in a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// All others are compared with it: the upstream, or the first target.
    Reference,
    /// The reference, loaded a second time: it must not differ.
    Control,
    /// Compared with the reference and with the other targets.
    #[default]
    Target,
}
