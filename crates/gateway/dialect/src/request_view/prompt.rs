//! Collects the texts of a request.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::field_path::FieldPath;
use crate::error::DialectError;
use crate::wire::Object;

/// A text of a request and its position in the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestText<'a> {
    pub(super) text: Cow<'a, str>,
    range: Range<usize>,
}

impl RequestText<'_> {
    /// The range of the JSON string in the body, quotes included.
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// The text, with escapes decoded.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl<'a> RequestText<'a> {
    /// Decodes a JSON value of `body` that must be a string.
    pub(super) fn decode(
        body: &str,
        quoted: &'a str,
        path: FieldPath<'_>,
    ) -> Result<Self, DialectError> {
        let inside = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let inside = inside.ok_or_else(|| DialectError::invalid(path, "must be a string"))?;
        let text = if memchr::memchr(b'\\', inside.as_bytes()).is_none() {
            Cow::Borrowed(inside)
        } else {
            let text = serde_json::from_str(quoted);
            Cow::Owned(text.map_err(|error| DialectError::invalid(path, error))?)
        };
        Ok(Self { text, range: range_in(body.as_bytes(), quoted) })
    }
}

/// The texts found so far.
#[derive(Debug)]
pub(super) struct TextCollector<'a> {
    body: &'a str,
    found: Vec<RequestText<'a>>,
    token_ids: u64,
}

/// The members with text of messages, items and content parts of all endpoints.
#[derive(Deserialize)]
struct TextMembers<'a> {
    #[serde(borrow)]
    role: Option<&'a RawValue>,
    content: Option<&'a RawValue>,
    text: Option<&'a RawValue>,
    refusal: Option<&'a RawValue>,
    /// Anthropic: the arguments of a tool call; a document.
    input: Option<&'a RawValue>,
    source: Option<&'a RawValue>,
    /// OpenAI: tool calls of a message; calls and results as items of the Responses API.
    tool_calls: Option<&'a RawValue>,
    function: Option<&'a RawValue>,
    arguments: Option<&'a RawValue>,
    output: Option<&'a RawValue>,
}

impl<'a> TextCollector<'a> {
    pub(super) fn new(body: &'a str) -> Self {
        Self { body, found: Vec::with_capacity(8), token_ids: 0 }
    }

    /// All texts in the order of the body, and the number of token ids.
    pub(super) fn finish(mut self) -> (Vec<RequestText<'a>>, u64) {
        self.found.sort_unstable_by_key(|text| text.range.start);
        (self.found, self.token_ids)
    }

    /// Decodes a string without collecting it.
    pub(super) fn decode(
        &self,
        raw: &'a RawValue,
        path: FieldPath<'_>,
    ) -> Result<RequestText<'a>, DialectError> {
        RequestText::decode(self.body, raw.get(), path)
    }

    /// The messages of a chat: at least one, each with a role.
    pub(super) fn messages(&mut self, raw: &'a RawValue) -> Result<(), DialectError> {
        let path = FieldPath::Name("messages");
        let count = each(raw, path, |message: Object<TextMembers<'a>>, path| {
            let role = FieldPath::Member(&path, "role");
            let value = message.0.role.ok_or_else(|| DialectError::missing(role))?;
            self.decode(value, role)?;
            self.add_members(&message.0, path)
        })?;
        if count == 0 {
            return Err(DialectError::invalid(path, "must not be empty"));
        }
        Ok(())
    }

    /// A text, or a list of texts, token ids, lists of token ids (embeddings) or items (responses).
    pub(super) fn input(&mut self, raw: &'a RawValue) -> Result<(), DialectError> {
        let path = FieldPath::Name("input");
        if is_string(raw) {
            return self.add(raw, path);
        }
        each(raw, path, |item: &'a RawValue, path| match first_byte(item) {
            b'"' => self.add(item, path),
            b'{' => self.object(item, path),
            b'[' => {
                self.token_ids += each(item, path, |_: u64, _| Ok(()))? as u64;
                Ok(())
            }
            b'0'..=b'9' => {
                self.token_ids += 1;
                Ok(())
            }
            _ => Err(DialectError::invalid(path, "must be a string, an object or token ids")),
        })?;
        Ok(())
    }

    /// A text or a list of content parts.
    pub(super) fn content(
        &mut self,
        raw: &'a RawValue,
        path: FieldPath<'_>,
    ) -> Result<(), DialectError> {
        match first_byte(raw) {
            b'"' => self.add(raw, path),
            b'[' => each(raw, path, |part: &'a RawValue, path| match first_byte(part) {
                b'"' => self.add(part, path),
                _ => self.object(part, path),
            })
            .map(|_| ()),
            _ => Err(DialectError::invalid(path, "must be a string or an array")),
        }
    }

    fn object(&mut self, raw: &'a RawValue, path: FieldPath<'_>) -> Result<(), DialectError> {
        let object: Object<TextMembers<'a>> = read(raw, path)?;
        self.add_members(&object.0, path)
    }

    fn add_members(
        &mut self,
        members: &TextMembers<'a>,
        path: FieldPath<'_>,
    ) -> Result<(), DialectError> {
        let strings = [
            ("text", members.text),
            ("refusal", members.refusal),
            ("arguments", members.arguments),
        ];
        for (name, raw) in strings {
            if let Some(raw) = raw {
                self.add(raw, FieldPath::Member(&path, name))?;
            }
        }
        for (name, raw) in [("content", members.content), ("output", members.output)] {
            if let Some(raw) = raw {
                self.content(raw, FieldPath::Member(&path, name))?;
            }
        }
        if let Some(calls) = members.tool_calls {
            let path = FieldPath::Member(&path, "tool_calls");
            each(calls, path, |call: &'a RawValue, path| self.object(call, path))?;
        }
        if let Some(function) = members.function {
            self.object(function, FieldPath::Member(&path, "function"))?;
        }
        if let Some(input) = members.input {
            self.leaves(input, FieldPath::Member(&path, "input"))?;
        }
        members
            .source
            .map_or(Ok(()), |source| self.source(source, FieldPath::Member(&path, "source")))
    }

    /// A plain-text document. The data of other sources is not text.
    fn source(&mut self, raw: &'a RawValue, path: FieldPath<'_>) -> Result<(), DialectError> {
        #[derive(Deserialize)]
        struct Source<'a> {
            #[serde(borrow, rename = "type")]
            kind: Option<&'a RawValue>,
            data: Option<&'a RawValue>,
            content: Option<&'a RawValue>,
        }
        let source: Object<Source<'a>> = read(raw, path)?;
        let kind = source.0.kind.map(RawValue::get);
        match (kind, source.0.data, source.0.content) {
            (Some("\"text\""), Some(data), _) => self.add(data, FieldPath::Member(&path, "data")),
            (Some("\"content\""), _, Some(content)) => {
                self.content(content, FieldPath::Member(&path, "content"))
            }
            _ => Ok(()),
        }
    }

    /// Every string inside any JSON. The depth limit of the body bounds the recursion.
    fn leaves(&mut self, raw: &'a RawValue, path: FieldPath<'_>) -> Result<(), DialectError> {
        match first_byte(raw) {
            b'"' => self.add(raw, path),
            b'[' => each(raw, path, |item, path| self.leaves(item, path)).map(|_| ()),
            b'{' => {
                let members: Members<'a> = read(raw, path)?;
                members.0.into_iter().try_for_each(|member| self.leaves(member, path))
            }
            _ => Ok(()),
        }
    }

    fn add(&mut self, raw: &'a RawValue, path: FieldPath<'_>) -> Result<(), DialectError> {
        let text = self.decode(raw, path)?;
        self.found.push(text);
        Ok(())
    }
}

