//! Rewrites a stream of messages. Each content block is one text.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::text_event::{Rewrite, TextEvent, end_text};
use crate::error::DialectError;
use crate::patch::{self, range_in};
use crate::wire::{CowStr, write_json};

/// The indices of the blocks that have had text and have not ended.
#[derive(Debug, Default)]
pub(super) struct OpenTexts(Vec<u64>);

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: CowStr<'a>,
    #[serde(default)]
    index: u64,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    #[serde(borrow)]
    content_block: Option<Delta<'a>>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

impl OpenTexts {
    pub(super) fn rewrite_event(
        &mut self,
        event: &[u8],
        data: &[u8],
        out: &mut Vec<u8>,
        rewrite: &mut Rewrite<'_>,
    ) -> Result<(), DialectError> {
        let Ok(parsed) = serde_json::from_slice::<Event<'_>>(data) else {
            out.extend_from_slice(event);
            return Ok(());
        };
        let text = match &*parsed.kind {
            "content_block_delta" => parsed.delta.and_then(|delta| delta.text),
            "content_block_start" => parsed.content_block.and_then(|block| block.text),
            "content_block_stop" => {
                self.end(parsed.index, out, rewrite)?;
                None
            }
            "message_delta" | "message_stop" => {
                self.end_all(out, rewrite)?;
                None
            }
            _ => None,
        };
        let patch = text.and_then(|raw| self.rewrite_text(parsed.index, raw, rewrite));
        let patch = patch.map(|(raw, text)| (range_in(event, raw.get()), text));
        patch::apply(event, patch.as_slice(), out)
    }

    /// The replacement of a text, if it changes.
    fn rewrite_text<'a>(
        &mut self,
        index: u64,
        raw: &'a RawValue,
        rewrite: &mut Rewrite<'_>,
    ) -> Option<(&'a RawValue, String)> {
        let text = serde_json::from_str::<CowStr<'_>>(raw.get()).unwrap_or_default();
        if text.is_empty() {
            return None;
        }
        if !self.0.contains(&index) {
            self.0.push(index);
        }
        let rewritten = rewrite(TextEvent::Delta { index, text: &text });
        (rewritten != *text).then(|| (raw, rewritten.into_owned()))
    }

    fn end(
        &mut self,
        index: u64,
        out: &mut Vec<u8>,
        rewrite: &mut Rewrite<'_>,
    ) -> Result<(), DialectError> {
        let Some(at) = self.0.iter().position(|open| *open == index) else { return Ok(()) };
        self.0.swap_remove(at);
        write_held_back(index, &end_text(rewrite, index), out)
    }

    pub(super) fn end_all(
        &mut self,
        out: &mut Vec<u8>,
        rewrite: &mut Rewrite<'_>,
    ) -> Result<(), DialectError> {
        self.0
            .drain(..)
            .try_for_each(|index| write_held_back(index, &end_text(rewrite, index), out))
    }
}

fn write_held_back(index: u64, text: &str, out: &mut Vec<u8>) -> Result<(), DialectError> {
    if text.is_empty() {
        return Ok(());
    }
    out.extend_from_slice(b"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",");
    out.extend_from_slice(format!("\"index\":{index},").as_bytes());
    out.extend_from_slice(b"\"delta\":{\"type\":\"text_delta\",\"text\":");
    write_json(out, &text)?;
    out.extend_from_slice(b"}}\n\n");
    Ok(())
}
