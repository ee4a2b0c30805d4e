//! The wire formats, and the bytes that each of them answers with.
//!
//! Nothing here is shared with the load generator's own encoders and decoders: a misreading of a
//! format would have to be made twice to go unnoticed.

use serde::{Deserialize, Serialize};

use crate::answer::{Answer, Kind};

mod chat;
mod embeddings;
mod messages;
mod put;
mod refusal;
mod responses;

pub(crate) use refusal::refusal;

/// A wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// `POST /v1/chat/completions`.
    OpenaiChat,
    /// `POST /v1/responses`.
    OpenaiResponses,
    /// `POST /v1/embeddings`.
    OpenaiEmbeddings,
    /// `POST /v1/messages`.
    AnthropicMessages,
}

/// One content event: some words of one section of the answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'a> {
    pub(crate) kind: Kind,
    /// The first of its section?
    pub(crate) first: bool,
    /// The last of its section?
    pub(crate) last: bool,
    /// Lower-case letters and blanks: safe in any JSON string.
    pub(crate) text: &'a [u8],
}

/// How a dialect streams an answer. The calls come in this order: `open`, then for each section
/// `start`, its pieces, `stop`, and at last `close`; or `error` at any point after `open`.
pub(crate) trait Voice {
    /// The events before all content.
    fn open(&mut self, answer: &Answer, out: &mut Vec<u8>);
    /// The events that begin a section.
    fn start(&mut self, answer: &Answer, kind: Kind, out: &mut Vec<u8>);
    /// One content event.
    fn piece(&mut self, answer: &Answer, piece: Piece<'_>, out: &mut Vec<u8>);
    /// The events that end a section.
    fn stop(&mut self, answer: &Answer, kind: Kind, out: &mut Vec<u8>);
    /// The events after all content.
    fn close(&mut self, answer: &Answer, out: &mut Vec<u8>);
    /// An error event.
    fn error(&mut self, out: &mut Vec<u8>);
}

impl Dialect {
    /// The wire format served at a path.
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        match path {
            "/v1/chat/completions" => Some(Self::OpenaiChat),
            "/v1/responses" => Some(Self::OpenaiResponses),
            "/v1/embeddings" => Some(Self::OpenaiEmbeddings),
            "/v1/messages" => Some(Self::AnthropicMessages),
            _ => None,
        }
    }

    /// The voice of a stream; embeddings are never streamed.
    pub(crate) fn voice(self) -> Option<Box<dyn Voice>> {
        match self {
            Self::OpenaiChat => Some(Box::<chat::Chat>::default()),
            Self::OpenaiResponses => Some(Box::<responses::Responses>::default()),
            Self::AnthropicMessages => Some(Box::<messages::Messages>::default()),
            Self::OpenaiEmbeddings => None,
        }
    }

    /// A voice that says nothing, for answers of which only the course is wanted.
    pub(crate) fn silence() -> Box<dyn Voice> {
        Box::new(Silence)
    }

    /// The answer in one piece.
    pub(crate) fn whole(self, answer: &Answer) -> Vec<u8> {
        match self {
            Self::OpenaiChat => chat::whole(answer),
            Self::OpenaiResponses => responses::whole(answer),
            Self::AnthropicMessages => messages::whole(answer),
            Self::OpenaiEmbeddings => embeddings::whole(answer),
        }
    }
}

struct Silence;

impl Voice for Silence {
    fn open(&mut self, _: &Answer, _: &mut Vec<u8>) {}
    fn start(&mut self, _: &Answer, _: Kind, _: &mut Vec<u8>) {}
    fn piece(&mut self, _: &Answer, _: Piece<'_>, _: &mut Vec<u8>) {}
    fn stop(&mut self, _: &Answer, _: Kind, _: &mut Vec<u8>) {}
    fn close(&mut self, _: &Answer, _: &mut Vec<u8>) {}
    fn error(&mut self, _: &mut Vec<u8>) {}
}

#[cfg(test)]
mod tests;
