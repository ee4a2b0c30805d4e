//! Collecting the texts of a request.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::path::Path;
use crate::error::DialectError;
use crate::wire::Object;

/// A text of the request, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text<'a> {
    pub(super) text: Cow<'a, str>,
    /// The JSON string in the body, quotes included.
    pub(super) at: Range<usize>,
}

/// Texts found so far.
#[derive(Debug)]
pub(super) struct Texts<'a> {
    body: &'a str,
    found: Vec<Text<'a>>,
    token_ids: u64,
}

/// The members of messages, items and parts of all endpoints that hold text.
#[derive(Deserialize)]
struct Holder<'a> {
    #[serde(borrow)]
    role: Option<&'a RawValue>,
    content: Option<&'a RawValue>,
    text: Option<&'a RawValue>,
    refusal: Option<&'a RawValue>,
    /// Anthropic: arguments of a tool call, and a document.
    input: Option<&'a RawValue>,
    source: Option<&'a RawValue>,
    /// OpenAI: tool calls of a message; a call and a result as items of the Responses API.
    tool_calls: Option<&'a RawValue>,
    function: Option<&'a RawValue>,
    arguments: Option<&'a RawValue>,
    output: Option<&'a RawValue>,
}

impl<'a> Texts<'a> {
    pub(super) fn new(body: &'a str) -> Self {
        Self { body, found: Vec::with_capacity(8), token_ids: 0 }
    }

    /// All texts in the order of the body, and how many token ids stood in the place of texts.
    pub(super) fn finish(mut self) -> (Vec<Text<'a>>, u64) {
        self.found.sort_unstable_by_key(|text| text.at.start);
        (self.found, self.token_ids)
    }

