//! A JSON reader that parses only the requested members, in one pass.
//!
//! Every response passes through here, so unneeded values are never built: strings are borrowed and
//! other members are skipped. Skipped text is validated too: a syntax error (RFC 8259) anywhere is
//! an error. If a member is repeated, the last one counts.

use std::borrow::Cow;
use std::ops::Deref;

use crate::json_escape::unescaped_len;

/// Maximum nesting of objects and arrays.
const MAX_DEPTH: u8 = 128;

/// A syntax error: the expected token, and its byte offset.
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

    /// Whether a value that begins with this byte has the right type. A member of another type
    /// counts as absent, because servers disagree about unimportant members.
    fn fits(_first: u8) -> bool {
        true
    }
}

/// Parses all of `text` as one value.
///
/// # Errors
/// The text is not JSON, or does not have the shape of `T`.
pub(super) fn from_str<'a, T: FromJson<'a>>(text: &'a str) -> Result<T> {
    let mut json = Reader::new(text);
    let value = T::read(&mut json)?;
    match json.peek() {
        None => Ok(value),
        Some(_) => json.expected("the end"),
    }
}

/// The values in `text` that do not influence how the rest is parsed. `None` if every value does,
/// or if `text` is not a `T`.
pub(super) fn free_values<'a, T: FromJson<'a>>(text: &'a str) -> Option<Vec<FreeValue>> {
    let mut json = Reader { free_values: Some(Vec::new()), ..Reader::new(text) };
    T::read(&mut json).ok()?;
    json.free_values
}

/// Range of a value in a text, including the quotes of a string. Replacing it with another value of
/// its kind changes only that value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FreeValue {
    pub(super) kind: ValueKind,
    pub(super) start: usize,
    pub(super) end: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
    /// A nonempty [`Str`].
    Text,
    /// A [`Reported`] count of up to nine digits.
    Count,
    /// A skipped string.
    SkippedString,
    /// A skipped number.
    SkippedNumber,
}

/// Implements [`FromJson`] for a struct. Each field is read from the member of an object with the
/// same name, or the one given after `=`. A missing member leaves the field's default.
macro_rules! from_object {
    ($name:ident $(<$life:lifetime>)? { $($field:ident $(= $member:literal)?),+ $(,)? $(; $extra:ident)? }) => {
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
                    $(read.$extra |= json.is_extra(member);)?
                    json.skip()
                })?;
                Ok(read)
            }

            fn fits(first: u8) -> bool {
                first == b'{'
            }
        }
    };
    (@name $field:ident $member:literal) => { $member };
    (@name $field:ident) => { stringify!($field) };
}
pub(super) use from_object;

/// Whether the next request does not repeat a member of a message or a tool call in this form.
pub(super) fn is_not_kept(member: &str) -> bool {
    include_str!("not_kept.txt").split_whitespace().any(|name| name == member)
}

/// A position in a JSON text.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: u8,
    /// Free values so far, if they are collected.
    free_values: Option<Vec<FreeValue>>,
}

