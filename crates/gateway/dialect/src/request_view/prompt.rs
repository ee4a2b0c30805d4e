//! Counts the tokens of a prompt.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::FieldPath;
use crate::error::DialectError;
use crate::wire::{CowStr, Object};

/// The tokens of the texts so far.
#[derive(Debug, Default)]
pub(super) struct PromptCounter {
    pub(super) tokens: u64,
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

impl PromptCounter {
    /// The messages of a chat: at least one, each with a role.
    pub(super) fn messages(&mut self, raw: &RawValue) -> Result<(), DialectError> {
        let path = FieldPath::Name("messages");
        let messages = items(raw, path)?;
        for (index, message) in messages.iter().enumerate() {
            let path = FieldPath::Item(&path, index);
            let message: Object<TextMembers<'_>> = read(message, path)?;
            let role = FieldPath::Member(&path, "role");
            decode(message.0.role.ok_or_else(|| DialectError::missing(role))?, role)?;
            self.members(&message.0, path)?;
        }
        if messages.is_empty() {
            return Err(DialectError::invalid(path, "must not be empty"));
        }
        Ok(())
    }

    /// A text, or a list of texts, token ids, lists of token ids (embeddings) or items (responses).
    pub(super) fn input(&mut self, raw: &RawValue) -> Result<(), DialectError> {
        let path = FieldPath::Name("input");
        if first_byte(raw) == b'"' {
            return self.text(raw, path);
        }
        for (index, item) in items(raw, path)?.into_iter().enumerate() {
            let path = FieldPath::Item(&path, index);
            match first_byte(item) {
                b'"' => self.text(item, path)?,
                b'{' => self.object(item, path)?,
                b'[' => self.tokens += read::<Vec<u64>>(item, path)?.len() as u64,
                b'0'..=b'9' => self.tokens += 1,
                _ => {
                    let problem = "must be a string, an object or token ids";
                    return Err(DialectError::invalid(path, problem));
                }
            }
        }
        Ok(())
    }

    /// A text or a list of content parts.
    pub(super) fn content(
        &mut self,
        raw: &RawValue,
        path: FieldPath<'_>,
    ) -> Result<(), DialectError> {
        match first_byte(raw) {
            b'"' => self.text(raw, path),
            b'[' => items(raw, path)?.into_iter().enumerate().try_for_each(|(index, part)| {
                let path = FieldPath::Item(&path, index);
                if first_byte(part) == b'"' {
                    self.text(part, path)
                } else {
                    self.object(part, path)
                }
            }),
            _ => Err(DialectError::invalid(path, "must be a string or an array")),
        }
    }

    fn object(&mut self, raw: &RawValue, path: FieldPath<'_>) -> Result<(), DialectError> {
        self.members(&read::<Object<TextMembers<'_>>>(raw, path)?.0, path)
    }

    fn members(
        &mut self,
        members: &TextMembers<'_>,
        path: FieldPath<'_>,
    ) -> Result<(), DialectError> {
        let TextMembers { text, refusal, arguments, content, output, .. } = members;
        for (name, raw) in [("text", text), ("refusal", refusal), ("arguments", arguments)] {
            if let Some(raw) = raw {
                self.text(raw, FieldPath::Member(&path, name))?;
            }
        }
        for (name, raw) in [("content", content), ("output", output)] {
            if let Some(raw) = raw {
                self.content(raw, FieldPath::Member(&path, name))?;
            }
        }
        if let Some(calls) = members.tool_calls {
            let path = FieldPath::Member(&path, "tool_calls");
            for (index, call) in items(calls, path)?.into_iter().enumerate() {
                self.object(call, FieldPath::Item(&path, index))?;
            }
        }
        if let Some(function) = members.function {
            self.object(function, FieldPath::Member(&path, "function"))?;
        }
        if let Some(input) = members.input {
            self.tokens += leaf_tokens(&read(input, FieldPath::Member(&path, "input"))?);
        }
        members
            .source
            .map_or(Ok(()), |source| self.source(source, FieldPath::Member(&path, "source")))
    }

    /// A plain-text document. The data of other sources is not text.
    fn source(&mut self, raw: &RawValue, path: FieldPath<'_>) -> Result<(), DialectError> {
        #[derive(Deserialize)]
        struct Source<'a> {
            #[serde(borrow, rename = "type")]
            kind: Option<&'a RawValue>,
            data: Option<&'a RawValue>,
            content: Option<&'a RawValue>,
        }
        let source: Object<Source<'_>> = read(raw, path)?;
        let kind = source.0.kind.map(RawValue::get);
        match (kind, source.0.data, source.0.content) {
            (Some("\"text\""), Some(data), _) => self.text(data, FieldPath::Member(&path, "data")),
            (Some("\"content\""), _, Some(content)) => {
                self.content(content, FieldPath::Member(&path, "content"))
            }
            _ => Ok(()),
        }
    }

    fn text(&mut self, raw: &RawValue, path: FieldPath<'_>) -> Result<(), DialectError> {
        self.tokens += text_tokens(&decode(raw, path)?);
        Ok(())
    }
}

/// The text of a JSON value that must be a string.
pub(super) fn decode<'a>(
    raw: &'a RawValue,
    path: FieldPath<'_>,
) -> Result<Cow<'a, str>, DialectError> {
    if first_byte(raw) != b'"' {
        return Err(DialectError::invalid(path, "must be a string"));
    }
    Ok(read::<CowStr<'a>>(raw, path)?.0)
}

fn text_tokens(text: &str) -> u64 {
    text.len().div_ceil(4) as u64
}

/// The tokens of every string inside any JSON. The depth limit of the body bounds the recursion.
fn leaf_tokens(value: &Value) -> u64 {
    match value {
        Value::String(text) => text_tokens(text),
        Value::Array(items) => items.iter().map(leaf_tokens).sum(),
        Value::Object(members) => members.values().map(leaf_tokens).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

fn first_byte(raw: &RawValue) -> u8 {
    raw.get().as_bytes().first().copied().unwrap_or_default()
}

fn read<'a, T: Deserialize<'a>>(raw: &'a RawValue, path: FieldPath<'_>) -> Result<T, DialectError> {
    serde_json::from_str(raw.get()).map_err(|error| DialectError::invalid(path, error))
}

/// The items of an array.
fn items<'a>(raw: &'a RawValue, path: FieldPath<'_>) -> Result<Vec<&'a RawValue>, DialectError> {
    if first_byte(raw) != b'[' {
        return Err(DialectError::invalid(path, "must be an array"));
    }
    read(raw, path)
}