    /// Reads a string without keeping it.
    pub(super) fn one(&self, raw: &'a RawValue, path: Path<'_>) -> Result<Text<'a>, DialectError> {
        Text::read(self.body, raw, path)
    }

    /// The messages of a chat, at least one, each with a role.
    pub(super) fn messages(&mut self, raw: &'a RawValue) -> Result<(), DialectError> {
        let path = Path::Name("messages");
        let count = each(raw, path, |message: Object<Holder<'a>>, path| {
            let role = Path::Member(&path, "role");
            let named = message.0.role.ok_or_else(|| DialectError::missing(role))?;
            self.one(named, role)?;
            self.holder(&message.0, path)
        })?;
        if count == 0 {
            return Err(DialectError::wrong(path, "must not be empty"));
        }
        Ok(())
    }

    /// A text, a list of texts, of token ids or of lists of them (embeddings), or of items (responses).
    pub(super) fn input(&mut self, raw: &'a RawValue) -> Result<(), DialectError> {
        let path = Path::Name("input");
        if is_string(raw) {
            return self.push(raw, path);
        }
        each(raw, path, |item: &'a RawValue, path| match first_byte(item) {
            b'"' => self.push(item, path),
            b'{' => self.object(item, path),
            b'[' => {
                self.token_ids += each(item, path, |_: u64, _| Ok(()))? as u64;
                Ok(())
            }
            b'0'..=b'9' => {
                self.token_ids += 1;
                Ok(())
            }
            _ => Err(DialectError::wrong(path, "must be a string, an object or token ids")),
        })?;
        Ok(())
    }

    /// A text or a list of parts.
    pub(super) fn content(
        &mut self,
        raw: &'a RawValue,
        path: Path<'_>,
    ) -> Result<(), DialectError> {
        match first_byte(raw) {
            b'"' => self.push(raw, path),
            b'[' => each(raw, path, |part: &'a RawValue, path| match first_byte(part) {
                b'"' => self.push(part, path),
                _ => self.object(part, path),
            })
            .map(|_| ()),
            _ => Err(DialectError::wrong(path, "must be a string or an array")),
        }
    }

    fn object(&mut self, raw: &'a RawValue, path: Path<'_>) -> Result<(), DialectError> {
        let object: Object<Holder<'a>> = read(raw, path)?;
        self.holder(&object.0, path)
    }

    fn holder(&mut self, holder: &Holder<'a>, path: Path<'_>) -> Result<(), DialectError> {
        let strings =
            [("text", holder.text), ("refusal", holder.refusal), ("arguments", holder.arguments)];
        for (name, raw) in strings {
            if let Some(raw) = raw {
                self.push(raw, Path::Member(&path, name))?;
            }
        }
        for (name, raw) in [("content", holder.content), ("output", holder.output)] {
            if let Some(raw) = raw {
                self.content(raw, Path::Member(&path, name))?;
            }
        }
        if let Some(calls) = holder.tool_calls {
            let path = Path::Member(&path, "tool_calls");
            each(calls, path, |call: &'a RawValue, path| self.object(call, path))?;
        }
        if let Some(function) = holder.function {
            self.object(function, Path::Member(&path, "function"))?;
        }
        if let Some(input) = holder.input {
            self.leaves(input, Path::Member(&path, "input"))?;
        }
        holder.source.map_or(Ok(()), |source| self.source(source, Path::Member(&path, "source")))
    }

    /// A document in plain text. Of other sources the data are not text.
    fn source(&mut self, raw: &'a RawValue, path: Path<'_>) -> Result<(), DialectError> {
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
            (Some("\"text\""), Some(data), _) => self.push(data, Path::Member(&path, "data")),
            (Some("\"content\""), _, Some(content)) => {
                self.content(content, Path::Member(&path, "content"))
            }
            _ => Ok(()),
        }
    }

    /// Every string inside any JSON. The recursion is bounded by the depth of the body.
    fn leaves(&mut self, raw: &'a RawValue, path: Path<'_>) -> Result<(), DialectError> {
        match first_byte(raw) {
            b'"' => self.push(raw, path),
            b'[' => each(raw, path, |item, path| self.leaves(item, path)).map(|_| ()),
            b'{' => {
                let members: Members<'a> = read(raw, path)?;
                members.0.into_iter().try_for_each(|member| self.leaves(member, path))
            }
            _ => Ok(()),
        }
    }

    fn push(&mut self, raw: &'a RawValue, path: Path<'_>) -> Result<(), DialectError> {
        let text = self.one(raw, path)?;
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

fn read<'a, T: Deserialize<'a>>(raw: &'a RawValue, path: Path<'_>) -> Result<T, DialectError> {
    serde_json::from_str(raw.get()).map_err(|error| DialectError::wrong(path, error))
}

/// Reads an array item by item, without a list of them; gives how many there were.
fn each<'a, T: Deserialize<'a>>(
    raw: &'a RawValue,
    path: Path<'_>,
    on_item: impl FnMut(T, Path<'_>) -> Result<(), DialectError>,
) -> Result<usize, DialectError> {
    if first_byte(raw) != b'[' {
        return Err(DialectError::wrong(path, "must be an array"));
    }
    let mut failure = None;
    let items = Items { path: &path, on_item, failure: &mut failure, item: PhantomData };
    let count = serde_json::Deserializer::from_str(raw.get()).deserialize_seq(items);
    count.map_err(|error| failure.unwrap_or_else(|| DialectError::wrong(path, error)))
}

struct Items<'s, F, T> {
    path: &'s Path<'s>,
    on_item: F,
    failure: &'s mut Option<DialectError>,
    item: PhantomData<T>,
}

impl<'de, F, T> Visitor<'de> for Items<'_, F, T>
where
    T: Deserialize<'de>,
    F: FnMut(T, Path<'_>) -> Result<(), DialectError>,
{
    type Value = usize;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<usize, A::Error> {
        let mut index = 0;
        loop {
            let path = Path::Item(self.path, index);
            let outcome = match items.next_element::<T>() {
                Ok(None) => return Ok(index),
                Ok(Some(item)) => (self.on_item)(item, path),
                Err(error) => Err(DialectError::wrong(path, error)),
            };
            if let Err(failure) = outcome {
                *self.failure = Some(failure);
                return Err(A::Error::custom("an item was refused"));
            }
            index += 1;
        }
    }
}
