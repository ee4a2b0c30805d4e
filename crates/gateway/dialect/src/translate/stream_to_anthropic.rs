//! Translates a stream of OpenAI chat completion chunks to a stream of Anthropic message events.

use serde::Serialize;
use serde_json::{Value, json};

use super::stream::{Progress, StreamSettings};
use super::{CallState, ToolCalls, finish_reason};
use crate::dialect::Dialect;
use crate::error::DialectError;
use crate::error_body::{ErrorBody, ErrorKind};
use crate::usage::Usage;
use crate::wire::openai::{Answer, ToolDelta};
use crate::wire::{Typed, openai, parse_response, write_json};

/// The state of a translation between events.
#[derive(Debug, Default)]
pub(super) struct ToAnthropic {
    /// Reported until the upstream sends its usage.
    estimate: Usage,
    told: Option<Usage>,
    started: bool,
    /// The open content block.
    open_block: Option<OpenBlock>,
    /// The index of the open block, or else of the next one.
    block_index: u64,
    calls: ToolCalls,
    /// Text that arrived during an incomplete call: blocks must follow one another.
    late_text: String,
    stop_reason: Option<&'static str>,
    /// Whether `message_delta`, with stop reason and usage, has been written.
    ended: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpenBlock {
    Text,
    /// The tool call at that position.
    ToolCall(usize),
}

impl ToAnthropic {
    pub(super) fn new(settings: StreamSettings) -> Self {
        let estimate = Usage { prompt: settings.prompt_tokens, ..Usage::default() };
        Self { estimate, ..Self::default() }
    }

