//! Members that servers write in several forms: a text or a list of parts.

use super::json_reader::{FromJson, Reader, Str, Tag, from_object};

type Result<T> = std::result::Result<T, super::json_reader::JsonError>;

/// A text, or a list of parts with texts and thoughts.
///
/// `OpenAI` writes `"text"`, Mistral `[{"type":"thinking","thinking":[..]},{"type":"text",..}]`,
/// and some servers a single part.
#[derive(Debug, Default)]
pub(super) struct Content<'a> {
    pub(super) text: Str<'a>,
    pub(super) thinking: Str<'a>,
}

impl<'a> FromJson<'a> for Content<'a> {
    fn read(json: &mut Reader<'a>) -> Result<Self> {
        match json.peek() {
            Some(b'[' | b'{') => json.read_bound::<Vec<Part<'a>>>().map(Self::of_parts),
            _ => Ok(Self { text: Str::read(json)?, thinking: Str::default() }),
        }
    }
}

impl<'a> Content<'a> {
    #[cold]
    fn of_parts(parts: Vec<Part<'a>>) -> Self {
        let mut content = Self::default();
        for Part { kind, text, value, thinking, refusal } in parts {
            // `thinking`, and OpenRouter's `reasoning.text` and `reasoning.summary`.
            let is_thought = kind.starts_with("thinking") || kind.starts_with("reasoning");
            content.thinking.append(thinking.all());
            let of_text = if is_thought { &mut content.thinking } else { &mut content.text };
            of_text.append(text.all());
            of_text.append(value);
            content.text.append(refusal);
        }
        content
    }

    /// All content, for a list whose name identifies its kind.
    pub(super) fn all(self) -> Str<'a> {
        let Self { text, mut thinking } = self;
        thinking.append(text);
        thinking
    }
}

/// A part, or a text instead of one.
#[derive(Debug, Default)]
struct Part<'a> {
    kind: Tag<'a>,
    text: Content<'a>,
    /// A nested text, in the Assistants API.
    value: Str<'a>,
    thinking: Content<'a>,
    refusal: Str<'a>,
}

#[derive(Debug, Default)]
struct PartObject<'a> {
    kind: Tag<'a>,
    text: Content<'a>,
    value: Str<'a>,
    thinking: Content<'a>,
    summary: Content<'a>,
    refusal: Str<'a>,
}
from_object!(PartObject<'a> { kind = "type", text, value, thinking, summary, refusal });

impl<'a> FromJson<'a> for Part<'a> {
    fn read(json: &mut Reader<'a>) -> Result<Self> {
        if json.peek() != Some(b'{') {
            let text = Content { text: Str::read(json)?, thinking: Str::default() };
            return Ok(Self { text, ..Self::default() });
        }
        let PartObject { kind, text, value, thinking, summary, refusal } = PartObject::read(json)?;
        let mut thought = thinking.all();
        thought.append(summary.all());
        let thinking = Content { text: thought, thinking: Str::default() };
        Ok(Self { kind, text, value, thinking, refusal })
    }
}

/// The arguments of a call: JSON as a string, or the object itself.
#[derive(Debug, Default)]
pub(super) struct Arguments<'a>(pub(super) Str<'a>);

impl<'a> FromJson<'a> for Arguments<'a> {
    fn read(json: &mut Reader<'a>) -> Result<Self> {
        match json.peek() {
            Some(b'{' | b'[') => {
                json.read_bound::<super::json_reader::Raw<'a>>().map(|raw| Self(raw.0.into()))
            }
            _ => Str::read(json).map(Self),
        }
    }
}

/// The finish reason: a word, or an object with a `type`.
#[derive(Debug, Default)]
pub(super) struct Reason<'a>(pub(super) Str<'a>);

#[derive(Debug, Default)]
struct ReasonObject<'a> {
    kind: Str<'a>,
}
from_object!(ReasonObject<'a> { kind = "type" });

impl<'a> FromJson<'a> for Reason<'a> {
    fn read(json: &mut Reader<'a>) -> Result<Self> {
        match json.peek() {
            Some(b'{') => json.read_bound::<ReasonObject<'a>>().map(|reason| Self(reason.kind)),
            _ => Str::read(json).map(Self),
        }
    }
}
