//! The two API dialects and their endpoints.

/// A provider's API format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(serde::Serialize, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// OpenAI
    #[default]
    OpenAi,
    /// Anthropic
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

/// Whether a list in `llm_paths.txt` has a word.
fn is_listed(list: &str, word: &str) -> bool {
    let mut lists = include_str!("llm_paths.txt").lines().filter_map(|line| line.split_once(": "));
    lists.any(|(name, words)| name == list && words.split(' ').any(|known| known == word))
}

/// Whether a path segment is a version: `v1`, `v1beta`.
fn is_version(part: &str) -> bool {
    part.strip_prefix('v')
        .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}

impl Endpoint {
    /// All endpoints.
    pub const ALL: [Self; 4] = [Self::Chat, Self::Responses, Self::Embeddings, Self::Messages];

    /// The endpoint of a path (without the query), or None for any other path.
    pub fn from_path(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|endpoint| endpoint.path() == path)
    }

    /// Whether a path looks like an LLM API of any provider, in any spelling and mount point. Only
    /// the paths of [`Endpoint::from_path`] can be read.
    pub fn is_llm_path(path: &str) -> bool {
        let path = path.to_ascii_lowercase();
        let mut before = "";
        path.split('/').filter(|part| !part.is_empty()).any(|part| {
            let action = part.rsplit_once(':').map_or(part, |(_, action)| action);
            let found = is_listed("operations", action)
                || (is_version(before) && is_listed("resources", part))
                || part == "openai";
            before = part;
            found
        })
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

    /// The equivalent endpoint of another dialect, if it has one.
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
            "/V1/Messages",
            "/v1/chat/completions/",
            "/v1/completions",
            "/openai/v1/responses",
            "/openai/deployments/x/chat/completions",
            "/openai/deployments/x/images/generations",
            "/api/v1/embeddings//",
            "/v1/responses/compact",
            "/v1/messages/batches",
            "/v1/messages/count_tokens",
            "/v1/images/generations",
            "/v1/audio/transcriptions",
            "/v1/audio/speech",
            "/v1/batches",
            "/v1/files",
            "/v1/moderations",
            "/v1/threads/t/messages",
            "/v1beta/models/gemini-2.5-pro:generateContent",
            "/v1beta/models/gemini-2.5-pro:streamGenerateContent",
            "/v1/projects/p/locations/l/publishers/anthropic/models/m:rawPredict",
            "/v1beta/models/m:batchEmbedContents",
            "/model/anthropic.claude/invoke",
            "/model/anthropic.claude/converse-stream",
            "/endpoints/e/invocations",
            "/api/chat",
            "/api/generate",
            "/api/embed",
            "/v2/chat",
            "/v1/rerank",
            "/v1/models/owner/name/predictions",
            "/generate_stream",
            "/completion",
            "/v1/fim/completions",
        ] {
            assert!(Endpoint::is_llm_path(path), "{path}");
        }
        for path in [
            "/",
            "",
            "/v1/models",
            "/v1/models/gpt-4.1",
            "/inbox/messages",
            "/images/logo.png",
            "/files/a",
            "/audio/a.mp3",
            "/api/tags",
            "/autocompletions",
            "/chats",
            "/vault/messages",
            "/v1/users/1/orders",
        ] {
            assert!(!Endpoint::is_llm_path(path), "{path}");
        }
    }
}