    pub(super) fn translate_event(
        &mut self,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Progress, DialectError> {
        if data.trim_ascii() == b"[DONE]" {
            return Ok(self.message_stop(out));
        }
        let chunk: Answer<'_> = parse_response(data)?;
        if let Some(error) = reported_error(&chunk) {
            write_error(&error, out);
            return Ok(Progress::Failed);
        }
        if !self.started {
            self.message_start(&chunk.id, &chunk.model, out);
        }
        // Requests for several choices are not translated.
        for choice in chunk.choices.iter().filter(|choice| choice.index == 0) {
            self.delta(&choice.delta, out)?;
            if let Some(reason) = &choice.finish_reason {
                self.finish_blocks(out);
                let has_calls = !self.calls.0.is_empty();
                self.stop_reason = Some(finish_reason::to_anthropic(reason, has_calls));
            }
        }
        if let Some(usage) = chunk.usage {
            self.told = Some(usage.into());
            // Usage beside a choice is preliminary: some servers send it with every chunk, and the
            // total after the last.
            if self.stop_reason.is_some() && chunk.choices.is_empty() {
                self.message_delta(out);
            }
        }
        Ok(Progress::Open)
    }

    fn message_start(&mut self, id: &str, model: &str, out: &mut Vec<u8>) {
        self.started = true;
        let message = json!({
            "id": id,
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [],
            "stop_reason": null,
            "stop_sequence": null,
            "usage": self.usage().to_anthropic(),
        });
        write(out, "message_start", json!({"message": message}));
    }

    fn delta(&mut self, delta: &openai::Delta<'_>, out: &mut Vec<u8>) -> Result<(), DialectError> {
        for text in [&delta.content, &delta.refusal].into_iter().flatten() {
            if !text.is_empty() {
                self.text(text, out);
            }
        }
        delta.tool_calls.iter().try_for_each(|call| self.tool_call(call, out))
    }

    fn text(&mut self, text: &str, out: &mut Vec<u8>) {
        if self.has_incomplete_call() {
            self.late_text.push_str(text);
            return;
        }
        if self.open_block != Some(OpenBlock::Text) {
            self.start_block(OpenBlock::Text, &json!({"type": "text", "text": ""}), out);
        }
        self.write_delta(Delta::TextDelta { text }, out);
    }

    /// Writes a tool call, or holds it while another one is incomplete: servers may interleave the
    /// calls of an answer, but blocks must follow one another.
    fn tool_call(&mut self, delta: &ToolDelta<'_>, out: &mut Vec<u8>) -> Result<(), DialectError> {
        let at = self.calls.add(delta);
        if self.open_block == Some(OpenBlock::ToolCall(at)) {
            self.write_arguments(at, out);
        }
        while !self.has_incomplete_call()
            && let Some(next) = self.calls.first_waiting()
        {
            self.start_call(next, out);
        }
        let Some(call) = self.calls.0.get(at) else { return Ok(()) };
        if call.state == CallState::Closed && !call.waiting.trim().is_empty() {
            let problem = "it continues a tool call that was complete";
            return Err(DialectError::InvalidResponse(problem.to_owned()));
        }
        Ok(())
    }

    fn has_incomplete_call(&self) -> bool {
        matches!(self.open_block, Some(OpenBlock::ToolCall(at)) if !self.calls.is_complete(at))
    }

    fn start_call(&mut self, at: usize, out: &mut Vec<u8>) {
        let Some(call) = self.calls.0.get_mut(at) else { return };
        call.state = CallState::Open;
        let block = json!({"type": "tool_use", "id": call.id, "name": call.name, "input": {}});
        self.start_block(OpenBlock::ToolCall(at), &block, out);
        self.write_arguments(at, out);
    }

    /// Writes the held arguments.
    fn write_arguments(&mut self, at: usize, out: &mut Vec<u8>) {
        let Some(call) = self.calls.0.get_mut(at) else { return };
        let arguments = std::mem::take(&mut call.waiting);
        if !arguments.is_empty() {
            self.write_delta(Delta::InputJsonDelta { partial_json: &arguments }, out);
        }
    }

    /// Writes everything held, and ends the last block.
    fn finish_blocks(&mut self, out: &mut Vec<u8>) {
        while let Some(next) = self.calls.first_waiting() {
            self.start_call(next, out);
        }
        self.stop_block(out);
        let text = std::mem::take(&mut self.late_text);
        if !text.is_empty() {
            self.text(&text, out);
        }
        self.stop_block(out);
    }

    /// The held bytes.
    pub(super) fn buffered(&self) -> usize {
        let waiting: usize = self.calls.0.iter().map(|call| call.waiting.len()).sum();
        waiting + self.late_text.len()
    }

    fn start_block(&mut self, block: OpenBlock, content_block: &Value, out: &mut Vec<u8>) {
        self.stop_block(out);
        self.open_block = Some(block);
        let event = json!({"index": self.block_index, "content_block": content_block});
        write(out, "content_block_start", event);
    }

    fn stop_block(&mut self, out: &mut Vec<u8>) {
        let Some(open) = self.open_block.take() else { return };
        if let OpenBlock::ToolCall(at) = open
            && let Some(call) = self.calls.0.get_mut(at)
        {
            call.state = CallState::Closed;
        }
        write(out, "content_block_stop", json!({"index": self.block_index}));
        self.block_index += 1;
    }

    fn write_delta(&self, delta: Delta<'_>, out: &mut Vec<u8>) {
        write(out, "content_block_delta", BlockDelta { index: self.block_index, delta });
    }

    fn usage(&self) -> Usage {
        self.told.unwrap_or(self.estimate)
    }

    /// Writes the stop reason and the usage, once all usage has arrived or at the end.
    fn message_delta(&mut self, out: &mut Vec<u8>) {
        if self.ended {
            return;
        }
        self.ended = true;
        let has_calls = !self.calls.0.is_empty();
        let stop_reason =
            self.stop_reason.unwrap_or_else(|| finish_reason::to_anthropic("", has_calls));
        let delta = json!({"stop_reason": stop_reason, "stop_sequence": null});
        let usage = self.usage().to_anthropic();
        write(out, "message_delta", json!({"delta": delta, "usage": usage}));
    }

    /// Ends an answer whose finish reason and usage have arrived.
    pub(super) fn end(&mut self, out: &mut Vec<u8>) -> Progress {
        let is_whole = self.stop_reason.is_some() && self.told.is_some();
        if is_whole { self.message_stop(out) } else { Progress::Open }
    }

    fn message_stop(&mut self, out: &mut Vec<u8>) -> Progress {
        if !self.started {
            self.message_start("", "", out);
        }
        self.finish_blocks(out);
        self.message_delta(out);
        write(out, "message_stop", json!({}));
        Progress::Finished
    }
}

/// The error of an event, if it reports one.
fn reported_error(event: &Answer<'_>) -> Option<ErrorBody> {
    match (&event.error, &event.message) {
        (Some(error), _) => Some(ErrorBody::from_json(error, 500)),
        (None, Some(message)) if &*event.object == "error" => {
            Some(ErrorBody::new(ErrorKind::Server, &**message))
        }
        _ => None,
    }
}

/// Appends an error event.
pub(super) fn write_error(error: &ErrorBody, out: &mut Vec<u8>) {
    out.extend_from_slice(b"event: error\ndata: ");
    error.write(Dialect::Anthropic, out);
    out.extend_from_slice(b"\n\n");
}

/// Appends an event. Its name is its type.
fn write<T: Serialize>(out: &mut Vec<u8>, kind: &str, members: T) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b"\ndata: ");
    write_json(out, &Typed { kind, members });
    out.extend_from_slice(b"\n\n");
}

/// The event of every token, so it is written without a [`Value`].
#[derive(Serialize)]
struct BlockDelta<'a> {
    index: u64,
    delta: Delta<'a>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Delta<'a> {
    TextDelta { text: &'a str },
    InputJsonDelta { partial_json: &'a str },
}