/// The values of an object.
struct Members<'a>(Vec<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Values).map(Members)
    }
}

struct Values;

impl<'de> Visitor<'de> for Values {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut values = Vec::new();
        while let Some((_, value)) = map.next_entry::<IgnoredAny, _>()? {
            values.push(value);
        }
        Ok(values)
    }
}

fn first_byte(raw: &RawValue) -> u8 {
    raw.get().as_bytes().first().copied().unwrap_or_default()
}

fn is_string(raw: &RawValue) -> bool {
    first_byte(raw) == b'"'
}

fn read<'a, T: Deserialize<'a>>(raw: &'a RawValue, path: FieldPath<'_>) -> Result<T, DialectError> {
    serde_json::from_str(raw.get()).map_err(|error| DialectError::invalid(path, error))
}

/// Reads an array item by item, without collecting the items; returns their number.
fn each<'a, T: Deserialize<'a>>(
    raw: &'a RawValue,
    path: FieldPath<'_>,
    on_item: impl FnMut(T, FieldPath<'_>) -> Result<(), DialectError>,
) -> Result<usize, DialectError> {
    if first_byte(raw) != b'[' {
        return Err(DialectError::invalid(path, "must be an array"));
    }
    let mut failure = None;
    let items = Items { path: &path, on_item, failure: &mut failure, item: PhantomData };
    let count = serde_json::Deserializer::from_str(raw.get()).deserialize_seq(items);
    count.map_err(|error| failure.unwrap_or_else(|| DialectError::invalid(path, error)))
}

struct Items<'s, F, T> {
    path: &'s FieldPath<'s>,
    on_item: F,
    failure: &'s mut Option<DialectError>,
    item: PhantomData<T>,
}

impl<'de, F, T> Visitor<'de> for Items<'_, F, T>
where
    T: Deserialize<'de>,
    F: FnMut(T, FieldPath<'_>) -> Result<(), DialectError>,
{
    type Value = usize;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<usize, A::Error> {
        let mut index = 0;
        loop {
            let path = FieldPath::Item(self.path, index);
            let outcome = match items.next_element::<T>() {
                Ok(None) => return Ok(index),
                Ok(Some(item)) => (self.on_item)(item, path),
                Err(error) => Err(DialectError::invalid(path, error)),
            };
            if let Err(failure) = outcome {
                *self.failure = Some(failure);
                return Err(A::Error::custom("an item was rejected"));
            }
            index += 1;
        }
    }
}

/// The position of a slice in the buffer that it was borrowed from.
fn range_in(whole: &[u8], part: &str) -> Range<usize> {
    let start = (part.as_ptr() as usize).wrapping_sub(whole.as_ptr() as usize);
    start..start.wrapping_add(part.len())
}
