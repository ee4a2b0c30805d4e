//! Wire format types of both dialects, and how to read and write them. Members that have no field
//! here are ignored.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, Error, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::DialectError;

pub(crate) mod anthropic;
mod lenient;
pub(crate) mod openai;

/// The text of a message: a string, or a list of parts.
pub(crate) type ContentText<'a> = Option<CowStr<'a>>;

/// JSON in a string, or the JSON itself.
pub(crate) type JsonText<'a> = Option<CowStr<'a>>;

/// Structures with the members of an upstream's answer, which are read leniently by their types.
macro_rules! lenient_members {
    ($($item:item)*) => { $(
        #[serde_with::apply(
            u64 => #[serde(default, deserialize_with = "lenient::count")],
            Option<u64> => #[serde(default, deserialize_with = "lenient::optional_count")],
            ContentText<'a> => #[serde(borrow, default, deserialize_with = "lenient::content")],
            JsonText<'a> => #[serde(borrow, default, deserialize_with = "lenient::json_text")],
            CowStr<'a> => #[serde(borrow, default, deserialize_with = "lenient::other_is_default")],
            Option<CowStr<'a>> =>
                #[serde(borrow, default, deserialize_with = "lenient::other_is_default")],
            Option<Usage> => #[serde(default, deserialize_with = "lenient::other_is_default")],
            Option<PromptDetails> =>
                #[serde(default, deserialize_with = "lenient::other_is_default")],
            Vec => #[serde(default, deserialize_with = "lenient::null_is_default")],
            Usage => #[serde(default, deserialize_with = "lenient::null_is_default")],
            Delta<'a> => #[serde(default, deserialize_with = "lenient::null_is_default")],
            FunctionCallDelta<'a> =>
                #[serde(default, deserialize_with = "lenient::null_is_default")],
        )]
        $item
    )* };
}
use lenient_members;

/// A string, borrowed if it has no escapes. Unlike a bare `Cow`, it also borrows inside an
/// `Option`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct CowStr<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

impl Deref for CowStr<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'a> From<&'a str> for CowStr<'a> {
    fn from(text: &'a str) -> Self {
        Self(Cow::Borrowed(text))
    }
}

impl From<String> for CowStr<'_> {
    fn from(text: String) -> Self {
        Self(Cow::Owned(text))
    }
}

/// A JSON value that is passed on without parsing it.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct RawJson<'a>(pub(crate) Cow<'a, RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for RawJson<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&'de RawValue>::deserialize(deserializer).map(|raw| Self(Cow::Borrowed(raw)))
    }
}

impl RawJson<'_> {
    /// Parses text that must be one JSON object.
    pub(crate) fn object(text: &str) -> Result<RawJson<'static>, String> {
        let raw: Box<RawValue> = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if raw.get().starts_with('{') {
            Ok(RawJson(Cow::Owned(raw)))
        } else {
            Err("it is not a JSON object".to_owned())
        }
    }
}

/// Message content: a string or a list of parts.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Content<'a, P> {
    Text(CowStr<'a>),
    Parts(Vec<P>),
}

impl<'a, P> Content<'a, P> {
    /// The content as a list of parts.
    pub(crate) fn into_parts(self, part: impl FnOnce(CowStr<'a>) -> P) -> Vec<P> {
        match self {
            Self::Text(text) => vec![part(text)],
            Self::Parts(parts) => parts,
        }
    }
}

impl<'de: 'a, 'a, P: Deserialize<'de>> Deserialize<'de> for Content<'a, P> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrParts(PhantomData))
    }
}

struct TextOrParts<'a, P>(PhantomData<Content<'a, P>>);

impl<'de: 'a, 'a, P: Deserialize<'de>> Visitor<'de> for TextOrParts<'a, P> {
    type Value = Content<'a, P>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string or an array")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Content::Text(text.into()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Content::Text(text.to_owned().into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, parts: A) -> Result<Self::Value, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(parts)).map(Content::Parts)
    }
}

/// Reads a struct from a JSON object only. Derived code also accepts an array of the fields'
/// values, and the policy would then see a different request than the upstream.
pub(crate) fn object<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T, serde_json::Error> {
    if json.trim_ascii_start().starts_with(b"{") {
        return serde_json::from_slice(json);
    }
    Err(serde_json::Error::invalid_type(Unexpected::Other("text"), &"an object"))
}

/// Parses a request body. On an error it is parsed again, to find the path of the field.
pub(crate) fn parse_request<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, DialectError> {
    let text = utf8(body)?;
    crate::depth::check(body)?;
    object(body).map_err(|error| {
        if !error.is_data() {
            return DialectError::malformed(error);
        }
        let mut again = serde_json::Deserializer::from_str(text);
        match serde_path_to_error::deserialize::<_, T>(&mut again) {
            Err(named) => DialectError::invalid(named.path(), named.inner()),
            Ok(_) => DialectError::malformed(error),
        }
    })
}

pub(crate) fn utf8(body: &[u8]) -> Result<&str, DialectError> {
    simdutf8::compat::from_utf8(body).map_err(|error| {
        let at = error.valid_up_to();
        DialectError::Request(format!(
            "the body is not valid UTF-8 at byte {at}; send JSON in UTF-8"
        ))
    })
}

/// Parses a response or an event of an upstream.
pub(crate) fn parse_response<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, DialectError> {
    object(body).map_err(|error| unreadable(&error))
}

/// The error of a response, without quoted values, which may be personal data.
fn unreadable(error: &serde_json::Error) -> DialectError {
    let (mut text, line, column) = (error.to_string(), error.line(), error.column());
    if text.contains('"') {
        text = format!("a member has an unexpected value at line {line} column {column}");
    }
    DialectError::InvalidResponse(text)
}

/// An object whose first member is its type, as the providers write it.
#[derive(Serialize)]
pub(crate) struct Typed<'a, T> {
    #[serde(rename = "type")]
    pub(crate) kind: &'a str,
    #[serde(flatten)]
    pub(crate) members: T,
}

/// Appends a value as JSON. Writing these types to memory cannot fail; if it did, a partial value
/// must not stay.
pub(crate) fn write_json<T: Serialize>(out: &mut Vec<u8>, value: &T) {
    let start = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(start);
    }
}
