//! A JSON reader that parses only the requested members, in one pass.
//!
//! Every response passes through here, so nothing is built that is not needed: strings are borrowed
//! and other members are skipped. Skipped text is validated too: text that is not JSON (RFC 8259)
//! is an error, wherever it is broken. Of members with the same name the last one counts.

use std::borrow::Cow;
use std::ops::Deref;

use crate::json_escape::unescaped_len;

/// Deepest nesting of objects and arrays.
const MAX_DEPTH: u8 = 128;

/// A syntax error: what was expected, and at which byte something else was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected} at byte {at}")]
pub(super) struct JsonError {
    expected: &'static str,
    at: usize,
}

type Result<T> = std::result::Result<T, JsonError>;

/// A type that can be read from JSON.
pub(super) trait FromJson<'a>: Sized {
    fn read(json: &mut Reader<'a>) -> Result<Self>;
}

/// Reads all of `text` as one value.
///
/// # Errors
/// The text is not JSON, or its shape is not that of `T`.
pub(super) fn from_str<'a, T: FromJson<'a>>(text: &'a str) -> Result<T> {
    let mut json = Reader { text, at: 0, depth: 0 };
    let value = T::read(&mut json)?;
    match json.peek() {
        None => Ok(value),
        Some(_) => json.expected("the end"),
    }
}

/// Implements [`FromJson`] for a struct. Each field is read from the member of an object with the
/// same name, or the one given after `=`. A missing member leaves the field's default.
macro_rules! from_object {
    ($name:ident $(<$life:lifetime>)? { $($field:ident $(= $member:literal)?),+ $(,)? }) => {
        impl<'a> $crate::decode::json_reader::FromJson<'a> for $name $(<$life>)? {
            fn read(
                json: &mut $crate::decode::json_reader::Reader<'a>,
            ) -> ::core::result::Result<Self, $crate::decode::json_reader::JsonError> {
                let mut read = Self::default();
                json.members(|member, json| {
                    $(if member == from_object!(@name $field $($member)?).as_bytes() {
                        read.$field = $crate::decode::json_reader::FromJson::read(json)?;
                        return Ok(());
                    })+
                    json.skip()
                })?;
                Ok(read)
            }
        }
    };
    (@name $field:ident $member:literal) => { $member };
    (@name $field:ident) => { stringify!($field) };
}
pub(super) use from_object;

/// A position in a JSON text.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: u8,
}

/// Reading values.
impl<'a> Reader<'a> {
    /// Reads an object. `each` gets the name of a member and must read or skip its value.
    pub(super) fn members(
        &mut self,
        mut each: impl FnMut(&[u8], &mut Self) -> Result<()>,
    ) -> Result<()> {
        self.list(b'{', b'}', "an object", |json| {
            let name = json.quoted()?;
            json.expect_byte(b':', "`:`")?;
            if name.escaped {
                return each(json.unescape(name)?.as_bytes(), json);
            }
            each(&json.bytes()[name.start..name.end], json)
        })
    }

    /// Reads an array. `each` must read or skip the next element.
    pub(super) fn elements(&mut self, each: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        self.list(b'[', b']', "an array", each)
    }

    /// Skips a value of any kind.
    pub(super) fn skip(&mut self) -> Result<()> {
        match self.peek() {
            Some(b'"') => self.quoted().map(drop),
            Some(b'-' | b'0'..=b'9') => self.number().map(drop),
            Some(b'{') => self.members(|_, json| json.skip()),
            Some(b'[') => self.elements(Self::skip),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            _ => self.word("null"),
        }
    }

    /// Skips a `null`, if it is next.
    fn skip_null(&mut self) -> Result<bool> {
        let is_null = self.peek() == Some(b'n');
        if is_null {
            self.word("null")?;
        }
        Ok(is_null)
    }

    /// Reads a string. It is borrowed unless it has escapes.
    fn string(&mut self) -> Result<Cow<'a, str>> {
        let quoted = self.quoted()?;
        if quoted.escaped {
            return self.unescape(quoted).map(Cow::Owned);
        }
        Ok(Cow::Borrowed(&self.text[quoted.start..quoted.end]))
    }

    #[cold]
    fn unescape(&self, Quoted { start, end, .. }: Quoted) -> Result<String> {
        serde_json::from_str(&self.text[start - 1..=end])
            .map_err(|_| JsonError { expected: "a character by its escape", at: start })
    }
}

/// The position of a string without its quotes.
#[derive(Clone, Copy, Debug)]
struct Quoted {
    start: usize,
    end: usize,
    escaped: bool,
}

