//! Token usage of a request and its response.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::dialect::Endpoint;
use crate::error::DialectError;

use crate::wire::{anthropic, openai, parse_response};

/// Tokens of a request and its response, counted as OpenAI does: the prompt includes cached tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Prompt tokens, including cached ones.
    pub prompt: u64,
    /// Completion tokens.
    pub completion: u64,
    /// Prompt tokens that the provider read from its cache.
    pub cached: u64,
}

impl Usage {
    /// Prompt and completion tokens together.
    pub const fn total(self) -> u64 {
        self.prompt.saturating_add(self.completion)
    }

    /// Reads the usage of a whole response, one that is not streamed; None if it has none.
    ///
    /// # Errors
    /// The body is not a response of that endpoint.
    pub fn from_body(endpoint: Endpoint, body: &[u8]) -> Result<Option<Self>, DialectError> {
        match endpoint {
            Endpoint::Chat | Endpoint::Embeddings => parse::<openai::Usage>(body),
            Endpoint::Messages => parse::<anthropic::Usage>(body),
            Endpoint::Responses => parse::<openai::ResponsesUsage>(body),
        }
    }

    /// Updates from a later event; absent counts stay.
    pub(crate) fn update(&mut self, later: anthropic::Usage) {
        let update = Self::from(later);
        if later.input_tokens.is_some() {
            self.prompt = update.prompt;
            self.cached = update.cached;
        }
        if later.output_tokens.is_some() {
            self.completion = update.completion;
        }
    }

    pub(crate) fn to_openai(self) -> openai::Usage {
        openai::Usage {
            prompt_tokens: self.prompt,
            completion_tokens: self.completion,
            total_tokens: self.total(),
            prompt_tokens_details: Some(openai::PromptDetails { cached_tokens: Some(self.cached) }),
        }
    }

    pub(crate) fn to_anthropic(self) -> anthropic::Usage {
        anthropic::Usage {
            input_tokens: Some(self.prompt.saturating_sub(self.cached)),
            cache_creation_input_tokens: Some(0),
            cache_read_input_tokens: Some(self.cached),
            output_tokens: Some(self.completion),
        }
    }
}

fn parse<U: DeserializeOwned + Into<Usage>>(body: &[u8]) -> Result<Option<Usage>, DialectError> {
    let body: Body<U> = parse_response(body)?;
    Ok(body.usage.map(U::into))
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

/// Anthropic's `input_tokens` excludes tokens that were read from or written to the cache.
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

    fn usage(prompt: u64, completion: u64, cached: u64) -> Usage {
        Usage { prompt, completion, cached }
    }

    #[test]
    fn usage_is_read_from_the_outermost_object_only() {
        let rows = [
            (
                "usage",
                Some(usage(3, 4, 0)),
                r#"{"id":"x","usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}"#,
            ),
            (
                "details",
                Some(usage(3, 0, 2)),
                r#"{"usage":{"prompt_tokens":3,"prompt_tokens_details":{"cached_tokens":2}} , "a":[1]}"#,
            ),
            ("nested only", None, r#"{"choices":[{"usage":{"prompt_tokens":3}}]}"#),
            ("null", None, r#"{"usage":null}"#),
            ("escaped name", Some(usage(3, 0, 0)), r#"{"usa\u0067e":{"prompt_tokens":3}}"#),
        ];
        for (case, expected, body) in rows {
            let read = Usage::from_body(Endpoint::Chat, body.as_bytes());
            assert_eq!(read, Ok(expected), "{case}");
        }
    }

    #[test]
    fn invalid_responses_are_the_upstreams_fault() {
        let rows = [
            ("wrong type", r#"{"usage":5}"#),
            ("duplicate", r#"{"usage":null,"usage":null}"#),
            ("not an object", "[1]"),
            ("trailing text", r#"{"usage":null} x"#),
        ];
        for (case, body) in rows {
            let read = Usage::from_body(Endpoint::Chat, body.as_bytes());
            assert_eq!(read.map_err(|error| error.status()), Err(502), "{case}");
        }
    }

    #[test]
    fn all_dialects_count_cached_tokens_as_prompt_tokens() {
        let body = br#"{"usage":{"input_tokens":1,"cache_read_input_tokens":2,"cache_creation_input_tokens":4,"output_tokens":8}}"#;
        assert_eq!(Usage::from_body(Endpoint::Messages, body), Ok(Some(usage(7, 8, 2))));
        let body = br#"{"usage":{"input_tokens":6,"output_tokens":8,"input_tokens_details":{"cached_tokens":5}}}"#;
        assert_eq!(Usage::from_body(Endpoint::Responses, body), Ok(Some(usage(6, 8, 5))));
        assert_eq!(usage(u64::MAX, 1, 0).total(), u64::MAX);
    }

    #[test]
    fn a_later_event_keeps_the_counts_that_it_lacks() {
        let mut total = usage(7, 1, 2);
        total.update(anthropic::Usage { output_tokens: Some(9), ..anthropic::Usage::default() });
        assert_eq!(total, usage(7, 9, 2));
        total.update(anthropic::Usage { input_tokens: Some(4), ..anthropic::Usage::default() });
        assert_eq!(total, usage(4, 9, 0));
    }
}
