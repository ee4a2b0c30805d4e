//! The parts of a request that carry the prompt: messages, contents and inputs.
//!
//! Several of them may be JSON values of different types. `serde(untagged)` would read those as
//! well, but it first buffers the whole value, and so refuses requests for errors in members that
//! are otherwise skipped.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor};

/// A message, or another item of a conversation.
#[derive(Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    content: Option<Content<'a>>,
}

impl<'a> Message<'a> {
    pub(super) fn into_texts(self) -> Vec<Cow<'a, str>> {
        self.content.unwrap_or_default().0
    }
}

/// The texts of a message: a string, or a list of parts of which some have a text.
#[derive(Default)]
pub(super) struct Content<'a>(pub(super) Vec<Cow<'a, str>>);

#[derive(Deserialize)]
struct Part<'a> {
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
#[derive(Default)]
pub(super) struct Input<'a> {
    pub(super) items: usize,
    pub(super) texts: Vec<Cow<'a, str>>,
    pub(super) token_ids: u64,
}

/// An element of an input list.
enum InputItem<'a> {
    Texts(Vec<Cow<'a, str>>),
    TokenIds(u64),
    TokenId,
}

/// A type that is read from a string, a list or, optionally, an unsigned number or an object.
trait FromJson<'de>: Sized {
    /// The accepted values, for error messages.
    const EXPECTED: &'static str;

    fn from_text(text: Cow<'de, str>) -> Self;

    fn from_list<A: SeqAccess<'de>>(list: A) -> Result<Self, A::Error>;

    fn from_number<E: Error>(number: u64) -> Result<Self, E> {
        Err(E::invalid_type(Unexpected::Unsigned(number), &Self::EXPECTED))
    }

    fn from_object<A: MapAccess<'de>>(_: A) -> Result<Self, A::Error> {
        Err(A::Error::invalid_type(Unexpected::Map, &Self::EXPECTED))
    }
}

impl<'de> FromJson<'de> for Content<'de> {
    const EXPECTED: &'static str = "a text or a list of parts";

    fn from_text(text: Cow<'de, str>) -> Self {
        Self(vec![text])
    }

    fn from_list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        let mut texts = Vec::new();
        while let Some(part) = list.next_element::<Part<'de>>()? {
            texts.extend(part.text.map(|text| text.0));
            texts.extend(part.content.unwrap_or_default().0);
        }
        Ok(Self(texts))
    }
}

impl<'de> FromJson<'de> for Input<'de> {
    const EXPECTED: &'static str = "a text, or a list of texts, messages or tokens";

    fn from_text(text: Cow<'de, str>) -> Self {
        Self { items: 1, texts: vec![text], token_ids: 0 }
    }

    fn from_list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        let mut input = Self::default();
        while let Some(item) = list.next_element::<InputItem<'de>>()? {
            input.items += 1;
            match item {
                InputItem::Texts(texts) => input.texts.extend(texts),
                InputItem::TokenIds(count) => input.token_ids += count,
                InputItem::TokenId => input.token_ids += 1,
            }
        }
        // A plain list of token ids is one input.
        if input.texts.is_empty() && input.token_ids == input.items as u64 && input.items > 0 {
            input.items = 1;
        }
        Ok(input)
    }
}

impl<'de> FromJson<'de> for InputItem<'de> {
    const EXPECTED: &'static str = "a text, a message, or tokens";

    fn from_text(text: Cow<'de, str>) -> Self {
        Self::Texts(vec![text])
    }

    fn from_list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        let mut count = 0;
        while list.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(Self::TokenIds(count))
    }

    fn from_number<E: Error>(_: u64) -> Result<Self, E> {
        Ok(Self::TokenId)
    }

    fn from_object<A: MapAccess<'de>>(object: A) -> Result<Self, A::Error> {
        let message = Message::deserialize(MapAccessDeserializer::new(object))?;
        Ok(Self::Texts(message.into_texts()))
    }
}

/// Reads a [`FromJson`] type.
struct JsonVisitor<T>(PhantomData<T>);

impl<'de, T: FromJson<'de>> Visitor<'de> for JsonVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<T, E> {
        Ok(T::from_text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<T, E> {
        Ok(T::from_text(Cow::Owned(text.to_owned())))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        T::from_number(number)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
        T::from_list(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<T, A::Error> {
        T::from_object(object)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor(PhantomData::<Content<'de>>))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Input<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor(PhantomData::<Input<'de>>))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for InputItem<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor(PhantomData::<InputItem<'de>>))
    }
}
