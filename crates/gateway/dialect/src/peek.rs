//! A cheap look at a request: what the layers of a gateway need to know, borrowed from its own bytes.

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::depth;
use crate::dialect::Endpoint;
use crate::error::DialectError;
use crate::splice::{self, range_in};
use crate::wire::{Object, utf8};

mod chat;
mod path;
mod texts;

use path::Path;
pub use texts::Text;
use texts::Texts;

/// What a request asks for. No tree is built; strings without escapes are borrowed.
///
/// What was looked at is of the right type: the model and all texts, `stream`, the token limits and
/// the outer shape of messages. Everything else is the upstream's to judge.
#[derive(Debug)]
pub struct RequestView<'a> {
    body: &'a str,
    model: Text<'a>,
    streaming: Streaming,
    max_tokens: Option<u64>,
    tools: bool,
    texts: Vec<Text<'a>>,
    token_ids: u64,
}

/// How the answer is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streaming {
    /// Whole.
    No,
    /// As a stream of events.
    Yes,
    /// As a stream that ends with usage, though the dialect does not say it unasked (chat completions
    /// with `stream_options.include_usage`).
    WithUsage,
}

/// The members of all endpoints, unread. Serde refuses the same name twice.
#[derive(Deserialize)]
struct Raw<'a> {
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    stream: Option<&'a RawValue>,
    stream_options: Option<&'a RawValue>,
    max_tokens: Option<&'a RawValue>,
    max_completion_tokens: Option<&'a RawValue>,
    max_output_tokens: Option<&'a RawValue>,
    tools: Option<&'a RawValue>,
    system: Option<&'a RawValue>,
    instructions: Option<&'a RawValue>,
    messages: Option<&'a RawValue>,
    input: Option<&'a RawValue>,
}

impl<'a> RequestView<'a> {
    /// Looks at the body of a request to an endpoint.
    ///
    /// # Errors
    /// All are the caller's fault (status 400) and name the field: not UTF-8, nested deeper than
    /// [`MAX_DEPTH`](crate::MAX_DEPTH), not JSON, a field missing, twice or of a wrong type.
    pub fn read(endpoint: Endpoint, body: &'a [u8]) -> Result<Self, DialectError> {
        let body = utf8(body)?;
        let plain = if endpoint == Endpoint::Chat { chat::read(body) } else { None };
        plain.map_or_else(|| Self::read_thoroughly(endpoint, body), Ok)
    }

    /// What any request is read by, and whatever is wrong with one is found by.
    fn read_thoroughly(endpoint: Endpoint, body: &'a str) -> Result<Self, DialectError> {
        depth::check(body.as_bytes())?;
        let raw = read_outer(body)?;
        let mut texts = Texts::new(body);
        let model = raw.model.ok_or_else(|| DialectError::missing("model"))?;
        let model = texts.one(model, Path::Name("model"))?;
        if model.as_str().is_empty() {
            return Err(DialectError::wrong("model", "must not be empty"));
        }
        raw.collect(endpoint, &mut texts)?;
        let (texts, token_ids) = texts.finish();
        let settings = raw.settings();
        Ok(Self {
            body,
            model,
            streaming: settings.streaming()?,
            max_tokens: settings.max_tokens(endpoint)?,
            tools: settings.has_tools(),
            texts,
            token_ids,
        })
    }

    /// The model's name.
    pub fn model(&self) -> &str {
        self.model.as_str()
    }

    /// How the answer is wanted.
    pub const fn streaming(&self) -> Streaming {
        self.streaming
    }

    /// The most output tokens, under whichever name the endpoint gives it.
    pub const fn max_tokens(&self) -> Option<u64> {
        self.max_tokens
    }

    /// Are tools offered to the model?
    pub const fn has_tools(&self) -> bool {
        self.tools
    }

    /// The texts that a policy scans, in the order of the body: system prompts, messages with all their
    /// text parts and documents, tool results, arguments of tool calls, inputs to embed. Images, audio
    /// and the model's thinking (which is signed and cannot be changed) are left out.
    pub fn texts(&self) -> &[Text<'a>] {
        &self.texts
    }

    /// Roughly the prompt's tokens: UTF-8 bytes of each text divided by four, rounded up, and token ids
    /// as they are. Good for budgets to reserve; usage settles them. Images and tools count nothing.
    pub fn prompt_tokens(&self) -> u64 {
        let tokens = |text: &Text<'_>| text.as_str().len().div_ceil(4) as u64;
        self.texts.iter().map(tokens).sum::<u64>() + self.token_ids
    }

    /// The body with another model's name; every other byte stays.
    ///
    /// # Errors
    /// None that is known.
    pub fn with_model(&self, model: &str) -> Result<Vec<u8>, DialectError> {
        let mut out = Vec::with_capacity(self.body.len() + model.len());
        let patch = (self.model.range(), model.to_owned());
        splice::write(self.body.as_bytes(), &[patch], &mut out)?;
        Ok(out)
    }

    /// The body with its texts changed, as redaction does; None where no text changed. Every other byte
    /// stays.
    ///
    /// # Errors
    /// None that is known.
    pub fn rewrite(
        &self,
        mut change: impl FnMut(&str) -> Cow<'_, str>,
    ) -> Result<Option<Vec<u8>>, DialectError> {
        let mut patches = Vec::new();
        for text in &self.texts {
            let changed = change(text.as_str());
            if changed != text.as_str() {
                patches.push((text.range(), changed.into_owned()));
            }
        }
        if patches.is_empty() {
            return Ok(None);
        }
        let mut out = Vec::with_capacity(self.body.len());
        splice::write(self.body.as_bytes(), &patches, &mut out)?;
        Ok(Some(out))
    }
}

