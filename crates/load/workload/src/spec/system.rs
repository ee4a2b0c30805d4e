//! System prompts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The system prompt: a text, or synthetic text of about a given number of tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, deny_unknown_fields, expecting = "expected a text, or `{approx_tokens: N}`")]
pub enum SystemPrompt {
    /// This text.
    Text(String),
    /// Synthetic text, the same in every conversation of the scenario.
    Synthetic {
        /// Length in tokens.
        approx_tokens: u32,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_written_as_it_is_and_a_length_as_a_mapping() {
        for (json, prompt) in [
            ("\"Be kind.\"", SystemPrompt::Text("Be kind.".to_owned())),
            ("{\"approx_tokens\":2000}", SystemPrompt::Synthetic { approx_tokens: 2_000 }),
        ] {
            assert_eq!(serde_json::from_str::<SystemPrompt>(json).unwrap(), prompt, "{json}");
            assert_eq!(serde_json::to_string(&prompt).unwrap(), json);
        }
        let refusal = serde_json::from_str::<SystemPrompt>("5").unwrap_err().to_string();
        assert!(refusal.contains("expected a text"), "{refusal}");
    }
}
