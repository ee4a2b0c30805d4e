//! Reads members of an upstream's answers that servers write in other types than the dialect says:
//! counts as `null` or `10.0`, texts as `null` or as a list of parts. What cannot be understood
//! counts as absent, because an answer that a caller can use must not fail for it.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{CowStr, RawJson};

/// A count; zero if it is not a number.
pub(super) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    optional_count(deserializer).map(Option::unwrap_or_default)
}

/// A count, if it is a number.
pub(super) fn optional_count<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u64>, D::Error> {
    deserializer.deserialize_any(Count)
}

/// A text; empty if it is not a string.
pub(super) fn text<'de: 'a, 'a, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<CowStr<'a>, D::Error> {
    optional_text(deserializer).map(Option::unwrap_or_default)
}

/// A text, if it is a string.
pub(super) fn optional_text<'de: 'a, 'a, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<CowStr<'a>>, D::Error> {
    deserializer.deserialize_any(Text { parts: false, lifetime: PhantomData })
}

/// The text of a message: a string, or the texts of a list of parts.
pub(super) fn content<'de: 'a, 'a, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<CowStr<'a>>, D::Error> {
    deserializer.deserialize_any(Text { parts: true, lifetime: PhantomData })
}

/// JSON in a string, or the JSON itself.
pub(super) fn json_text<'de: 'a, 'a, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<CowStr<'a>>, D::Error> {
    let raw = RawJson::deserialize(deserializer)?;
    let text = raw.0.get();
    match text.as_bytes().first() {
        Some(b'"') => serde_json::from_str::<String>(text)
            .map(|text| Some(text.into()))
            .map_err(|error| D::Error::custom(error.to_string())),
        Some(b'{' | b'[') => Ok(Some(text.to_owned().into())),
        _ => Ok(None),
    }
}

/// The default of a type, where a member has another one.
pub(super) fn other_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    let raw = RawJson::deserialize(deserializer)?;
    Ok(serde_json::from_str(raw.0.get()).unwrap_or_default())
}

/// The default of a type, where a member is null.
pub(super) fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

struct Count;

impl<'de> Visitor<'de> for Count {
    type Value = Option<u64>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a count")
    }

    fn visit_u64<E: Error>(self, count: u64) -> Result<Self::Value, E> {
        Ok(Some(count))
    }

    fn visit_i64<E: Error>(self, count: i64) -> Result<Self::Value, E> {
        Ok(u64::try_from(count).ok())
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count of tokens that is not negative; what is too large becomes the largest"
    )]
    fn visit_f64<E: Error>(self, count: f64) -> Result<Self::Value, E> {
        Ok((count >= 0.0).then_some(count as u64))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(text.parse().ok())
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Self::Value, A::Error> {
        IgnoredAny.visit_seq(items).map(|_| None)
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Self::Value, A::Error> {
        IgnoredAny.visit_map(members).map(|_| None)
    }
}

struct Text<'a> {
    /// Whether the texts of a list of parts are joined.
    parts: bool,
    lifetime: PhantomData<CowStr<'a>>,
}

/// A part of a content; one without a text, such as one that holds reasoning, adds nothing.
#[derive(Deserialize)]
struct TextPart<'a> {
    #[serde(borrow, default, deserialize_with = "optional_text")]
    text: Option<CowStr<'a>>,
}

impl<'de: 'a, 'a> Visitor<'de> for Text<'a> {
    type Value = Option<CowStr<'a>>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a text")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Some(text.into()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(text.to_owned().into()))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        if !self.parts {
            return IgnoredAny.visit_seq(items).map(|_| None);
        }
        let mut joined: Option<CowStr<'a>> = None;
        while let Some(part) = items.next_element::<RawJson<'de>>()? {
            let Cow::Borrowed(raw) = part.0 else { continue };
            let part = serde_json::from_str::<TextPart<'de>>(raw.get()).ok();
            let Some(text) = part.and_then(|part| part.text) else { continue };
            match &mut joined {
                None => joined = Some(text),
                Some(joined) => joined.0.to_mut().push_str(&text),
            }
        }
        Ok(joined)
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Self::Value, A::Error> {
        IgnoredAny.visit_map(members).map(|_| None)
    }
}
