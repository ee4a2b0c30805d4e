//! A borrowed view of a request: what the gateway's layers need to know about it.

use serde_json::value::RawValue;

use crate::depth;
use crate::dialect::Endpoint;
use crate::error::DialectError;
use crate::wire::{Object, utf8};

mod field_path;
mod members;
mod settings;
mod texts;
mod token_limits;

use field_path::FieldPath;
use members::RawMembers;
use settings::Settings;
pub use settings::Streaming;
pub use texts::RequestText;
use texts::TextCollector;

/// A view of a request. No tree is built; strings without escapes are borrowed.
///
/// It checks the types of what it reads: the model, all texts, `stream`, the token limits and the
/// outer shape of messages. The upstream validates everything else.
#[derive(Debug)]
pub struct RequestView<'a> {
    model: RequestText<'a>,
    streaming: Streaming,
    max_tokens: Option<u64>,
    answers: u64,
    tools: bool,
    texts: Vec<RequestText<'a>>,
    token_ids: u64,
}

impl<'a> RequestView<'a> {
    /// Parses the body of a request to an endpoint.
    ///
    /// # Errors
    /// All are the caller's fault (status 400) and name the field: not UTF-8, nested deeper than
    /// [`MAX_DEPTH`](crate::MAX_DEPTH), not JSON, a field missing, duplicate or of a wrong type.
    pub fn read(endpoint: Endpoint, body: &'a [u8]) -> Result<Self, DialectError> {
        let body = utf8(body)?;
        depth::check(body.as_bytes())?;
        let raw = read_members(body)?;
        let mut texts = TextCollector::new(body);
        let model = raw.model.ok_or_else(|| DialectError::missing("model"))?;
        let model = texts.decode(model, FieldPath::Name("model"))?;
        if model.as_str().is_empty() {
            return Err(DialectError::invalid("model", "must not be empty"));
        }
        raw.collect_texts(endpoint, &mut texts)?;
        let (texts, token_ids) = texts.finish();
        let settings = raw.settings();
        Ok(Self {
            model,
            streaming: settings.streaming()?,
            max_tokens: settings.max_tokens(endpoint)?,
            answers: settings.answers()?,
            tools: settings.has_tools(),
            texts,
            token_ids,
        })
    }

    /// The model's name.
    pub fn model(&self) -> &str {
        self.model.as_str()
    }

    /// Whether the response is streamed.
    pub const fn streaming(&self) -> Streaming {
        self.streaming
    }

    /// The number of answers that are asked for (`n`, in any spelling and under the names of other
    /// servers), each with up to
    /// [`max_tokens`](Self::max_tokens).
    pub const fn answers(&self) -> u64 {
        self.answers
    }

    /// The maximum number of output tokens: the largest of all that the request names,
    /// in any spelling and under the names of other servers; none where one says that there is
    /// none.
    pub const fn max_tokens(&self) -> Option<u64> {
        self.max_tokens
    }

    /// Whether the request offers tools to the model.
    pub const fn has_tools(&self) -> bool {
        self.tools
    }

    /// The texts that count as prompt tokens, in the order of the body: system prompts, messages
    /// with all their text parts and documents, tool results, tool call arguments, embedding
    /// inputs. A policy reads more than these: the crate `inspect` finds every text.
    pub fn texts(&self) -> &[RequestText<'a>] {
        &self.texts
    }

    /// An estimate of the prompt tokens: the UTF-8 bytes of each text divided by four, rounded up,
    /// plus the token ids. Budgets reserve this much and settle by the reported usage. Images and
    /// tools are not counted.
    pub fn prompt_tokens(&self) -> u64 {
        self.texts
            .iter()
            .map(|text: &RequestText<'_>| text.as_str().len().div_ceil(4) as u64)
            .sum::<u64>()
            + self.token_ids
    }
}

fn read_members(body: &str) -> Result<RawMembers<'_>, DialectError> {
    serde_json::from_str::<Object<RawMembers<'_>>>(body)
        .map(|object| object.0)
        .map_err(|error| DialectError::Malformed(error.to_string()))
}

impl<'a> RawMembers<'a> {
    fn collect_texts(
        &self,
        endpoint: Endpoint,
        texts: &mut TextCollector<'a>,
    ) -> Result<(), DialectError> {
        match endpoint {
            Endpoint::Chat => texts.messages(required(self.messages, "messages")?),
            Endpoint::Messages => {
                if let Some(system) = self.system {
                    texts.content(system, FieldPath::Name("system"))?;
                }
                texts.messages(required(self.messages, "messages")?)
            }
            Endpoint::Responses => {
                if let Some(instructions) = self.instructions {
                    texts.content(instructions, FieldPath::Name("instructions"))?;
                }
                texts.input(required(self.input, "input")?)
            }
            Endpoint::Embeddings => texts.input(required(self.input, "input")?),
        }
    }

    fn settings(&self) -> Settings<'a> {
        Settings {
            stream: self.stream.map(RawValue::get),
            stream_options: self.stream_options.map(RawValue::get),
            max_tokens: self.max_tokens.map(RawValue::get),
            max_completion_tokens: self.max_completion_tokens.map(RawValue::get),
            max_output_tokens: self.max_output_tokens.map(RawValue::get),
            n: self.n.map(RawValue::get),
            tools: self.tools.map(RawValue::get),
            limits: self.limits,
        }
    }
}

fn required<'a>(raw: Option<&'a RawValue>, name: &str) -> Result<&'a RawValue, DialectError> {
    raw.ok_or_else(|| DialectError::missing(name))
}

#[cfg(test)]
mod tests;
