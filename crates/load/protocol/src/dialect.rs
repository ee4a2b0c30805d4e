//! The wire formats.

use plimsoll_measure::named_enum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The data of the event that ends a stream of chat completions.
pub(crate) const DONE: &str = "[DONE]";

named_enum! {
    /// A wire format.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Dialect {
        /// `POST /v1/chat/completions`.
        #[default]
        OpenaiChat => "openai-chat",
        /// `POST /v1/responses`.
        OpenaiResponses => "openai-responses",
        /// `POST /v1/embeddings`.
        OpenaiEmbeddings => "openai-embeddings",
        /// `POST /v1/messages`.
        AnthropicMessages => "anthropic-messages",
        /// `POST /v1/completions`: a text that the model continues, for models without a chat.
        OpenaiCompletions => "openai-completions",
        /// Tool servers: MCP over Streamable HTTP.
        Mcp => "mcp",
        /// Agents: A2A over JSON-RPC.
        A2a => "a2a",
        /// Messages over a WebSocket at `/ws/chat`: `{"message": "..."}` asks, and `{"type":
        /// "delta", "text": "..."}` up to `{"type": "done"}` is the response.
        Websocket => "websocket",
        /// Any HTTP request.
        Http => "http",
    }
}

impl Dialect {
    /// Path of requests below the API's version `/v1`, or instead of it for WebSockets; `None` if
    /// the dialect has none.
    pub const fn endpoint(self) -> Option<&'static str> {
        match self {
            Self::OpenaiChat => Some("/chat/completions"),
            Self::OpenaiCompletions => Some("/completions"),
            Self::OpenaiResponses => Some("/responses"),
            Self::OpenaiEmbeddings => Some("/embeddings"),
            Self::AnthropicMessages => Some("/messages"),
            Self::Websocket => Some("/ws/chat"),
            Self::Mcp | Self::A2a | Self::Http => None,
        }
    }

    /// Default path of JSON-RPC messages, for a target URL without a path.
    pub(crate) const fn rpc_path(self) -> Option<&'static str> {
        match self {
            Self::Mcp => Some("/mcp"),
            Self::A2a => Some("/a2a"),
            _ => None,
        }
    }

    /// Whether requests are JSON-RPC messages.
    pub const fn is_rpc(self) -> bool {
        self.rpc_path().is_some()
    }

    /// Whether requests name a model.
    pub const fn has_model(self) -> bool {
        !matches!(self, Self::Http | Self::Websocket) && !self.is_rpc()
    }

    /// The event or message that ends a stream; `None` if responses are never streamed, or if the
    /// response itself ends the stream.
    pub const fn terminator(self) -> Option<&'static str> {
        match self {
            Self::OpenaiChat | Self::OpenaiCompletions => Some(DONE),
            Self::OpenaiResponses => Some("response.completed"),
            Self::AnthropicMessages => Some("message_stop"),
            Self::Websocket => Some("done"),
            Self::OpenaiEmbeddings | Self::Mcp | Self::A2a | Self::Http => None,
        }
    }

    /// Whether streams end with `[DONE]`, which may be missing after a finish reason.
    pub(crate) const fn ends_with_done(self) -> bool {
        matches!(self, Self::OpenaiChat | Self::OpenaiCompletions)
    }

    /// Members of the request's JSON object that the encoder sets and parameters must not.
    pub const fn reserved(self) -> &'static [&'static str] {
        match self {
            Self::OpenaiChat => {
                &["model", "messages", "stream", "max_tokens", "max_completion_tokens"]
            }
            Self::OpenaiCompletions => &["model", "prompt", "stream", "max_tokens"],
            Self::OpenaiResponses => {
                &["model", "input", "instructions", "stream", "max_output_tokens"]
            }
            Self::OpenaiEmbeddings => &["model", "input"],
            Self::AnthropicMessages => &["model", "messages", "system", "stream", "max_tokens"],
            Self::Websocket => &["message"],
            Self::Mcp | Self::A2a | Self::Http => &[],
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
