//! The part that a target has in a comparison.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The part that a target has in a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// All others are compared with it: the provider itself, or the first target.
    Reference,
    /// The reference, loaded a second time: its difference must be none.
    Control,
    /// Compared with the reference and with the others.
    #[default]
    Target,
}
