//! From one dialect to the other and back.
//!
//! What both can say is translated; members that this crate does not know are dropped on the way across
//! (they are kept only where caller and upstream speak the same dialect and the bytes pass as they are).
//! Content that the other side cannot hold (audio, documents, tools that run at the provider) is refused
//! and named, never dropped. What is dropped though it is known: `strict` of a tool, `detail` of an
//! image, `is_error` of a tool's result, `cache_control`, thinking blocks, the model's reasoning in
//! streams, citations, log probabilities, `response_format`, `seed`, penalties and OpenAI's `metadata`.
//!
//! | OpenAI | Anthropic |
//! |---|---|
//! | `system` and `developer` messages, anywhere | `system`, in their order |
//! | `tool` messages, in a row | one `user` message of `tool_result` blocks |
//! | `tool_calls[].function.arguments`, JSON in a string | `tool_use.input`, an object |
//! | `image_url` with `data:` or another URL | `image` with `base64` or `url` source |
//! | `tool_choice` `auto`, `required`, `none`, by name | `auto`, `any`, `none`, `tool` |
//! | `parallel_tool_calls: false` | `disable_parallel_tool_use: true` |
//! | `max_completion_tokens`, else `max_tokens`, else 4096 | `max_tokens` |
//! | `temperature` 0 to 2 | `temperature` 0 to 1; higher values become 1 |
//! | `stop`, one or several | `stop_sequences` |
//! | `user` | `metadata.user_id` |
//! | `stream_options.include_usage` | usage is always said |
//! | finish `stop`, `length`, `tool_calls`, `content_filter` | `end_turn`, `max_tokens`, `tool_use`, `refusal` |
//! | `prompt_tokens`, cached ones included | `input_tokens`, cached ones apart |

use crate::dialect::{Dialect, Endpoint};
use crate::envelope::{Envelope, status_for};
use crate::error::DialectError;

mod answer;
mod reason;
mod request_to_anthropic;
mod request_to_openai;
mod stream;
mod stream_to_anthropic;
mod stream_to_openai;

pub use request_to_anthropic::DEFAULT_MAX_TOKENS;
pub use stream::{StreamSettings, StreamTranslator};

/// A caller and an upstream of different dialects: chat completions on one side, messages on the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Translator {
    caller: Dialect,
}

impl Translator {
    /// The way between a caller and an upstream; None where both speak alike and nothing is to be done.
    pub fn between(caller: Dialect, upstream: Dialect) -> Option<Self> {
        (caller != upstream).then_some(Self { caller })
    }

    /// The upstream's endpoint to send to.
    pub const fn upstream_endpoint(self) -> Endpoint {
        match self.caller {
            Dialect::OpenAi => Endpoint::Messages,
            Dialect::Anthropic => Endpoint::Chat,
        }
    }

    /// The caller's request, said in the upstream's dialect, for another model if one is given.
    ///
    /// # Errors
    /// The request is not of the caller's dialect, or has no counterpart; status 400.
    pub fn request(self, body: &[u8], model: Option<&str>) -> Result<Vec<u8>, DialectError> {
        match self.caller {
            Dialect::OpenAi => request_to_anthropic::translate(body, model),
            Dialect::Anthropic => request_to_openai::translate(body, model),
        }
    }

    /// The upstream's whole answer, said in the caller's dialect. OpenAI's answers carry the time of
    /// their making, in seconds since 1970, which Anthropic's lack.
    ///
    /// # Errors
    /// The answer is not of the upstream's dialect; status 502.
    pub fn answer(self, body: &[u8], created: u64) -> Result<Vec<u8>, DialectError> {
        match self.caller {
            Dialect::OpenAi => answer::to_openai(body, created),
            Dialect::Anthropic => answer::to_anthropic(body),
        }
    }

    /// A translator for the upstream's streamed answer.
    pub fn stream(self, settings: StreamSettings) -> StreamTranslator {
        StreamTranslator::new(self.caller, settings)
    }

    /// The upstream's error, as status and body for the caller.
    pub fn error(self, status: u16, body: &[u8]) -> (u16, Vec<u8>) {
        let upstream = self.upstream_endpoint().dialect();
        let envelope = Envelope::read(upstream, status, body);
        (status_for(self.caller, status), envelope.to_bytes(self.caller))
    }
}

#[cfg(test)]
mod tests;
