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
    /// All endpoints.
    pub const ALL: [Self; 4] = [Self::Chat, Self::Responses, Self::Embeddings, Self::Messages];

    /// The endpoint of a path (without the query), or None for any other path.
    pub fn from_path(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|endpoint| endpoint.path() == path)
    }

    /// Whether a path is one of an LLM API, whatever the spelling that servers take for the same,
    /// and wherever the API is mounted: `/V1/Messages/`, `/v1/completions`,
    /// `/openai/deployments/x/chat/completions`. Only those of [`Endpoint::from_path`] can be read.
    pub fn is_llm_path(path: &str) -> bool {
        if Self::from_path(path).is_some() {
            return true;
        }
        let path = path.trim_end_matches('/');
        let ends_with = |end: &str| {
            let start = path.len().checked_sub(end.len()).and_then(|at| path.get(at..));
            start.is_some_and(|tail| tail.eq_ignore_ascii_case(end))
        };
        ends_with("/completions") || Self::ALL.iter().any(|endpoint| ends_with(endpoint.path()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_an_llm_api_is_known_in_every_spelling() {
        for endpoint in Endpoint::ALL {
            assert_eq!(Endpoint::from_path(endpoint.path()), Some(endpoint));
        }
        for path in [
            "/v1/chat/completions",
            "/v1/messages",
            "/V1/Messages",
            "/v1/chat/completions/",
            "/v1/completions",
            "/openai/v1/responses",
            "/openai/deployments/x/chat/completions",
            "/api/v1/embeddings//",
        ] {
            assert!(Endpoint::is_llm_path(path), "{path}");
        }
        for path in ["/", "", "/v1/models", "/inbox/messages", "/v1/messages/1", "/autocompletions"]
        {
            assert!(!Endpoint::is_llm_path(path), "{path}");
        }
    }
}
