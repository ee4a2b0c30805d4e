//! What a request cost in tokens.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::dialect::Endpoint;
use crate::error::DialectError;
use crate::scanner::{Scanner, once};
use crate::wire::{anthropic, openai, read_answer};

/// Tokens of a request and its answer, counted as OpenAI does: the prompt includes what was cached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the prompt, cached ones included.
    pub prompt: u64,
    /// Tokens of the answer.
    pub completion: u64,
    /// Those of the prompt that the provider had in its cache.
    pub cached: u64,
}

impl Usage {
    /// Prompt and answer together.
    pub const fn total(self) -> u64 {
        self.prompt.saturating_add(self.completion)
    }

    /// Reads the usage of a whole, not streamed answer; None where it has none.
    ///
    /// # Errors
    /// The body is not an answer of that endpoint.
    pub fn of_body(endpoint: Endpoint, body: &[u8]) -> Result<Option<Self>, DialectError> {
        match endpoint {
            Endpoint::Chat | Endpoint::Embeddings => read::<openai::Usage>(body),
            Endpoint::Messages => read::<anthropic::Usage>(body),
            Endpoint::Responses => read::<openai::ResponsesUsage>(body),
        }
    }

    /// Takes what a later event says; members that it does not carry stay.
    pub(crate) fn update(&mut self, later: anthropic::Usage) {
        let seen = Self::from(later);
        if later.input_tokens.is_some() {
            self.prompt = seen.prompt;
            self.cached = seen.cached;
        }
        if later.output_tokens.is_some() {
            self.completion = seen.completion;
        }
    }

    pub(crate) fn openai(self) -> openai::Usage {
        openai::Usage {
            prompt_tokens: self.prompt,
            completion_tokens: self.completion,
            total_tokens: self.total(),
            prompt_tokens_details: Some(openai::PromptDetails { cached_tokens: Some(self.cached) }),
        }
    }

    pub(crate) fn anthropic(self) -> anthropic::Usage {
        anthropic::Usage {
            input_tokens: Some(self.prompt.saturating_sub(self.cached)),
            cache_creation_input_tokens: Some(0),
            cache_read_input_tokens: Some(self.cached),
            output_tokens: Some(self.completion),
        }
    }
}

/// Of a plain body only the usage is read; any other is read thoroughly.
fn read<U: DeserializeOwned + Into<Usage>>(body: &[u8]) -> Result<Option<Usage>, DialectError> {
    let body = plainly(body).map_or_else(|| read_answer::<Body<U>>(body), Ok)?;
    Ok(body.usage.map(U::into))
}

fn plainly<U: DeserializeOwned>(body: &[u8]) -> Option<Body<U>> {
    let mut usage = None;
    let mut scanner = Scanner::new(str::from_utf8(body).ok()?);
    scanner.object(|scanner, name| match name {
        "usage" => once(&mut usage, scanner.value()?),
        _ => scanner.value().map(|_| ()),
    })?;
    scanner.end()?;
    let usage = serde_json::from_str(usage.unwrap_or("null")).ok()?;
    Some(Body { usage })
}

#[derive(Deserialize)]
struct Body<U> {
    usage: Option<U>,
}

impl From<openai::Usage> for Usage {
    fn from(usage: openai::Usage) -> Self {
        let cached = usage.prompt_tokens_details.and_then(|details| details.cached_tokens);
        Self {
            prompt: usage.prompt_tokens,
            completion: usage.completion_tokens,
            cached: cached.unwrap_or_default(),
        }
    }
}

impl From<openai::ResponsesUsage> for Usage {
    fn from(usage: openai::ResponsesUsage) -> Self {
        let cached = usage.input_tokens_details.and_then(|details| details.cached_tokens);
        Self {
            prompt: usage.input_tokens,
            completion: usage.output_tokens,
            cached: cached.unwrap_or_default(),
        }
    }
}

/// Anthropic's input tokens are those that were neither read from the cache nor written to it.
impl From<anthropic::Usage> for Usage {
    fn from(usage: anthropic::Usage) -> Self {
        let cached = usage.cache_read_input_tokens.unwrap_or_default();
        let written = usage.cache_creation_input_tokens.unwrap_or_default();
        let input = usage.input_tokens.unwrap_or_default();
        Self {
            prompt: input.saturating_add(cached).saturating_add(written),
            completion: usage.output_tokens.unwrap_or_default(),
            cached,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_reading_says_what_a_thorough_one_says() {
        let rows = [
            (
                "usage",
                true,
                r#"{"id":"x","usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}"#,
            ),
            (
                "details",
                true,
                r#"{"usage":{"prompt_tokens":3,"prompt_tokens_details":{"cached_tokens":2}} , "a":[1]}"#,
            ),
            ("inside only", true, r#"{"choices":[{"usage":{"prompt_tokens":3}}]}"#),
            ("null", true, r#"{"usage":null}"#),
            ("of a wrong type", false, r#"{"usage":5}"#),
            ("twice", false, r#"{"usage":null,"usage":null}"#),
            ("its name escaped", false, r#"{"usa\u0067e":{"prompt_tokens":3}}"#),
            ("no object", false, "[1]"),
            ("more behind it", false, r#"{"usage":null} x"#),
        ];
        for (what, plain, body) in rows {
            let quick = plainly::<openai::Usage>(body.as_bytes());
            assert_eq!(quick.is_some(), plain, "{what}");
            let Some(quick) = quick else { continue };
            let thorough = read_answer::<Body<openai::Usage>>(body.as_bytes()).unwrap();
            assert_eq!(quick.usage, thorough.usage, "{what}");
        }
    }
}
