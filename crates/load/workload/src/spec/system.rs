//! System prompts.

use std::fmt;

use schemars::{JsonSchema, Schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::add_alternative;

/// The system prompt: a text, or synthetic text of about a given number of tokens.
///
/// In files a text is written as it is; synthetic text is `{approx_tokens: 2000}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "snake_case", deny_unknown_fields)]
#[schemars(transform = or_text)]
pub enum SystemPrompt {
    /// This text.
    Text(String),
    /// Synthetic text, the same in every conversation of the scenario.
    ApproxTokens(u32),
}

/// Lets the schema accept a plain text as well.
fn or_text(schema: &mut Schema) {
    let text = serde_json::json!({ "type": "string", "description": "This text." });
    add_alternative(schema, text);
}

impl Serialize for SystemPrompt {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => text.serialize(serializer),
            other @ Self::ApproxTokens(_) => Self::serialize(other, serializer),
        }
    }
}

impl<'de> Deserialize<'de> for SystemPrompt {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrMapping)
    }
}

struct TextOrMapping;

impl<'de> Visitor<'de> for TextOrMapping {
    type Value = SystemPrompt;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, or `{approx_tokens: N}`")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<SystemPrompt, E> {
        Ok(SystemPrompt::Text(text.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SystemPrompt, A::Error> {
        SystemPrompt::deserialize(MapAccessDeserializer::new(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_written_as_it_is_and_a_length_as_a_mapping() {
        for (json, prompt) in [
            ("\"Be kind.\"", SystemPrompt::Text("Be kind.".to_owned())),
            ("{\"approx_tokens\":2000}", SystemPrompt::ApproxTokens(2_000)),
        ] {
            assert_eq!(serde_json::from_str::<SystemPrompt>(json).unwrap(), prompt, "{json}");
            assert_eq!(serde_json::to_string(&prompt).unwrap(), json);
        }
        let long_form = serde_json::from_str::<SystemPrompt>("{\"text\": \"x\"}").unwrap();
        assert_eq!(long_form, SystemPrompt::Text("x".to_owned()));
        let refusal = serde_json::from_str::<SystemPrompt>("5").unwrap_err().to_string();
        assert!(refusal.contains("expected a text"), "{refusal}");
    }
}
