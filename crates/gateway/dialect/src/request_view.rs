//! What the gateway's layers need to know about a request.

use serde_json::value::RawValue;

use crate::depth;
use crate::dialect::Endpoint;
use crate::error::DialectError;
use crate::wire::{Object, utf8};

mod field_path;
mod members;
mod prompt;
mod settings;
mod token_limits;

use field_path::FieldPath;
use members::RawMembers;
use prompt::{PromptCounter, decode};
pub use settings::Streaming;

/// A view of a request. No tree of the whole is built.
///
/// It checks the types of what it reads: the model, all texts, `stream`, the token limits and the
/// outer shape of messages. The upstream validates everything else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestView {
    /// The model's name.
    pub model: String,
    /// Whether the response is streamed.
    pub streaming: Streaming,
    /// The maximum number of output tokens: the largest of all that the request names,
    /// in any spelling and under the names of other servers; none where one says that there is
    /// none.
    pub max_tokens: Option<u64>,
    /// The number of answers that are asked for (`n`, in any spelling and under the names of other
    /// servers), each with up to [`max_tokens`](Self::max_tokens).
    pub answers: u64,
    /// An estimate of the prompt tokens: the UTF-8 bytes of each text divided by four, rounded up,
    /// plus the token ids. Budgets reserve this much and settle by the reported usage.
    ///
    /// The texts are system prompts, messages with all their text parts and documents, tool
    /// results, tool call arguments and embedding inputs. Images and tools are not counted.
    pub prompt_tokens: u64,
}

impl RequestView {
    /// Parses the body of a request to an endpoint.
    ///
    /// # Errors
    /// All are the caller's fault (status 400) and name the field: not UTF-8, nested deeper than
    /// [`MAX_DEPTH`](crate::MAX_DEPTH), not JSON, a field missing, duplicate or of a wrong type.
    pub fn read(endpoint: Endpoint, body: &[u8]) -> Result<Self, DialectError> {
        let body = utf8(body)?;
        depth::check(body.as_bytes())?;
        let members = serde_json::from_str::<Object<RawMembers<'_>>>(body)
            .map_err(|error| DialectError::Malformed(error.to_string()))?
            .0;
        let model = decode(required(members.model, "model")?, FieldPath::Name("model"))?;
        if model.is_empty() {
            return Err(DialectError::invalid("model", "must not be empty"));
        }
        Ok(Self {
            model: model.into_owned(),
            prompt_tokens: members.prompt_tokens(endpoint)?,
            streaming: members.streaming()?,
            max_tokens: members.max_tokens(endpoint)?,
            answers: members.answers()?,
        })
    }
}

impl RawMembers<'_> {
    fn prompt_tokens(&self, endpoint: Endpoint) -> Result<u64, DialectError> {
        let mut prompt = PromptCounter::default();
        let (first, name) = match endpoint {
            Endpoint::Messages => (self.system, "system"),
            Endpoint::Responses => (self.instructions, "instructions"),
            Endpoint::Chat | Endpoint::Embeddings => (None, ""),
        };
        if let Some(content) = first {
            prompt.content(content, FieldPath::Name(name))?;
        }
        match endpoint {
            Endpoint::Chat | Endpoint::Messages => {
                prompt.messages(required(self.messages, "messages")?)?;
            }
            Endpoint::Responses | Endpoint::Embeddings => {
                prompt.input(required(self.input, "input")?)?;
            }
        }
        Ok(prompt.tokens)
    }
}

fn required<'a>(raw: Option<&'a RawValue>, name: &str) -> Result<&'a RawValue, DialectError> {
    raw.ok_or_else(|| DialectError::missing(name))
}

#[cfg(test)]
mod tests;
