//! Counts the tokens of a prompt.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::FieldPath;
use super::members::Members;
use crate::error::DialectError;
use crate::json::{self, Parts};

/// The tokens of the texts so far.
#[derive(Debug, Default)]
pub(super) struct PromptCounter {
    pub(super) tokens: u64,
}

/// The members with text of messages, items and content parts of all endpoints.
const READ: [&str; 10] = [
    "role",
    "content",
    "text",
    "refusal",
    // Anthropic: the arguments of a tool call; a document.
    "input",
    "source",
    // OpenAI: tool calls of a message; calls and results as items of the Responses API.
    "tool_calls",
    "function",
    "arguments",
    "output",
];

impl PromptCounter {
    /// The messages of a chat: at least one, each with a role.
    pub(super) fn messages(&mut self, json: &str) -> Result<(), DialectError> {
        let path = FieldPath::Name("messages");
        let mut messages = items(json, path)?.enumerate().peekable();
        if messages.peek().is_none() {
            return Err(DialectError::invalid(path, "must not be empty"));
        }
        messages.try_for_each(|(index, message)| {
            let path = FieldPath::Item(&path, index);
            let members = members(message, path, &READ)?;
            let role = FieldPath::Member(&path, "role");
            decode(members.get("role").ok_or_else(|| DialectError::missing(role))?, role)?;
            self.members(&members, path)
        })
    }

    /// A text, or a list of texts, token ids, lists of token ids (embeddings) or items (responses).
    pub(super) fn input(&mut self, json: &str) -> Result<(), DialectError> {
        let path = FieldPath::Name("input");
        if first_byte(json) == b'"' {
            return self.text(json, path);
        }
        for (index, item) in items(json, path)?.enumerate() {
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
    pub(super) fn content(&mut self, json: &str, path: FieldPath<'_>) -> Result<(), DialectError> {
        match first_byte(json) {
            b'"' => self.text(json, path),
            b'[' => items(json, path)?.enumerate().try_for_each(|(index, part)| {
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

    fn object(&mut self, json: &str, path: FieldPath<'_>) -> Result<(), DialectError> {
        self.members(&members(json, path, &READ)?, path)
    }

    fn members(&mut self, members: &Members<'_>, path: FieldPath<'_>) -> Result<(), DialectError> {
        members.iter().try_for_each(|(name, json)| {
            let path = FieldPath::Member(&path, name);
            match &**name {
                "text" | "refusal" | "arguments" => self.text(json, path),
                "content" | "output" => self.content(json, path),
                "tool_calls" => items(json, path)?
                    .enumerate()
                    .try_for_each(|(index, call)| self.object(call, FieldPath::Item(&path, index))),
                "function" => self.object(json, path),
                "input" => {
                    self.tokens += leaf_tokens(&read(json, path)?);
                    Ok(())
                }
                "source" => self.source(json, path),
                _ => Ok(()),
            }
        })
    }

    /// A plain-text document. The data of other sources is not text.
    fn source(&mut self, json: &str, path: FieldPath<'_>) -> Result<(), DialectError> {
        let source = members(json, path, &["type", "data", "content"])?;
        match (source.get("type"), source.get("data"), source.get("content")) {
            (Some("\"text\""), Some(data), _) => self.text(data, FieldPath::Member(&path, "data")),
            (Some("\"content\""), _, Some(content)) => {
                self.content(content, FieldPath::Member(&path, "content"))
            }
            _ => Ok(()),
        }
    }

    fn text(&mut self, json: &str, path: FieldPath<'_>) -> Result<(), DialectError> {
        self.tokens += text_tokens(&decode(json, path)?);
        Ok(())
    }
}

/// The text of a JSON value that must be a string.
pub(super) fn decode<'a>(json: &'a str, path: FieldPath<'_>) -> Result<Cow<'a, str>, DialectError> {
    if first_byte(json) != b'"' {
        return Err(DialectError::invalid(path, "must be a string"));
    }
    json::string(json).map_err(|error| DialectError::invalid(path, error))
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

fn first_byte(json: &str) -> u8 {
    json.as_bytes().first().copied().unwrap_or_default()
}

fn read<T: DeserializeOwned>(json: &str, path: FieldPath<'_>) -> Result<T, DialectError> {
    serde_json::from_str(json).map_err(|error| DialectError::invalid(path, error))
}

/// The members of an object.
fn members<'a>(
    json: &'a str,
    path: FieldPath<'_>,
    read: &[&'static str],
) -> Result<Members<'a>, DialectError> {
    Members::read(json, read).map_err(|error| DialectError::invalid(path, error))
}

/// The items of an array.
fn items<'a>(json: &'a str, path: FieldPath<'_>) -> Result<Parts<'a>, DialectError> {
    if first_byte(json) != b'[' {
        return Err(DialectError::invalid(path, "must be an array"));
    }
    Ok(json::items(json))
}
