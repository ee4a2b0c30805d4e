//! A started gateway.

/// How requests reach a started gateway.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    /// Host and port.
    pub(crate) address: String,
    /// The path of chats.
    pub(crate) path: String,
    /// `NAME: VALUE`, sent with every request.
    pub(crate) headers: Vec<String>,
    /// The model to ask for.
    pub(crate) model: String,
    /// The dialects that it offers: `openai`, `anthropic`.
    pub(crate) dialects: Vec<String>,
}
