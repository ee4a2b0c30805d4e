//! The two API dialects and their endpoints.

/// A provider's API format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// OpenAI's API and the servers that are compatible with it.
    OpenAi,
    /// Anthropic's API.
    Anthropic,
}

/// An endpoint of a provider's API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// OpenAI: `POST /v1/chat/completions`. Translates to [`Endpoint::Messages`].
    Chat,
    /// OpenAI: `POST /v1/responses`. Inspected, never translated.
    Responses,
    /// OpenAI: `POST /v1/embeddings`. Inspected, never translated.
    Embeddings,
    /// Anthropic: `POST /v1/messages`. Translates to [`Endpoint::Chat`].
    Messages,
}

impl Endpoint {
    /// The endpoint of a path (without the query), or None for any other path.
    pub fn from_path(path: &str) -> Option<Self> {
        match path {
            "/v1/chat/completions" => Some(Self::Chat),
            "/v1/responses" => Some(Self::Responses),
            "/v1/embeddings" => Some(Self::Embeddings),
            "/v1/messages" => Some(Self::Messages),
            _ => None,
        }
    }

    /// The path of the endpoint.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Chat => "/v1/chat/completions",
            Self::Responses => "/v1/responses",
            Self::Embeddings => "/v1/embeddings",
            Self::Messages => "/v1/messages",
        }
    }

    /// The dialect that the endpoint belongs to and reports its errors in.
    pub const fn dialect(self) -> Dialect {
        match self {
            Self::Chat | Self::Responses | Self::Embeddings => Dialect::OpenAi,
            Self::Messages => Dialect::Anthropic,
        }
    }

    /// The equivalent endpoint of another dialect, or None if there is none.
    pub const fn counterpart(self, dialect: Dialect) -> Option<Self> {
        match (self, dialect) {
            (Self::Chat | Self::Messages, Dialect::OpenAi) => Some(Self::Chat),
            (Self::Chat | Self::Messages, Dialect::Anthropic) => Some(Self::Messages),
            (own, Dialect::OpenAi) => Some(own),
            (_, Dialect::Anthropic) => None,
        }
    }
}
