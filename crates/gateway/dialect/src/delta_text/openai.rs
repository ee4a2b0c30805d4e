//! The texts of a stream of chat completions: one lane for each choice.

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Change, Piece, end};
use crate::error::DialectError;
use crate::splice::{self, Patch, range_in};
use crate::wire::Str;

#[derive(Debug, Default)]
pub(super) struct Lanes(Vec<Lane>);

/// A choice that has had text and has not ended.
#[derive(Debug)]
struct Lane {
    index: u64,
    /// Its last event with text, as the pattern for one more.
    event: Vec<u8>,
    /// The JSON strings of texts in that event; true for this lane's own.
    texts: Vec<(Range<usize>, bool)>,
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

impl Lanes {
    pub(super) fn event(
        &mut self,
        event: &[u8],
        data: &[u8],
        out: &mut Vec<u8>,
        change: &mut Change<'_>,
    ) -> Result<(), DialectError> {
        if data.trim_ascii() == b"[DONE]" {
            self.end_all(out, change)?;
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
                    let changed = changed(choice, &text, change);
                    let at = range_in(event, raw.get());
                    patches.extend((changed != text).then(|| (at, changed.into_owned())));
                    self.remember(event, &chunk, choice);
                }
                None if choice.finish_reason.is_some() => self.end(choice.index, out, change)?,
                None => {}
            }
        }
        splice::write(event, &patches, out)
    }

    /// Keeps the event as the pattern of its lane, or forgets the lane where it ended with the event.
    fn remember(&mut self, event: &[u8], chunk: &Chunk<'_>, choice: &Choice<'_>) {
        let at = self.0.iter().position(|lane| lane.index == choice.index);
        if choice.finish_reason.is_some() {
            at.map(|at| self.0.swap_remove(at));
            return;
        }
        let lane = Lane { index: choice.index, event: Vec::new(), texts: Vec::new() };
        let at = at.unwrap_or(self.0.len());
        if at == self.0.len() {
            self.0.push(lane);
        }
        let lane = &mut self.0[at];
        lane.event.clear();
        lane.event.extend_from_slice(event);
        lane.texts.clear();
        lane.texts.extend(chunk.choices.iter().filter_map(|other| {
            let raw = other.content()?;
            text_of(raw)?;
            Some((range_in(event, raw.get()), other.index == choice.index))
        }));
    }

    fn end(
        &mut self,
        index: u64,
        out: &mut Vec<u8>,
        change: &mut Change<'_>,
    ) -> Result<(), DialectError> {
        match self.0.iter().position(|lane| lane.index == index) {
            Some(at) => self.0.swap_remove(at).end(out, change),
            None => Ok(()),
        }
    }

    pub(super) fn end_all(
        &mut self,
        out: &mut Vec<u8>,
        change: &mut Change<'_>,
    ) -> Result<(), DialectError> {
        self.0.drain(..).try_for_each(|lane| lane.end(out, change))
    }
}

impl Lane {
    fn end(self, out: &mut Vec<u8>, change: &mut Change<'_>) -> Result<(), DialectError> {
        let held_back = end(change, self.index);
        if held_back.is_empty() {
            return Ok(());
        }
        let text = |own| if own { held_back.clone() } else { String::new() };
        let patches: Vec<Patch> = self.texts.into_iter().map(|(at, own)| (at, text(own))).collect();
        splice::write(&self.event, &patches, out)
    }
}

/// What takes the place of a text; where it ends here, with all that was held back.
fn changed<'t>(choice: &Choice<'_>, text: &'t str, change: &mut Change<'_>) -> Cow<'t, str> {
    let lane = choice.index;
    let mut changed = change(Piece::Delta { lane, text });
    if choice.finish_reason.is_some() {
        let held_back = end(change, lane);
        if !held_back.is_empty() {
            changed.to_mut().push_str(&held_back);
        }
    }
    changed
}

/// The text of a delta that has some.
fn text_of(raw: &RawValue) -> Option<Cow<'_, str>> {
    let text: Str<'_> = serde_json::from_str(raw.get()).ok()?;
    (!text.is_empty()).then_some(text.0)
}