fn read_outer(body: &str) -> Result<Raw<'_>, DialectError> {
    serde_json::from_str::<Object<Raw<'_>>>(body)
        .map(|object| object.0)
        .map_err(|error| DialectError::Malformed(error.to_string()))
}

impl<'a> Raw<'a> {
    fn collect(&self, endpoint: Endpoint, texts: &mut Texts<'a>) -> Result<(), DialectError> {
        match endpoint {
            Endpoint::Chat => texts.messages(required(self.messages, "messages")?),
            Endpoint::Messages => {
                if let Some(system) = self.system {
                    texts.content(system, Path::Name("system"))?;
                }
                texts.messages(required(self.messages, "messages")?)
            }
            Endpoint::Responses => {
                if let Some(instructions) = self.instructions {
                    texts.content(instructions, Path::Name("instructions"))?;
                }
                texts.input(required(self.input, "input")?)
            }
            Endpoint::Embeddings => texts.input(required(self.input, "input")?),
        }
    }

    fn settings(&self) -> Settings<'a> {
        let written = |raw: Option<&'a RawValue>| raw.map(RawValue::get);
        Settings {
            stream: written(self.stream),
            stream_options: written(self.stream_options),
            max_tokens: written(self.max_tokens),
            max_completion_tokens: written(self.max_completion_tokens),
            max_output_tokens: written(self.max_output_tokens),
            tools: written(self.tools),
        }
    }
}

/// Members that are not text, as they are written; none for null.
#[derive(Debug, Default)]
struct Settings<'a> {
    stream: Option<&'a str>,
    stream_options: Option<&'a str>,
    max_tokens: Option<&'a str>,
    max_completion_tokens: Option<&'a str>,
    max_output_tokens: Option<&'a str>,
    tools: Option<&'a str>,
}

impl Settings<'_> {
    fn without_nulls(mut self) -> Self {
        for value in [
            &mut self.stream,
            &mut self.stream_options,
            &mut self.max_tokens,
            &mut self.max_completion_tokens,
            &mut self.max_output_tokens,
            &mut self.tools,
        ] {
            *value = value.filter(|value| *value != "null");
        }
        self
    }

    fn streaming(&self) -> Result<Streaming, DialectError> {
        match self.stream {
            None | Some("false") => Ok(Streaming::No),
            Some("true") if self.wants_usage()? => Ok(Streaming::WithUsage),
            Some("true") => Ok(Streaming::Yes),
            Some(_) => Err(DialectError::wrong("stream", "must be true or false")),
        }
    }

    fn wants_usage(&self) -> Result<bool, DialectError> {
        #[derive(Deserialize)]
        struct Options {
            include_usage: Option<bool>,
        }
        let Some(options) = self.stream_options else { return Ok(false) };
        serde_json::from_str::<Object<Options>>(options)
            .map(|options| options.0.include_usage == Some(true))
            .map_err(|error| DialectError::wrong("stream_options", error))
    }

    fn has_tools(&self) -> bool {
        self.tools.is_some_and(|tools| tools != "[]")
    }

    fn max_tokens(&self, endpoint: Endpoint) -> Result<Option<u64>, DialectError> {
        let wanted = [
            ("max_completion_tokens", self.max_completion_tokens),
            ("max_output_tokens", self.max_output_tokens),
            ("max_tokens", self.max_tokens),
        ];
        let mut first = None;
        for (name, raw) in wanted {
            let Some(raw) = raw else { continue };
            let wrong = |_| DialectError::wrong(name, "must be a whole number, zero or more");
            let number: u64 = raw.parse().map_err(wrong)?;
            first = first.or(Some(number));
        }
        match (endpoint, first) {
            (Endpoint::Messages, None) => Err(DialectError::missing("max_tokens")),
            (_, found) => Ok(found),
        }
    }
}

fn required<'a>(raw: Option<&'a RawValue>, name: &str) -> Result<&'a RawValue, DialectError> {
    raw.ok_or_else(|| DialectError::missing(name))
}

impl Text<'_> {
    /// Where the JSON string is in the body, quotes included.
    pub fn range(&self) -> Range<usize> {
        self.at.clone()
    }

    /// The text, escapes resolved.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl<'a> Text<'a> {
    fn read(body: &str, raw: &'a RawValue, path: Path<'_>) -> Result<Self, DialectError> {
        Self::of(body, raw.get(), path)
    }

    /// A value as it is written in `body`.
    fn of(body: &str, quoted: &'a str, path: Path<'_>) -> Result<Self, DialectError> {
        let inside = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let inside = inside.ok_or_else(|| DialectError::wrong(path, "must be a string"))?;
        let text = if memchr::memchr(b'\\', inside.as_bytes()).is_none() {
            Cow::Borrowed(inside)
        } else {
            let text = serde_json::from_str(quoted);
            Cow::Owned(text.map_err(|error| DialectError::wrong(path, error))?)
        };
        Ok(Self { text, at: range_in(body.as_bytes(), quoted) })
    }
}

#[cfg(test)]
mod tests;
