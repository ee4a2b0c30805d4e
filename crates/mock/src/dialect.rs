//! The wire formats and their responses.
//!
//! They share no code with the load generator's encoders and decoders. So a misreading of a format
//! goes unnoticed only if it is made twice.

use serde::{Deserialize, Serialize};

use crate::model_output::ModelOutput;

mod chat;
mod completions;
mod embeddings;
mod error_body;
mod messages;
mod responses;
mod stream_encoder;
mod websocket;
mod write;

pub(crate) use error_body::error_body;
pub(crate) use stream_encoder::{Delta, SilentEncoder, StreamEncoder};

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

#[cfg(test)]
mod tests;
