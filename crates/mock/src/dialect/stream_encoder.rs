//! Encodes a response as a stream of events.

use crate::model_output::{ModelOutput, Section};

/// The content of one event: some tokens of one section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delta<'a> {
    pub(crate) section: Section,
    /// Lower-case letters and blanks, safe in any JSON string; of a tool call: a part of its
    /// arguments as JSON.
    pub(crate) text: &'a [u8],
}

/// The stream events of a dialect. The calls come in this order: `start_stream`, then for each
/// section `start_section`, its deltas and `end_section`, and finally `end_stream`; or `error` at
/// any point after `start_stream`. A dialect without events at a place writes nothing there.
pub(crate) trait StreamEncoder {
    /// Writes the events before all content.
    fn start_stream(&mut self, _output: &ModelOutput, _out: &mut Vec<u8>) {}
    /// Writes the events before a section.
    fn start_section(&mut self, _output: &ModelOutput, _section: Section, _out: &mut Vec<u8>) {}
    /// Writes one content event.
    fn delta(&mut self, _output: &ModelOutput, _delta: Delta<'_>, _out: &mut Vec<u8>) {}
    /// Writes the events after a section.
    fn end_section(&mut self, _output: &ModelOutput, _section: Section, _out: &mut Vec<u8>) {}
    /// Writes the events after all content.
    fn end_stream(&mut self, _output: &ModelOutput, _out: &mut Vec<u8>) {}
    /// Writes an error event.
    fn error(&mut self, _out: &mut Vec<u8>) {}
}

/// Writes nothing, for plans of which only the times are needed.
#[derive(Debug)]
pub(crate) struct SilentEncoder;

impl StreamEncoder for SilentEncoder {}
