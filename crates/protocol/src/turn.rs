//! What is to be said in one turn, independent of any wire format.

use std::sync::Arc;

/// Who speaks in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The person, or whatever stands for them.
    User,
    /// The model.
    Assistant,
}

/// A text in pieces, so that what many prompts share is stored once.
///
/// The text is the concatenation of its pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text(Vec<Arc<str>>);

impl Text {
    /// The empty text.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Appends a piece; an empty one is left out.
    pub fn push(&mut self, piece: impl Into<Arc<str>>) {
        let piece = piece.into();
        if !piece.is_empty() {
            self.0.push(piece);
        }
    }

    /// The pieces in order.
    pub fn pieces(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(AsRef::as_ref)
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.0.iter().map(|piece| piece.len()).sum()
    }

    /// Is nothing in it?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        let mut whole = Self::new();
        whole.push(text);
        whole
    }
}

impl std::fmt::Display for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.pieces().try_for_each(|piece| f.write_str(piece))
    }
}

/// One message of a dialogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What they say.
    pub text: Text,
}

/// A plain HTTP request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpAsk {
    /// `GET`, `POST`, ...
    pub method: String,
    /// Path and query; empty means the target's own path.
    pub path: String,
    /// Headers of this request alone.
    pub headers: Vec<(String, String)>,
    /// Body; empty for none.
    pub body: Vec<u8>,
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub enum Ask<'a> {
    /// A dialogue that the model shall continue.
    Chat {
        /// The system prompt.
        system: Option<&'a Text>,
        /// The dialogue so far, the newest message last.
        messages: &'a [Message],
    },
    /// Texts to embed.
    Embed {
        /// One vector is asked for each.
        inputs: &'a [Text],
    },
    /// Any HTTP request.
    Http(&'a HttpAsk),
}

/// One request of a conversation.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a> {
    /// What is asked.
    pub ask: Ask<'a>,
    /// Shall the answer be streamed?
    pub stream: bool,
    /// The most output tokens the model may produce.
    pub max_tokens: Option<u32>,
}
