//! What a request cost in tokens.

use crate::dialect::Endpoint;
use crate::error::DialectError;
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
        #[derive(serde::Deserialize)]
        struct Body<U> {
            usage: Option<U>,
        }
        match endpoint {
            Endpoint::Chat | Endpoint::Embeddings => {
                let body: Body<openai::Usage> = read_answer(body)?;
                Ok(body.usage.map(Self::from))
            }
            Endpoint::Messages => {
                let body: Body<anthropic::Usage> = read_answer(body)?;
                Ok(body.usage.map(Self::from))
            }
            Endpoint::Responses => {
                let body: Body<openai::ResponsesUsage> = read_answer(body)?;
                Ok(body.usage.map(Self::from))
            }
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
