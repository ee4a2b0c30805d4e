//! Translates between OpenAI's chat completions and Anthropic's messages.
//!
//! Content without an equivalent (audio, documents, tools that run at the provider) is rejected
//! with an error that names it, and so are members whose absence would change the answer
//! (`response_format`, `logprobs`, `functions`). All other members without an equivalent are
//! omitted, and [`Translator::left_out`] names them. (If caller and upstream use the same dialect,
//! nothing is translated and the bytes pass unchanged.) Thinking blocks, reasoning in streams,
//! citations and log probabilities of answers are omitted. Anthropic rejects empty texts, so they
//! are not sent.
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

mod finish_reason;
mod members;
mod request_to_anthropic;
mod request_to_openai;
mod response;
mod stream;
mod stream_to_anthropic;
mod stream_to_openai;
#[cfg(test)]
mod tests;

pub use request_to_anthropic::DEFAULT_MAX_TOKENS;
pub use stream::{StreamSettings, StreamTranslator};

use crate::dialect::{Dialect, Endpoint};
use crate::error::DialectError;
use crate::error_body::{ErrorBody, status_for};
use crate::wire::openai::ToolDelta;

/// The name of the output limit in requests to a provider of OpenAI's dialect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(serde::Serialize, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LimitName {
    /// OpenAI's name
    #[default]
    MaxCompletionTokens,
    /// the name of older and many other servers
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

/// The calls so far, in the order in which they began.
///
/// Servers disagree about `index`: some count, some always send 0, some send none. So a delta
/// belongs to the call with its id; without an id to the last call with its index, or else to the
/// last one. A delta with an id or a name that begins something new begins a call.
#[derive(Debug, Default)]
struct ToolCalls(Vec<Call>);

/// A call.
#[derive(Debug)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    extent: JsonExtent,
    /// Arguments that are not written yet.
    waiting: String,
    state: CallState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallState {
    /// Its block has not begun.
    Waiting,
    Open,
    Closed,
}

impl ToolCalls {
    /// The position of the call that a delta begins or continues. Its arguments are added to those
    /// that wait.
    fn add(&mut self, delta: &ToolDelta<'_>) -> usize {
        let at = self.find(delta).unwrap_or_else(|| self.begin(delta));
        if let Some(call) = self.0.get_mut(at)
            && let Some(arguments) = delta.function.arguments.as_deref()
        {
            call.extent.feed(arguments);
            call.waiting.push_str(arguments);
        }
        at
    }

    fn find(&self, delta: &ToolDelta<'_>) -> Option<usize> {
        if let Some(id) = delta.id()
            && let Some(at) = self.0.iter().rposition(|call| call.id == id)
        {
            return Some(at);
        }
        let at = match delta.index {
            Some(_) => self.0.iter().rposition(|call| call.index == delta.index),
            None => self.0.len().checked_sub(1),
        }?;
        let call = self.0.get(at)?;
        let Some(name) = delta.name() else { return Some(at) };
        let is_new = delta.id().is_some()
            || call.extent.is_complete
            || (delta.index.is_none() && name != call.name);
        (!is_new).then_some(at)
    }

    fn begin(&mut self, delta: &ToolDelta<'_>) -> usize {
        let at = self.0.len();
        self.0.push(Call {
            index: delta.index,
            id: delta.id().map_or_else(|| missing_id(at), str::to_owned),
            name: delta.name().unwrap_or_default().to_owned(),
            extent: JsonExtent::default(),
            waiting: String::new(),
            state: CallState::Waiting,
        });
        at
    }

    /// The first call that waits.
    fn first_waiting(&self) -> Option<usize> {
        self.0.iter().position(|call| call.state == CallState::Waiting)
    }

    /// Whether the arguments of a call are a whole JSON value.
    fn is_complete(&self, at: usize) -> bool {
        self.0.get(at).is_some_and(|call| call.extent.is_complete)
    }
}

/// The id of a call for which the server gave none.
fn missing_id(at: usize) -> String {
    format!("call_{at}")
}

/// How far a JSON object or array is that arrives in pieces.
#[derive(Debug, Default)]
struct JsonExtent {
    depth: usize,
    place: Place,
    is_complete: bool,
}

#[derive(Clone, Copy, Debug, Default)]
enum Place {
    #[default]
    Outside,
    InString,
    AfterBackslash,
}

impl JsonExtent {
    fn feed(&mut self, piece: &str) {
        for byte in piece.bytes() {
            match (self.place, byte) {
                (Place::AfterBackslash, _) | (Place::Outside, b'"') => self.place = Place::InString,
                (Place::InString, b'\\') => self.place = Place::AfterBackslash,
                (Place::InString, b'"') => self.place = Place::Outside,
                (Place::Outside, b'{' | b'[') => self.depth += 1,
                (Place::Outside, b'}' | b']') => {
                    self.depth = self.depth.saturating_sub(1);
                    self.is_complete |= self.depth == 0;
                }
                _ => {}
            }
        }
    }
}
