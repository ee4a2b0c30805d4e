//! What the dialects' JSON is read into: borrowed where possible, and only the members needed.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A string, borrowed from the input unless it has escapes. A `null` is read as the empty string: to
/// every dialect the two say the same, nothing.
#[derive(Debug, Default)]
pub(super) struct Str<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Str<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // A type of its own, because serde never borrows an `Option<Cow<str>>`.
        #[derive(Deserialize)]
        #[serde(transparent)]
        struct Present<'b>(#[serde(borrow)] Cow<'b, str>);

        let string = Option::<Present<'a>>::deserialize(deserializer)?;
        Ok(Self(string.map(|present| present.0).unwrap_or_default()))
    }
}

impl Str<'_> {
    /// This string, or the other where this one is empty.
    pub(super) fn or(self, other: Self) -> Self {
        if self.is_empty() { other } else { self }
    }
}

impl<'a> From<&'a str> for Str<'a> {
    fn from(text: &'a str) -> Self {
        Self(Cow::Borrowed(text))
    }
}

impl Deref for Str<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// The first element of an array, read without storing the others.
#[derive(Debug)]
pub(super) struct First<T>(pub(super) Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for First<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(FirstVisitor(PhantomData))
    }
}

struct FirstVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for FirstVisitor<T> {
    type Value = First<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<First<T>, A::Error> {
        let first = seq.next_element()?;
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(First(first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_is_borrowed_unless_it_has_escapes() {
        let read = |json| serde_json::from_str::<Str<'_>>(json).unwrap().0;
        assert!(matches!(read(r#""plain""#), Cow::Borrowed("plain")));
        assert_eq!(read(r#""a\nb""#), "a\nb");
        assert_eq!(read("null"), "");
    }

    #[test]
    fn only_the_first_element_must_have_the_right_shape() {
        let read = |json| serde_json::from_str::<First<u32>>(json).map(|first| first.0);
        assert_eq!(read("[]").unwrap(), None);
        assert_eq!(read(r#"[7,"x",null]"#).unwrap(), Some(7));
        assert!(read(r#"["x"]"#).is_err());
        assert!(read("7").is_err());
    }
}
