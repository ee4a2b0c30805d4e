//! Token counts in the form of each dialect.

use plimsoll_measure::{TokenCount, Usage};

use super::json_reader::from_object;

/// `usage` of chat completions and embeddings.
#[derive(Debug, Default)]
pub(super) struct ChatUsage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<Details>,
    completion_tokens_details: Option<Details>,
}
from_object!(ChatUsage {
    prompt_tokens,
    completion_tokens,
    prompt_tokens_details,
    completion_tokens_details
});

/// `usage` of the Responses API.
#[derive(Debug, Default)]
pub(super) struct ResponsesUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    input_tokens_details: Option<Details>,
    output_tokens_details: Option<Details>,
}
from_object!(ResponsesUsage {
    input_tokens,
    output_tokens,
    input_tokens_details,
    output_tokens_details
});

#[derive(Debug, Default)]
struct Details {
    cached_tokens: Option<u64>,
    reasoning_tokens: Option<u64>,
}
from_object!(Details { cached_tokens, reasoning_tokens });

impl From<ChatUsage> for Usage {
    fn from(usage: ChatUsage) -> Self {
        Self {
            prompt: count(usage.prompt_tokens),
            completion: count(usage.completion_tokens),
            cached: cached(usage.prompt_tokens_details),
            reasoning: reasoning(usage.completion_tokens_details),
        }
    }
}

impl From<ResponsesUsage> for Usage {
    fn from(usage: ResponsesUsage) -> Self {
        Self {
            prompt: count(usage.input_tokens),
            completion: count(usage.output_tokens),
            cached: cached(usage.input_tokens_details),
            reasoning: reasoning(usage.output_tokens_details),
        }
    }
}

/// `usage` of Anthropic's messages.
///
/// The prompt is `input_tokens + cache_read_input_tokens + cache_creation_input_tokens`: unlike
/// `OpenAI`, Anthropic does not include cached tokens in `input_tokens`. Cached are those read.
#[derive(Debug, Default)]
#[expect(clippy::struct_field_names, reason = "the names are Anthropic's")]
pub(super) struct AnthropicUsage {
    input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}
from_object!(AnthropicUsage {
    input_tokens,
    cache_read_input_tokens,
    cache_creation_input_tokens,
    output_tokens
});

impl AnthropicUsage {
    /// Usage in a stream's `message_start`. Its output count is a placeholder and ignored.
    pub(super) fn without_output(self) -> Usage {
        Usage { completion: TokenCount::default(), ..self.into() }
    }

    /// Usage in a `message_delta`. Counts are cumulative: the output count replaces the earlier
    /// one. The prompt is often missing or 0, so the larger count is kept.
    pub(super) fn merged_into(self, before: Usage) -> Usage {
        let now = Usage::from(self);
        let prompt =
            if now.prompt.count > before.prompt.count { now.prompt } else { before.prompt };
        let completion = now.completion.known().map_or(before.completion, TokenCount::reported);
        Usage { prompt, completion, cached: now.cached.max(before.cached), ..before }
    }
}

impl From<AnthropicUsage> for Usage {
    fn from(usage: AnthropicUsage) -> Self {
        let read = usage.cache_read_input_tokens.unwrap_or(0);
        let created = usage.cache_creation_input_tokens.unwrap_or(0);
        let prompt =
            usage.input_tokens.map(|fresh| fresh.saturating_add(read).saturating_add(created));
        Self {
            prompt: count(prompt),
            completion: count(usage.output_tokens),
            cached: saturate(read),
            reasoning: 0,
        }
    }
}

fn count(tokens: Option<u64>) -> TokenCount {
    tokens.map_or_else(TokenCount::default, |tokens| TokenCount::reported(saturate(tokens)))
}

fn cached(details: Option<Details>) -> u32 {
    saturate(details.and_then(|details| details.cached_tokens).unwrap_or(0))
}

fn reasoning(details: Option<Details>) -> u32 {
    saturate(details.and_then(|details| details.reasoning_tokens).unwrap_or(0))
}

fn saturate(tokens: u64) -> u32 {
    u32::try_from(tokens).unwrap_or(u32::MAX)
}
