//! The wire formats and their responses.
//!
//! They share no code with the load generator's encoders and decoders, so a wrong reading of a
//! format is noticed unless both make it.

mod chat;
mod completions;
mod embeddings;
mod error_body;
mod messages;
mod responses;
#[cfg(test)]
mod tests;
mod websocket;

pub(crate) use error_body::error_body;
use serde::{Deserialize, Serialize};

use crate::model_output::{ModelOutput, Section};

/// A wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// `POST /v1/chat/completions`.
    OpenaiChat,
    /// `POST /v1/completions`.
    OpenaiCompletions,
    /// `POST /v1/responses`.
    OpenaiResponses,
    /// `POST /v1/embeddings`.
    OpenaiEmbeddings,
    /// `POST /v1/messages`.
    AnthropicMessages,
    /// Messages over a WebSocket at `/ws/chat`.
    Websocket,
}

impl Dialect {
    /// The encoder of a stream; embeddings are never streamed.
    pub(crate) fn stream_encoder(self) -> Option<Box<dyn StreamEncoder>> {
        match self {
            Self::OpenaiChat => Some(Box::<chat::ChatEncoder>::default()),
            Self::OpenaiCompletions => Some(Box::<completions::CompletionsEncoder>::default()),
            Self::OpenaiResponses => Some(Box::<responses::ResponsesEncoder>::default()),
            Self::AnthropicMessages => Some(Box::<messages::MessagesEncoder>::default()),
            Self::Websocket => Some(Box::<websocket::WebSocketEncoder>::default()),
            Self::OpenaiEmbeddings => None,
        }
    }

    /// The body of a response that is not streamed.
    pub(crate) fn full_response(self, output: &ModelOutput) -> Vec<u8> {
        match self {
            Self::OpenaiChat => chat::full_response(output),
            Self::OpenaiCompletions => completions::full_response(output),
            Self::OpenaiResponses => responses::full_response(output),
            Self::AnthropicMessages => messages::full_response(output),
            Self::OpenaiEmbeddings => embeddings::full_response(output),
            // Its answers are always streams.
            Self::Websocket => Vec::new(),
        }
    }
}

/// The content of one event: some tokens of one section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delta<'a> {
    pub(crate) section: Section,
    /// Lower-case letters and blanks, safe in any JSON string; of a tool call: a part of its
    /// arguments as JSON.
    pub(crate) text: &'a [u8],
}

/// The stream events of a dialect. The calls come in this order: `start_stream`, then for each
/// section `start_section`, its deltas and `end_section`, and finally `end_stream`; or `error` at
/// any point after `start_stream`. A dialect without events at a place writes nothing there.
pub(crate) trait StreamEncoder {
    /// Writes the events before all content.
    fn start_stream(&mut self, _output: &ModelOutput, _out: &mut Vec<u8>) {}
    /// Writes the events before a section.
    fn start_section(&mut self, _output: &ModelOutput, _section: Section, _out: &mut Vec<u8>) {}
    /// Writes one content event.
    fn delta(&mut self, _output: &ModelOutput, _delta: Delta<'_>, _out: &mut Vec<u8>) {}
    /// Writes the events after a section.
    fn end_section(&mut self, _output: &ModelOutput, _section: Section, _out: &mut Vec<u8>) {}
    /// Writes the events after all content.
    fn end_stream(&mut self, _output: &ModelOutput, _out: &mut Vec<u8>) {}
    /// Writes an error event.
    fn error(&mut self, _out: &mut Vec<u8>) {}
}

/// Writes nothing, for plans of which only the times are needed.
#[derive(Debug)]
pub(crate) struct SilentEncoder;

impl StreamEncoder for SilentEncoder {}

/// The creation time of every response: a constant, so that the same request always gives the same
/// bytes.
const CREATED: &str = "1735689600";

/// Chained appending of text and numbers.
trait WriteExt {
    fn put(&mut self, text: impl AsRef<[u8]>) -> &mut Self;
    fn number(&mut self, number: impl itoa::Integer) -> &mut Self;
    /// Appends sixteen hexadecimal digits.
    fn hex(&mut self, number: u64) -> &mut Self;
}

impl WriteExt for Vec<u8> {
    fn put(&mut self, text: impl AsRef<[u8]>) -> &mut Self {
        self.extend_from_slice(text.as_ref());
        self
    }

    fn number(&mut self, number: impl itoa::Integer) -> &mut Self {
        self.put(itoa::Buffer::new().format(number))
    }

    fn hex(&mut self, number: u64) -> &mut Self {
        self.extend(
            (0..16).rev().map(|place| b"0123456789abcdef"[((number >> (4 * place)) & 15) as usize]),
        );
        self
    }
}

/// Writes JSON into a JSON string: its quotes and backslashes are escaped. Words need no escapes.
fn put_escaped(json: &[u8], out: &mut Vec<u8>) {
    for &byte in json {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
}