/// Reading values.
impl<'a> Reader<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text, at: 0, depth: 0, free_values: None }
    }

    /// Skips `bytes`, if they are next.
    #[inline]
    pub(super) fn skip_bytes(&mut self, bytes: &[u8]) -> bool {
        let are_next = self.bytes()[self.at..].starts_with(bytes);
        self.at += if are_next { bytes.len() } else { 0 };
        are_next
    }

    /// The unread rest.
    pub(super) fn rest(&self) -> &'a [u8] {
        &self.bytes()[self.at..]
    }

    /// Whether the next value is a member of a message that the next request repeats.
    pub(super) fn is_extra(&self, member: &[u8]) -> bool {
        let is_null = matches!(self.rest().first(), None | Some(b'n'));
        !is_null && !str::from_utf8(member).is_ok_and(is_not_kept)
    }

    /// Records that the value from `start` to here is free.
    #[inline]
    fn note_free(&mut self, kind: ValueKind, start: usize) {
        if let Some(free_values) = &mut self.free_values {
            free_values.push(FreeValue { kind, start, end: self.at });
        }
    }

    /// Reads an object. `each` receives the name of a member and must read or skip its value.
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
            Some(b'"') => self.skip_string(),
            Some(b'-' | b'0'..=b'9') => self.skip_number(),
            Some(b'{') => self.members(|_, json| json.skip()),
            Some(b'[') => self.elements(Self::skip),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            _ => self.word("null"),
        }
    }

    /// Skips a string.
    pub(super) fn skip_string(&mut self) -> Result<()> {
        let start = self.at;
        self.quoted()?;
        self.note_free(ValueKind::SkippedString, start);
        Ok(())
    }

    /// Skips a number.
    pub(super) fn skip_number(&mut self) -> Result<()> {
        let start = self.at;
        self.number()?;
        self.note_free(ValueKind::SkippedNumber, start);
        Ok(())
    }

    /// Reads a value that later code interprets, so that no value of this text is free.
    pub(super) fn read_bound<T: FromJson<'a>>(&mut self) -> Result<T> {
        self.free_values = None;
        T::read(self)
    }

    /// Reads a value that is not free.
    fn not_free<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let free_values = self.free_values.take();
        let value = read(self);
        self.free_values = free_values;
        value
    }

    /// Reads the next value if it has a fitting type, and skips it otherwise.
    pub(super) fn read_fitting<T: FromJson<'a>>(&mut self) -> Result<Option<T>> {
        if self.peek().is_some_and(T::fits) {
            return T::read(self).map(Some);
        }
        self.skip()?;
        Ok(None)
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
    pub(super) fn string(&mut self) -> Result<Cow<'a, str>> {
        self.peek();
        let begin = self.at;
        let quoted = self.quoted()?;
        if quoted.start < quoted.end {
            self.note_free(ValueKind::Text, begin);
        }
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

    /// The next byte other than white space.
    #[inline]
    pub(super) fn peek(&mut self) -> Option<u8> {
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

    /// Continues at the first byte that begins an escape or ends the string wrongly.
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

    /// Reads a number if it has up to nine digits and no other characters.
    pub(super) fn short_count(&mut self) -> Option<u32> {
        self.peek();
        let start = self.at;
        let rest = &self.bytes()[self.at..];
        let digits = rest.iter().take(10).take_while(|byte| byte.is_ascii_digit()).count();
        let ends = matches!(rest.get(digits), Some(b',' | b'}' | b' ' | b'\n' | b'\r'));
        if !ends || !(1..=9).contains(&digits) || (rest[0] == b'0' && digits > 1) {
            return None;
        }
        self.at += digits;
        self.note_free(ValueKind::Count, start);
        Some(rest[..digits].iter().fold(0, |count, digit| count * 10 + u32::from(digit - b'0')))
    }

    /// Skips a number.
    fn number(&mut self) -> Result<()> {
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
        Ok(())
    }

    /// Skips one or more digits.
    fn digits(&mut self) -> Result<()> {
        let digits =
            self.bytes()[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += digits;
        if digits == 0 { self.expected("a digit") } else { Ok(()) }
    }
}

/// A string, borrowed from the input unless it has escapes. A `null`, or a value of another type,
/// is read as the empty string: they mean "no content" in every dialect.
#[derive(Debug, Default)]
pub(super) struct Str<'a>(Cow<'a, str>);

impl<'a> FromJson<'a> for Str<'a> {
    fn read(json: &mut Reader<'a>) -> Result<Self> {
        if json.peek() == Some(b'"') {
            return json.string().map(Self);
        }
        json.skip()?;
        Ok(Self::default())
    }
}

impl Str<'_> {
    /// This string, or the other one if this one is empty.
    pub(super) fn or(self, other: Self) -> Self {
        if self.is_empty() { other } else { self }
    }

    /// Appends the other string.
    pub(super) fn append(&mut self, other: Self) {
        if self.is_empty() {
            *self = other;
        } else if !other.is_empty() {
            self.0.to_mut().push_str(&other);
        }
    }
}

impl<'a> From<Cow<'a, str>> for Str<'a> {
    fn from(text: Cow<'a, str>) -> Self {
        Self(text)
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

/// A string that determines how the rest is read, such as the type of an event.
#[derive(Debug, Default)]
pub(super) struct Tag<'a>(Str<'a>);

impl<'a> FromJson<'a> for Tag<'a> {
    fn read(json: &mut Reader<'a>) -> Result<Self> {
        json.not_free(Str::read).map(Self)
    }
}

