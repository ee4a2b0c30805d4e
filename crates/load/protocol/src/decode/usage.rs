//! Token counts in the form of each dialect.

use plimsoll_measure::{TokenCount, Usage};

use super::json_reader::{Reported, from_object};

/// More tokens than any model takes as one prompt: the largest context windows have ten million.
const LARGEST_CONTEXT: u64 = 10_000_000;
/// More tokens than any model writes in one answer.
const LARGEST_OUTPUT: u64 = 1_000_000;
/// Longest count that is quoted, in bytes.
const MAX_QUOTE: usize = 40;

/// `usage` of chat completions and embeddings.
#[derive(Debug, Default)]
pub(super) struct ChatUsage<'a> {
    prompt_tokens: Reported<'a>,
    completion_tokens: Reported<'a>,
    prompt_tokens_details: Option<Details<'a>>,
    completion_tokens_details: Option<Details<'a>>,
}
from_object!(ChatUsage<'a> {
    prompt_tokens,
    completion_tokens,
    prompt_tokens_details,
    completion_tokens_details
});

/// `usage` of the Responses API.
#[derive(Debug, Default)]
pub(super) struct ResponsesUsage<'a> {
    input_tokens: Reported<'a>,
    output_tokens: Reported<'a>,
    input_tokens_details: Option<Details<'a>>,
    output_tokens_details: Option<Details<'a>>,
}
from_object!(ResponsesUsage<'a> {
    input_tokens,
    output_tokens,
    input_tokens_details,
    output_tokens_details
});

#[derive(Clone, Copy, Debug, Default)]
struct Details<'a> {
    cached_tokens: Reported<'a>,
    reasoning_tokens: Reported<'a>,
}
from_object!(Details<'a> { cached_tokens, reasoning_tokens });

/// `usage` of Anthropic's messages.
///
/// The prompt is `input_tokens + cache_read_input_tokens + cache_creation_input_tokens`: unlike
/// `OpenAI`, Anthropic does not include cached tokens in `input_tokens`. Cached are those read.
#[derive(Debug, Default)]
#[expect(clippy::struct_field_names, reason = "the names are Anthropic's")]
pub(super) struct AnthropicUsage<'a> {
    input_tokens: Reported<'a>,
    cache_read_input_tokens: Reported<'a>,
    cache_creation_input_tokens: Reported<'a>,
    output_tokens: Reported<'a>,
}
from_object!(AnthropicUsage<'a> {
    input_tokens,
    cache_read_input_tokens,
    cache_creation_input_tokens,
    output_tokens
});

/// A count of the target that cannot be true, as it was written: `completion_tokens -5`. The first
/// of a response is kept.
#[derive(Debug, Default)]
pub(super) struct RefusedUsage(Option<String>);

impl RefusedUsage {
    pub(super) const NONE: Self = Self(None);

    pub(super) fn first(&self) -> Option<&str> {
        self.0.as_deref()
    }

    #[cold]
    fn add(&mut self, member: &str, written: &str) {
        let quote = &written[..written.floor_char_boundary(MAX_QUOTE)];
        self.0.get_or_insert_with(|| format!("{member} {quote}"));
    }

    /// The count, if it is one.
    fn count(&mut self, member: &str, reported: Reported<'_>) -> Option<u32> {
        match reported {
            Reported::Missing => None,
            Reported::Count(count) => Some(count),
            Reported::Impossible(written) => {
                self.add(member, written);
                None
            }
        }
    }

    fn tokens(&mut self, member: &str, reported: Reported<'_>) -> TokenCount {
        self.count(member, reported).map_or_else(TokenCount::default, TokenCount::reported)
    }

    fn cached(&mut self, details: Option<Details<'_>>) -> u32 {
        details.and_then(|own| self.count("cached_tokens", own.cached_tokens)).unwrap_or(0)
    }

    fn reasoning(&mut self, details: Option<Details<'_>>) -> u32 {
        details.and_then(|own| self.count("reasoning_tokens", own.reasoning_tokens)).unwrap_or(0)
    }

