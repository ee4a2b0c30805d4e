//! Translates between OpenAI's chat completions and Anthropic's messages.
//!
//! Content without an equivalent (audio, documents, tools that run at the provider) is rejected
//! with an error that names it, and so are members without which the answer would be another one
//! (`response_format`, `logprobs`, `functions`). All other members without an equivalent are left
//! out, and [`Translator::left_out`] names them. (If caller and upstream use the same dialect,
//! nothing is translated and the bytes pass unchanged.) Of answers, thinking blocks, the model's
//! reasoning in streams, citations and log probabilities are left out. Anthropic refuses empty
//! texts: they are not sent.
//!
//! | OpenAI | Anthropic |
//! |---|---|
//! | `system` and `developer` messages, anywhere | `system`, in their order |
//! | consecutive `tool` messages | one `user` message of `tool_result` blocks |
//! | `tool_calls[].function.arguments`, JSON in a string | `tool_use.input`, an object |
//! | `image_url` with `data:` or another URL | `image` with `base64` or `url` source |
//! | `tool_choice` `auto`, `required`, `none`, by name | `auto`, `any`, `none`, `tool` |
//! | `parallel_tool_calls: false` | `disable_parallel_tool_use: true` |
//! | `max_completion_tokens`, else `max_tokens`, else 4096 | `max_tokens` |
//! | `max_completion_tokens` or `max_tokens`, as the provider knows it | `max_tokens` |
//! | `temperature` 0 to 2 | `temperature` 0 to 1; higher values become 1 |
//! | `stop`, one or several | `stop_sequences` |
//! | `user` | `metadata.user_id` |
//! | `stream_options.include_usage` | usage is always reported |
//! | finish `stop`, `length` | `end_turn`, `max_tokens` |
//! | finish `tool_calls`, `content_filter` | `tool_use`, `refusal` |
//! | `prompt_tokens`, cached ones included | `input_tokens`, cached ones apart |

use crate::dialect::{Dialect, Endpoint};
use crate::error::DialectError;
use crate::error_body::{ErrorBody, status_for};

mod finish_reason;
mod members;
mod request_to_anthropic;
mod request_to_openai;
mod response;
mod stream;
mod stream_settings;
mod stream_to_anthropic;
mod stream_to_openai;
mod tool_calls;

pub use request_to_anthropic::DEFAULT_MAX_TOKENS;
pub use stream::StreamTranslator;
pub use stream_settings::StreamSettings;

/// The name under which a provider of OpenAI's dialect knows the most tokens of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LimitName {
    /// As OpenAI itself has it.
    #[default]
    MaxCompletionTokens,
    /// As older servers have it.
    MaxTokens,
}

/// Translates between a caller and an upstream of different dialects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Translator {
    caller: Dialect,
}

impl Translator {
    /// A translator; None if caller and upstream use the same dialect.
    pub fn between(caller: Dialect, upstream: Dialect) -> Option<Self> {
        (caller != upstream).then_some(Self { caller })
    }

    /// The upstream's endpoint.
    pub const fn upstream_endpoint(self) -> Endpoint {
        match self.caller {
            Dialect::OpenAi => Endpoint::Messages,
            Dialect::Anthropic => Endpoint::Chat,
        }
    }

    /// The caller's request in the upstream's dialect.
    ///
    /// # Errors
    /// The request is invalid or has no equivalent; status 400.
    pub fn request(self, body: &[u8], limit: LimitName) -> Result<Vec<u8>, DialectError> {
        match self.caller {
            Dialect::OpenAi => request_to_anthropic::translate(body),
            Dialect::Anthropic => request_to_openai::translate(body, limit),
        }
    }

    /// The members of the caller's request that the upstream does not get, by their names and
    /// separated by commas; `None` where it gets all.
    ///
    /// # Errors
    /// A member without which the answer would be another one; status 400.
    pub fn left_out(self, body: &[u8]) -> Result<Option<String>, DialectError> {
        members::left_out(self.caller, body)
    }

    /// The upstream's whole response in the caller's dialect. `created`, in seconds since 1970, is
    /// for OpenAI callers: Anthropic's responses have no creation time.
    ///
    /// # Errors
    /// The response is invalid; status 502.
    pub fn response(self, body: &[u8], created: u64) -> Result<Vec<u8>, DialectError> {
        match self.caller {
            Dialect::OpenAi => response::to_openai(body, created),
            Dialect::Anthropic => response::to_anthropic(body),
        }
    }

    /// A translator for the upstream's streamed response.
    pub fn stream(self, settings: StreamSettings) -> StreamTranslator {
        StreamTranslator::new(self.caller, settings)
    }

    /// The upstream's error, as status and body for the caller.
    pub fn error(self, status: u16, body: &[u8]) -> (u16, Vec<u8>) {
        let error = ErrorBody::parse(status, body);
        (status_for(self.caller, status), error.to_bytes(self.caller))
    }
}

#[cfg(test)]
mod tests;
