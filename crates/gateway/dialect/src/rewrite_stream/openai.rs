//! Rewrites a stream of chat completions. Each choice is one text.

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::text_event::{Rewrite, TextEvent, end_text};
use crate::error::DialectError;
use crate::patch::{self, Patch, range_in};
use crate::wire::CowStr;

/// The choices that have had text and have not ended.
#[derive(Debug, Default)]
pub(super) struct OpenTexts(Vec<OpenText>);

/// The text of one choice.
#[derive(Debug)]
struct OpenText {
    index: u64,
    /// The last event with text of this choice, as the template for one more.
    event: Vec<u8>,
    /// The JSON strings of all texts in that event; true for the text of this choice.
    strings: Vec<(Range<usize>, bool)>,
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    choices: Vec<Choice<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(default)]
    index: u64,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    #[serde(borrow)]
    finish_reason: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

impl<'a> Choice<'a> {
    fn content(&self) -> Option<&'a RawValue> {
        self.delta.as_ref()?.content
    }
}

impl OpenTexts {
    pub(super) fn rewrite_event(
        &mut self,
        event: &[u8],
        data: &[u8],
        out: &mut Vec<u8>,
        rewrite: &mut Rewrite<'_>,
    ) -> Result<(), DialectError> {
        if data.trim_ascii() == b"[DONE]" {
            self.end_all(out, rewrite)?;
            out.extend_from_slice(event);
            return Ok(());
        }
        let Ok(chunk) = serde_json::from_slice::<Chunk<'_>>(data) else {
            out.extend_from_slice(event);
            return Ok(());
        };
        let mut patches = Vec::new();
        for choice in &chunk.choices {
            let text = choice.content().and_then(|raw| Some((raw, text_of(raw)?)));
            match text {
                Some((raw, text)) => {
                    let rewritten = rewrite_text(choice, &text, rewrite);
                    let range = range_in(event, raw.get());
                    patches.extend((rewritten != text).then(|| (range, rewritten.into_owned())));
                    self.remember(event, &chunk, choice);
                }
                None if choice.finish_reason.is_some() => self.end(choice.index, out, rewrite)?,
                None => {}
            }
        }
        patch::apply(event, &patches, out)
    }

    /// Keeps the event as the template of the choice, or removes the choice if it ended.
    fn remember(&mut self, event: &[u8], chunk: &Chunk<'_>, choice: &Choice<'_>) {
        let at = self.0.iter().position(|text| text.index == choice.index);
        if choice.finish_reason.is_some() {
            at.map(|at| self.0.swap_remove(at));
            return;
        }
        let at = at.unwrap_or(self.0.len());
        if at == self.0.len() {
            let (event, strings) = (Vec::new(), Vec::new());
            self.0.push(OpenText { index: choice.index, event, strings });
        }
        let text = &mut self.0[at];
        text.event.clear();
        text.event.extend_from_slice(event);
        text.strings.clear();
        text.strings.extend(chunk.choices.iter().filter_map(|other| {
            let raw = other.content()?;
            text_of(raw)?;
            Some((range_in(event, raw.get()), other.index == choice.index))
        }));
    }

    fn end(
        &mut self,
        index: u64,
        out: &mut Vec<u8>,
        rewrite: &mut Rewrite<'_>,
    ) -> Result<(), DialectError> {
        match self.0.iter().position(|text| text.index == index) {
            Some(at) => self.0.swap_remove(at).end(out, rewrite),
            None => Ok(()),
        }
    }

    pub(super) fn end_all(
        &mut self,
        out: &mut Vec<u8>,
        rewrite: &mut Rewrite<'_>,
    ) -> Result<(), DialectError> {
        self.0.drain(..).try_for_each(|text| text.end(out, rewrite))
    }
}

impl OpenText {
    fn end(self, out: &mut Vec<u8>, rewrite: &mut Rewrite<'_>) -> Result<(), DialectError> {
        let held_back = end_text(rewrite, self.index);
        if held_back.is_empty() {
            return Ok(());
        }
        let text = |own| if own { held_back.clone() } else { String::new() };
        let patches: Vec<Patch> =
            self.strings.into_iter().map(|(range, own)| (range, text(own))).collect();
        patch::apply(&self.event, &patches, out)
    }
}

/// The replacement of a text. If the text ends here, it includes all that was held back.
fn rewrite_text<'t>(choice: &Choice<'_>, text: &'t str, rewrite: &mut Rewrite<'_>) -> Cow<'t, str> {
    let index = choice.index;
    let mut rewritten = rewrite(TextEvent::Delta { index, text });
    if choice.finish_reason.is_some() {
        let held_back = end_text(rewrite, index);
        if !held_back.is_empty() {
            rewritten.to_mut().push_str(&held_back);
        }
    }
    rewritten
}

/// The text of a delta, if it has any.
fn text_of(raw: &RawValue) -> Option<Cow<'_, str>> {
    let text: CowStr<'_> = serde_json::from_str(raw.get()).ok()?;
    (!text.is_empty()).then_some(text.0)
}