    /// Removes counts that cannot be true.
    ///
    /// - `prompt`: more than the bytes of the request could carry, and more than any model takes.
    ///   A gateway may add to a prompt, so the request alone does not bound it.
    /// - `completion`: more than the bytes of the response could carry, and more than was asked for
    ///   (or, where nothing was asked for, than any model writes). Hidden reasoning leaves no
    ///   bytes, so the response alone does not bound it.
    /// - `cached` and `reasoning` have the bounds of the counts that they are part of.
    pub(super) fn check(&mut self, usage: &mut Usage, bounds: UsageBounds) {
        let input = bounds.request_bytes.max(LARGEST_CONTEXT);
        let asked = bounds.asked_output.map_or(LARGEST_OUTPUT, u64::from);
        let output = bounds.response_bytes.max(asked);
        self.limit_tokens("prompt tokens", &mut usage.prompt, input);
        self.limit_tokens("output tokens", &mut usage.completion, output);
        self.limit("cached tokens", &mut usage.cached, input);
        self.limit("reasoning tokens", &mut usage.reasoning, output);
    }

    fn limit_tokens(&mut self, what: &str, tokens: &mut TokenCount, limit: u64) {
        if self.limit(what, &mut tokens.count, limit) {
            *tokens = TokenCount::default();
        }
    }

    /// Whether the count was beyond the limit; then it is set to zero.
    fn limit(&mut self, what: &str, count: &mut u32, limit: u64) -> bool {
        let beyond = u64::from(*count) > limit;
        if beyond {
            self.add(what, &count.to_string());
            *count = 0;
        }
        beyond
    }
}

/// What bounds the usage of a response.
#[derive(Clone, Copy, Debug)]
pub(super) struct UsageBounds {
    /// Bytes of the request's body.
    pub(super) request_bytes: u64,
    /// The most output tokens that were asked for.
    pub(super) asked_output: Option<u32>,
    /// Bytes of the response's body.
    pub(super) response_bytes: u64,
}

impl ChatUsage<'_> {
    pub(super) fn read(self, refused: &mut RefusedUsage) -> Usage {
        Usage {
            prompt: refused.tokens("prompt_tokens", self.prompt_tokens),
            completion: refused.tokens("completion_tokens", self.completion_tokens),
            cached: refused.cached(self.prompt_tokens_details),
            reasoning: refused.reasoning(self.completion_tokens_details),
        }
    }
}

impl ResponsesUsage<'_> {
    pub(super) fn read(self, refused: &mut RefusedUsage) -> Usage {
        Usage {
            prompt: refused.tokens("input_tokens", self.input_tokens),
            completion: refused.tokens("output_tokens", self.output_tokens),
            cached: refused.cached(self.input_tokens_details),
            reasoning: refused.reasoning(self.output_tokens_details),
        }
    }
}

impl AnthropicUsage<'_> {
    pub(super) fn read(self, refused: &mut RefusedUsage) -> Usage {
        let read = refused.count("cache_read_input_tokens", self.cache_read_input_tokens);
        let created =
            refused.count("cache_creation_input_tokens", self.cache_creation_input_tokens);
        let (read, created) = (read.unwrap_or(0), created.unwrap_or(0));
        let fresh = refused.count("input_tokens", self.input_tokens);
        let prompt = fresh.map(|fresh| fresh.saturating_add(read).saturating_add(created));
        Usage {
            prompt: prompt.map_or_else(TokenCount::default, TokenCount::reported),
            completion: refused.tokens("output_tokens", self.output_tokens),
            cached: read,
            reasoning: 0,
        }
    }

    /// Usage in a stream's `message_start`. Its output count is a placeholder and ignored.
    pub(super) fn without_output(self, refused: &mut RefusedUsage) -> Usage {
        Usage { completion: TokenCount::default(), ..self.read(refused) }
    }

    /// Usage in a `message_delta`. Counts are cumulative: the output count replaces the earlier
    /// one. The prompt is often missing or 0, so the larger count is kept.
    pub(super) fn merged_into(self, before: Usage, refused: &mut RefusedUsage) -> Usage {
        let now = self.read(refused);
        let prompt =
            if now.prompt.count > before.prompt.count { now.prompt } else { before.prompt };
        let completion = now.completion.known().map_or(before.completion, TokenCount::reported);
        Usage { prompt, completion, cached: now.cached.max(before.cached), ..before }
    }
}