/// Reading tokens.
impl<'a> Reader<'a> {
    fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    /// The next byte that is not white space.
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        match self.bytes().get(self.at) {
            Some(&byte) if byte > b' ' => Some(byte),
            _ => self.peek_past_space(),
        }
    }

    fn peek_past_space(&mut self) -> Option<u8> {
        let rest = &self.bytes()[self.at..];
        let space = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t'));
        self.at += space.count();
        self.bytes().get(self.at).copied()
    }

    fn expected<T>(&self, expected: &'static str) -> Result<T> {
        Err(JsonError { expected, at: self.at })
    }

    /// Skips `byte` if it is next.
    #[inline]
    fn skip_byte(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    #[inline]
    fn expect_byte(&mut self, byte: u8, expected: &'static str) -> Result<()> {
        if self.skip_byte(byte) { Ok(()) } else { self.expected(expected) }
    }

    fn list(
        &mut self,
        open: u8,
        close: u8,
        expected: &'static str,
        mut each: impl FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        self.expect_byte(open, expected)?;
        if self.depth == MAX_DEPTH {
            return self.expected("less nesting");
        }
        self.depth += 1;
        let mut more = !self.skip_byte(close);
        while more {
            each(self)?;
            more = self.skip_byte(b',');
            if !more {
                self.expect_byte(close, "`,` or the end of the list")?;
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn word(&mut self, word: &'static str) -> Result<()> {
        if !self.bytes()[self.at..].starts_with(word.as_bytes()) {
            return self.expected("a value");
        }
        self.at += word.len();
        Ok(())
    }

    /// Skips a string and checks the syntax of its escapes, but not their values.
    #[inline]
    fn quoted(&mut self) -> Result<Quoted> {
        self.expect_byte(b'"', "a string")?;
        let start = self.at;
        let end = start + unescaped_len(&self.bytes()[start..]);
        self.at = end + 1;
        match self.bytes().get(end) {
            Some(b'"') => Ok(Quoted { start, end, escaped: false }),
            _ => self.quoted_slow(start, end),
        }
    }

    /// Continues at the first byte that is an escape or ends the string wrongly.
    #[cold]
    fn quoted_slow(&mut self, start: usize, special: usize) -> Result<Quoted> {
        self.at = special;
        while self.bytes().get(self.at) != Some(&b'"') {
            self.escape()?;
            self.at += unescaped_len(&self.bytes()[self.at..]);
        }
        self.at += 1;
        Ok(Quoted { start, end: self.at - 1, escaped: true })
    }

    fn escape(&mut self) -> Result<()> {
        let length = match self.bytes()[self.at..] {
            [b'\\', b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => 2,
            [b'\\', b'u', a, b, c, d, ..] if [a, b, c, d].iter().all(u8::is_ascii_hexdigit) => 6,
            [b'\\', ..] => return self.expected("an escape"),
            _ => return self.expected("the end of the string"),
        };
        self.at += length;
        Ok(())
    }

    /// Skips a number and returns its text.
    fn number(&mut self) -> Result<&'a str> {
        self.peek();
        let start = self.at;
        self.at += usize::from(self.bytes().get(start) == Some(&b'-'));
        if self.bytes().get(self.at) == Some(&b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.bytes().get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let [b'e' | b'E', rest @ ..] = &self.bytes()[self.at..] {
            self.at += 1 + usize::from(matches!(rest, [b'+' | b'-', ..]));
            self.digits()?;
        }
        Ok(&self.text[start..self.at])
    }

    /// Skips one or more digits.
    fn digits(&mut self) -> Result<()> {
        let digits =
            self.bytes()[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += digits;
        if digits == 0 { self.expected("a digit") } else { Ok(()) }
    }
}

/// A string, borrowed from the input unless it has escapes. A `null` is read as the empty string:
/// both mean "no content" in every dialect.
#[derive(Debug, Default)]
pub(super) struct Str<'a>(Cow<'a, str>);

impl<'a> FromJson<'a> for Str<'a> {
    fn read(json: &mut Reader<'a>) -> Result<Self> {
        if json.skip_null()? { Ok(Self::default()) } else { json.string().map(Self) }
    }
}

impl Str<'_> {
    /// This string, or the other one if this is empty.
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

/// A value of any kind, as JSON text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raw<'a>(pub(super) &'a str);

impl<'a> FromJson<'a> for Raw<'a> {
    fn read(json: &mut Reader<'a>) -> Result<Self> {
        json.peek();
        let start = json.at;
        json.skip()?;
        Ok(Self(&json.text[start..json.at]))
    }
}

/// A `null` is `None`.
impl<'a, T: FromJson<'a>> FromJson<'a> for Option<T> {
    fn read(json: &mut Reader<'a>) -> Result<Self> {
        if json.skip_null()? { Ok(None) } else { T::read(json).map(Some) }
    }
}

impl<'a, T: FromJson<'a>> FromJson<'a> for Vec<T> {
    fn read(json: &mut Reader<'a>) -> Result<Self> {
        let mut elements = Self::new();
        json.elements(|json| {
            elements.push(T::read(json)?);
            Ok(())
        })?;
        Ok(elements)
    }
}

impl FromJson<'_> for u64 {
    fn read(json: &mut Reader<'_>) -> Result<Self> {
        let at = json.at;
        json.number()?.parse().map_err(|_| JsonError { expected: "a count", at })
    }
}

/// The first element of an array. The others are skipped.
#[derive(Debug)]
pub(super) struct FirstElement<T>(pub(super) Option<T>);