/// The position of a choice, which decides whether the rest of it is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Index(pub(super) u64);

/// Anything except an integer, as a number or in quotes, is read as 0.
impl<'a> FromJson<'a> for Index {
    fn read(json: &mut Reader<'a>) -> Result<Self> {
        json.peek();
        let start = json.at;
        json.not_free(Reader::skip)?;
        let text = json.text[start..json.at].trim_matches('"');
        Ok(Self(text.parse().unwrap_or_default()))
    }
}

impl<'a> Tag<'a> {
    /// This tag, or the other one if this one is empty.
    pub(super) fn or(self, other: &'a str) -> Self {
        Self(self.0.or(other.into()))
    }
}

impl Deref for Tag<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// A value of any type, as JSON text. Later code interprets it, so no value of a text with a raw
/// value is free.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raw<'a>(pub(super) &'a str);

impl<'a> Raw<'a> {
    /// The string; empty if the value has another type.
    pub(super) fn text(self) -> Str<'a> {
        from_str(self.0).unwrap_or_default()
    }
}

impl<'a> FromJson<'a> for Raw<'a> {
    fn read(json: &mut Reader<'a>) -> Result<Self> {
        json.peek();
        let start = json.at;
        json.free_values = None;
        json.skip()?;
        Ok(Self(&json.text[start..json.at]))
    }
}

/// A `null`, or a value of another type, is read as `None`.
impl<'a, T: FromJson<'a>> FromJson<'a> for Option<T> {
    fn read(json: &mut Reader<'a>) -> Result<Self> {
        if json.skip_null()? { Ok(None) } else { json.read_fitting() }
    }
}

/// Elements of another type are ignored. A single object is read as a list of one.
impl<'a, T: FromJson<'a>> FromJson<'a> for Vec<T> {
    fn read(json: &mut Reader<'a>) -> Result<Self> {
        let mut elements = Self::new();
        if json.peek() == Some(b'{') {
            elements.extend(json.read_fitting()?);
            return Ok(elements);
        }
        json.elements(|json| {
            elements.extend(json.read_fitting()?);
            Ok(())
        })?;
        Ok(elements)
    }

    fn fits(first: u8) -> bool {
        first == b'[' || first == b'{'
    }
}

/// A reported count. Any other value is kept as written, because an invalid count does not make the
/// rest of the response wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Reported<'a> {
    /// No member, or `null`.
    #[default]
    Missing,
    Count(u32),
    /// Not a whole number from 0 to `u32::MAX`.
    Impossible(&'a str),
}

impl<'a> FromJson<'a> for Reported<'a> {
    fn read(json: &mut Reader<'a>) -> Result<Self> {
        if json.skip_null()? {
            return Ok(Self::Missing);
        }
        if let Some(count) = json.short_count() {
            return Ok(Self::Count(count));
        }
        let Raw(text) = Raw::read(json)?;
        Ok(text.parse().map_or_else(|_| Self::of_odd(text), Self::Count))
    }
}

impl<'a> Reported<'a> {
    /// Some servers write integers with a decimal point or an exponent: `12.0`.
    #[cold]
    fn of_odd(text: &'a str) -> Self {
        let number: f64 = text.parse().unwrap_or(-1.0);
        let whole = number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number);
        #[expect(clippy::cast_possible_truncation, reason = "checked")]
        let count = number as u32;
        if whole { Self::Count(count) } else { Self::Impossible(text) }
    }
}

/// The first element of an array, or a single object. Other elements are skipped.
#[derive(Debug)]
pub(super) struct FirstElement<T>(pub(super) Option<T>);

impl<'a, T: FromJson<'a>> FromJson<'a> for FirstElement<T> {
    fn read(json: &mut Reader<'a>) -> Result<Self> {
        if json.peek() == Some(b'{') && !T::fits(b'[') {
            return json.read_fitting().map(Self);
        }
        let mut first = None;
        json.elements(|json| {
            if first.is_some() {
                return json.skip();
            }
            first = json.read_fitting()?;
            Ok(())
        })?;
        Ok(Self(first))
    }

    fn fits(first: u8) -> bool {
        first == b'[' || first == b'{'
    }
}

#[cfg(test)]
mod tests;
