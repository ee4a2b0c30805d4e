//! The wire formats.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The data of the event that ends a stream of chat completions.
pub(crate) const DONE: &str = "[DONE]";

/// A wire format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// `POST /v1/chat/completions`.
    #[default]
    OpenaiChat,
    /// `POST /v1/responses`.
    OpenaiResponses,
    /// `POST /v1/embeddings`.
    OpenaiEmbeddings,
    /// `POST /v1/messages`.
    AnthropicMessages,
    /// Any HTTP request.
    Http,
}

impl Dialect {
    /// Every dialect, in the order of declaration.
    pub const ALL: [Self; 5] = [
        Self::OpenaiChat,
        Self::OpenaiResponses,
        Self::OpenaiEmbeddings,
        Self::AnthropicMessages,
        Self::Http,
    ];

    /// The name in profiles and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenaiChat => "openai-chat",
            Self::OpenaiResponses => "openai-responses",
            Self::OpenaiEmbeddings => "openai-embeddings",
            Self::AnthropicMessages => "anthropic-messages",
            Self::Http => "http",
        }
    }

    /// The path of requests below the API's version `/v1`; `None` for plain HTTP.
    pub const fn endpoint(self) -> Option<&'static str> {
        match self {
            Self::OpenaiChat => Some("/chat/completions"),
            Self::OpenaiResponses => Some("/responses"),
            Self::OpenaiEmbeddings => Some("/embeddings"),
            Self::AnthropicMessages => Some("/messages"),
            Self::Http => None,
        }
    }

    /// The event that ends a stream; `None` where responses are never streamed as events.
    pub const fn terminator(self) -> Option<&'static str> {
        match self {
            Self::OpenaiChat => Some(DONE),
            Self::OpenaiResponses => Some("response.completed"),
            Self::AnthropicMessages => Some("message_stop"),
            Self::OpenaiEmbeddings | Self::Http => None,
        }
    }

    /// Members of the request's JSON object that the encoder sets and parameters must not.
    pub const fn reserved(self) -> &'static [&'static str] {
        match self {
            Self::OpenaiChat => &[
                "model",
                "messages",
                "stream",
                "stream_options",
                "max_tokens",
                "max_completion_tokens",
            ],
            Self::OpenaiResponses => {
                &["model", "input", "instructions", "stream", "max_output_tokens"]
            }
            Self::OpenaiEmbeddings => &["model", "input"],
            Self::AnthropicMessages => &["model", "messages", "system", "stream", "max_tokens"],
            Self::Http => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_the_serialized_name() {
        for dialect in Dialect::ALL {
            assert_eq!(serde_json::to_value(dialect).unwrap(), dialect.name());
        }
    }
}
