//! Secrets in the configuration, which no output shows.

use serde::Deserialize;

/// A text that is never shown. `${NAME}` is replaced by an environment variable.
#[derive(Clone, Deserialize, PartialEq)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
pub struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[redacted]")
    }
}

impl Secret {
    /// The text, with its environment variable filled in.
    ///
    /// # Errors
    /// A message about an unset variable or an empty text.
    pub fn reveal(&self) -> Result<String, String> {
        let text = match self.0.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) {
            None => self.0.clone(),
            Some(name) => std::env::var(name)
                .map_err(|_| format!("the environment variable `{name}` is not set"))?,
        };
        if text.is_empty() { Err("a key or secret is empty".to_owned()) } else { Ok(text) }
    }
}
