//! The wire formats and their responses.
//!
//! They share no code with the load generator's encoders and decoders, so a wrong reading of a
//! format is noticed unless both make it.

mod encoder;
mod error_body;
#[cfg(test)]
mod tests;

pub(crate) use encoder::Encoder;
pub(crate) use error_body::error_body;
use serde::{Deserialize, Serialize};

use crate::model_output::ModelOutput;

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
    pub(crate) fn stream_encoder(self) -> Option<Encoder> {
        (self != Self::OpenaiEmbeddings).then(|| Encoder::new(self))
    }

    /// The body of a response that is not streamed. The answers of a WebSocket always are.
    pub(crate) fn full_response(self, output: &ModelOutput) -> Vec<u8> {
        Encoder::new(self).full_response(output)
    }
}
