//! The parts of a request that carry the prompt: messages, contents and inputs. Texts are borrowed
//! from the body if they have no escapes.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;

/// A message, or another item of a conversation.
#[derive(Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    content: Option<Content<'a>>,
}

/// The texts of a message: a string, or a list of parts, some with a text.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a text or a list of parts")]
pub(super) enum Content<'a> {
    Text(#[serde(borrow)] Cow<'a, str>),
    Parts(#[serde(borrow)] Vec<Part<'a>>),
}

#[derive(Deserialize)]
pub(super) struct Part<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    /// The result of a tool has its own content.
    #[serde(borrow)]
    content: Option<Content<'a>>,
}

/// A text, borrowed if the JSON has no escapes in it. (`Option<Cow<str>>` alone would copy it.)
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// The member `input`: a text, or a list of texts, conversation items or token ids.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a text, or a list of texts, messages or tokens")]
pub(super) enum Input<'a> {
    Text(#[serde(borrow)] Cow<'a, str>),
    TokenIds(Vec<u64>),
    Items(#[serde(borrow)] Vec<InputItem<'a>>),
}

/// An element of an input list.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a text, a message, or tokens")]
pub(super) enum InputItem<'a> {
    Text(#[serde(borrow)] Cow<'a, str>),
    TokenId(#[expect(dead_code, reason = "ids are only counted")] u64),
    TokenIds(Vec<IgnoredAny>),
    Message(#[serde(borrow)] Message<'a>),
}

impl<'a> Message<'a> {
    pub(super) fn add_texts(self, texts: &mut Vec<Cow<'a, str>>) {
        if let Some(content) = self.content {
            content.add_texts(texts);
        }
    }
}

impl<'a> Content<'a> {
    pub(super) fn add_texts(self, texts: &mut Vec<Cow<'a, str>>) {
        match self {
            Self::Text(text) => texts.push(text),
            Self::Parts(parts) => parts.into_iter().for_each(|part| part.add_texts(texts)),
        }
    }
}

impl<'a> Part<'a> {
    fn add_texts(self, texts: &mut Vec<Cow<'a, str>>) {
        texts.extend(self.text.map(|text| text.0));
        if let Some(content) = self.content {
            content.add_texts(texts);
        }
    }
}

impl<'a> Input<'a> {
    /// The number of inputs. A plain list of token ids is one input.
    pub(super) fn items(&self) -> usize {
        match self {
            Self::Items(items) => items.len(),
            Self::TokenIds(ids) if ids.is_empty() => 0,
            Self::Text(_) | Self::TokenIds(_) => 1,
        }
    }

    /// Adds the texts; returns the number of token ids.
    pub(super) fn add_texts(self, texts: &mut Vec<Cow<'a, str>>) -> u64 {
        let items = match self {
            Self::Text(text) => vec![InputItem::Text(text)],
            Self::TokenIds(ids) => return ids.len() as u64,
            Self::Items(items) => items,
        };
        let mut token_ids = 0;
        for item in items {
            match item {
                InputItem::Text(text) => texts.push(text),
                InputItem::TokenId(_) => token_ids += 1,
                InputItem::TokenIds(ids) => token_ids += ids.len() as u64,
                InputItem::Message(message) => message.add_texts(texts),
            }
        }
        token_ids
    }
}
