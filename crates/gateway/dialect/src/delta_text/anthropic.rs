//! The texts of a stream of messages: one lane for each content block.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Change, Piece, end};
use crate::error::DialectError;
use crate::splice::{self, range_in};
use crate::wire::Str;

/// Blocks that have had text and have not ended.
#[derive(Debug, Default)]
pub(super) struct Lanes(Vec<u64>);

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Str<'a>,
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

impl Lanes {
    pub(super) fn event(
        &mut self,
        event: &[u8],
        data: &[u8],
        out: &mut Vec<u8>,
        change: &mut Change<'_>,
    ) -> Result<(), DialectError> {
        let Ok(read) = serde_json::from_slice::<Event<'_>>(data) else {
            out.extend_from_slice(event);
            return Ok(());
        };
        let text = match &*read.kind {
            "content_block_delta" => read.delta.and_then(|delta| delta.text),
            "content_block_start" => read.content_block.and_then(|block| block.text),
            "content_block_stop" => {
                self.end(read.index, out, change)?;
                None
            }
            "message_delta" | "message_stop" => {
                self.end_all(out, change)?;
                None
            }
            _ => None,
        };
        let patch = text.and_then(|raw| self.text(read.index, raw, change));
        let patch = patch.map(|(raw, text)| (range_in(event, raw.get()), text));
        splice::write(event, patch.as_slice(), out)
    }

    /// What takes the place of a text, where it is another.
    fn text<'a>(
        &mut self,
        lane: u64,
        raw: &'a RawValue,
        change: &mut Change<'_>,
    ) -> Option<(&'a RawValue, String)> {
        let text = serde_json::from_str::<Str<'_>>(raw.get()).unwrap_or_default();
        if text.is_empty() {
            return None;
        }
        if !self.0.contains(&lane) {
            self.0.push(lane);
        }
        let changed = change(Piece::Delta { lane, text: &text });
        (changed != *text).then(|| (raw, changed.into_owned()))
    }

    fn end(
        &mut self,
        lane: u64,
        out: &mut Vec<u8>,
        change: &mut Change<'_>,
    ) -> Result<(), DialectError> {
        let Some(at) = self.0.iter().position(|open| *open == lane) else { return Ok(()) };
        self.0.swap_remove(at);
        write_held_back(lane, &end(change, lane), out)
    }

    pub(super) fn end_all(
        &mut self,
        out: &mut Vec<u8>,
        change: &mut Change<'_>,
    ) -> Result<(), DialectError> {
        self.0.drain(..).try_for_each(|lane| write_held_back(lane, &end(change, lane), out))
    }
}

fn write_held_back(lane: u64, text: &str, out: &mut Vec<u8>) -> Result<(), DialectError> {
    if text.is_empty() {
        return Ok(());
    }
    out.extend_from_slice(b"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",");
    out.extend_from_slice(format!("\"index\":{lane},").as_bytes());
    out.extend_from_slice(b"\"delta\":{\"type\":\"text_delta\",\"text\":");
    super::write_json(out, &text)?;
    out.extend_from_slice(b"}}\n\n");
    Ok(())
}
