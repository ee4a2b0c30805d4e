//! Encodes a response as a stream of events.

use crate::model_output::{ContentKind, ModelOutput};

/// The content of one event: some words of one section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delta<'a> {
    pub(crate) kind: ContentKind,
    /// Whether it is the first of its section.
    pub(crate) first: bool,
    /// Whether it is the last of its section.
    pub(crate) last: bool,
    /// Lower-case letters and blanks: safe in any JSON string.
    pub(crate) text: &'a [u8],
}

/// The stream events of a dialect. The calls come in this order: `start_stream`, then for each
/// section `start_section`, its deltas and `end_section`, and finally `end_stream`; or `error` at
/// any point after `start_stream`.
pub(crate) trait StreamEncoder {
    /// Writes the events before all content.
    fn start_stream(&mut self, output: &ModelOutput, out: &mut Vec<u8>);
    /// Writes the events before a section.
    fn start_section(&mut self, output: &ModelOutput, kind: ContentKind, out: &mut Vec<u8>);
    /// Writes one content event.
    fn delta(&mut self, output: &ModelOutput, delta: Delta<'_>, out: &mut Vec<u8>);
    /// Writes the events after a section.
    fn end_section(&mut self, output: &ModelOutput, kind: ContentKind, out: &mut Vec<u8>);
    /// Writes the events after all content.
    fn end_stream(&mut self, output: &ModelOutput, out: &mut Vec<u8>);
    /// Writes an error event.
    fn error(&mut self, out: &mut Vec<u8>);
}

/// Writes nothing, for plans of which only the times are needed.
#[derive(Debug)]
pub(crate) struct SilentEncoder;

impl StreamEncoder for SilentEncoder {
    fn start_stream(&mut self, _: &ModelOutput, _: &mut Vec<u8>) {}
    fn start_section(&mut self, _: &ModelOutput, _: ContentKind, _: &mut Vec<u8>) {}
    fn delta(&mut self, _: &ModelOutput, _: Delta<'_>, _: &mut Vec<u8>) {}
    fn end_section(&mut self, _: &ModelOutput, _: ContentKind, _: &mut Vec<u8>) {}
    fn end_stream(&mut self, _: &ModelOutput, _: &mut Vec<u8>) {}
    fn error(&mut self, _: &mut Vec<u8>) {}
}
