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
pub struct Text {
    /// Pieces that are shared, each with what stands before it.
    shared: Vec<(String, Arc<str>)>,
    /// What stands after them.
    end: String,
}

impl Text {
    /// The empty text.
    pub const fn new() -> Self {
        Self { shared: Vec::new(), end: String::new() }
    }

    /// Appends a piece that other texts share.
    pub fn share(&mut self, piece: Arc<str>) {
        self.shared.push((std::mem::take(&mut self.end), piece));
    }

    /// The end of the text, to write more of its own onto it.
    pub const fn end(&mut self) -> &mut String {
        &mut self.end
    }

    /// The pieces in order, none of them empty.
    pub fn pieces(&self) -> impl Iterator<Item = &str> {
        let shared = self.shared.iter().flat_map(|(own, shared)| [own.as_str(), shared]);
        shared.chain([self.end.as_str()]).filter(|piece| !piece.is_empty())
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.pieces().map(str::len).sum()
    }

    /// Is nothing in it?
    pub fn is_empty(&self) -> bool {
        self.pieces().next().is_none()
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        let mut whole = Self::new();
        whole.end().push_str(text);
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
pub struct HttpContent {
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
pub enum RequestContent<'a> {
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
    Http(&'a HttpContent),
}

/// One request of a conversation.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a> {
    /// What is asked.
    pub ask: RequestContent<'a>,
    /// Shall the answer be streamed?
    pub stream: bool,
    /// The most output tokens the model may produce.
    pub max_tokens: Option<u32>,
}