impl<'a, T: FromJson<'a>> FromJson<'a> for FirstElement<T> {
    fn read(json: &mut Reader<'a>) -> Result<Self> {
        let mut first = None;
        json.elements(|json| {
            if first.is_some() {
                return json.skip();
            }
            first = Some(T::read(json)?);
            Ok(())
        })?;
        Ok(Self(first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn read(json: &str) -> Result<Str<'_>> {
        from_str(json)
    }

    #[test]
    fn a_string_is_borrowed_unless_it_has_escapes() {
        assert!(matches!(read(r#" "plain" "#).unwrap().0, Cow::Borrowed("plain")));
        assert_eq!(&*read(r#""a\nb""#).unwrap(), "a\nb");
        assert_eq!(&*read(" \"\\ud83d\\udea2 é\\\"\"").unwrap(), "🚢 é\"");
        assert_eq!(&*read("null").unwrap(), "");
        assert!(read(r#""\ud83d""#).is_err(), "half a character");
    }

    #[test]
    fn only_the_first_element_must_have_the_right_shape() {
        let read = |json| from_str::<FirstElement<u64>>(json).map(|first| first.0);
        assert_eq!(read("[]").unwrap(), None);
        assert_eq!(read(r#"[7,"x",null]"#).unwrap(), Some(7));
        assert!(read(r#"["x"]"#).is_err());
        assert!(read("7").is_err());
    }

    #[test]
    fn counts_are_whole_numbers_from_zero_on() {
        let read = |json| from_str::<Option<u64>>(json);
        assert_eq!(read("null").unwrap(), None);
        assert_eq!(read(" 18446744073709551615 ").unwrap(), Some(u64::MAX));
        for json in ["-1", "1.0", "1e3", "18446744073709551616", "\"1\"", "01"] {
            assert!(read(json).is_err(), "{json}");
        }
    }

    #[derive(Debug, Default)]
    struct Thing<'a> {
        kind: Str<'a>,
        size: Option<u64>,
        rest: Option<Raw<'a>>,
    }
    from_object!(Thing<'a> { kind = "type", size, rest });

    #[test]
    fn members_are_found_by_name_in_any_order_and_the_rest_is_skipped() {
        let text =
            r#"{"x":[1,{"type":"no"}],"size":3,"t\u0079pe":"yes","rest": {"a":[ 1 ]} ,"y":null}"#;
        let thing: Thing<'_> = from_str(text).unwrap();
        assert_eq!((&*thing.kind, thing.size), ("yes", Some(3)));
        assert_eq!(thing.rest.unwrap().0, r#"{"a":[ 1 ]}"#);
        let nothing: Thing<'_> = from_str("{ }").unwrap();
        assert!(nothing.kind.is_empty() && nothing.size.is_none() && nothing.rest.is_none());
        assert!(from_str::<Thing<'_>>("[]").is_err());
    }

    #[test]
    fn an_error_names_the_expected_token_and_its_position() {
        let error = from_str::<Thing<'_>>(r#"{"size": "3"}"#).unwrap_err();
        assert_eq!(error.to_string(), "expected a digit at byte 9");
    }

    #[test]
    fn nesting_is_limited() {
        let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(from_str::<Raw<'_>>(&nested(usize::from(MAX_DEPTH))).is_ok());
        assert!(from_str::<Raw<'_>>(&nested(usize::from(MAX_DEPTH) + 1)).is_err());
        assert!(from_str::<Raw<'_>>(&"[".repeat(1_000_000)).is_err());
    }

    /// Pieces of JSON, most of them misplaced.
    fn crumbs() -> impl Strategy<Value = String> {
        let crumb = prop::sample::select(vec![
            "{", "}", "[", "]", ":", ",", "\"", "\\", "\"a\"", "\"b\":", "null", "true", "false",
            "nul", "0", "-", "1", "12", ".5", "e3", "E-", "01", " ", "\n", "\t", "\\u00e9", "\\x",
            "\u{1}", "é", "\\\"", "\u{7f}",
        ]);
        prop::collection::vec(crumb, 0..9).prop_map(|crumbs| crumbs.concat())
    }

    /// Any JSON value, with white space here and there.
    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        /// The oracle is serde's own skipping, which does not check the values of escapes either.
        #[test]
        fn text_is_accepted_exactly_if_serde_accepts_it(text in crumbs()) {
            let oracle = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
            prop_assert_eq!(from_str::<Raw<'_>>(&text).is_ok(), oracle, "{}", text);
        }

        #[test]
        fn every_value_is_read_and_no_cut_of_it(value in value(), cut in 0usize..400) {
            for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
                let raw: Raw<'_> = from_str(&text).unwrap();
                prop_assert_eq!(raw.0, &text);
                let cut = text.floor_char_boundary(cut);
                let oracle = serde_json::from_str::<serde::de::IgnoredAny>(&text[..cut]).is_ok();
                prop_assert_eq!(from_str::<Raw<'_>>(&text[..cut]).is_ok(), oracle);
            }
        }

        #[test]
        fn strings_are_read_as_serde_reads_them(text in any::<String>()) {
            let json = Value::from(text.as_str()).to_string();
            prop_assert_eq!(&*read(&json).unwrap(), &text);
        }
    }
}
