//! Translates a stream of messages to a stream of chat completion chunks.

use serde::Serialize;
use serde_json::{Value, json};

use super::stream::{Progress, StreamSettings};
use super::{finish_reason, missing_id};
use crate::dialect::Dialect;
use crate::error::DialectError;
use crate::error_body::{ErrorBody, ErrorKind};
use crate::usage::Usage;
use crate::wire::anthropic::{AnswerBlock, MessageStart, StreamEvent};
use crate::wire::{parse_response, write_json};

/// The state between events.
#[derive(Debug, Default)]
pub(super) struct ToOpenAi {
    settings: StreamSettings,
    id: String,
    model: String,
    usage: Usage,
    /// The blocks of tool calls; the position is the index of the call.
    tool_blocks: Vec<ToolBlock>,
    /// Whether the finish reason has been written.
    ended: bool,
}

/// The block of a tool call.
#[derive(Debug)]
struct ToolBlock {
    /// Its index, which some servers give to several blocks.
    index: u64,
    has_arguments: bool,
}

impl ToOpenAi {
    pub(super) fn new(settings: StreamSettings) -> Self {
        Self { settings, ..Self::default() }
    }

    pub(super) fn translate_event(
        &mut self,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Progress, DialectError> {
        let event: StreamEvent<'_> = parse_response(data)?;
        match &*event.kind {
            "message_start" => self.start(event.message.as_ref(), out),
            "content_block_start" => self.block(event.index, event.content_block, out),
            "content_block_delta" => self.delta(&event, out),
            "content_block_stop" => {
                if let Some(at) = self.last_block(event.index) {
                    self.complete_arguments(at, out);
                }
            }
            "message_delta" => self.message_delta(&event, out),
            "message_stop" => return Ok(self.stop(out)),
            "ping" => out.extend_from_slice(b": ping\n\n"),
            "error" => {
                let error = match &event.error {
                    Some(error) => ErrorBody::from_json(error, 500),
                    None => ErrorBody::new(ErrorKind::Server, "the upstream's stream failed"),
                };
                write_error(&error, out);
                return Ok(Progress::Failed);
            }
            // Unknown types, which the format asks clients to ignore
            _ => {}
        }
        Ok(Progress::Open)
    }

    fn start(&mut self, started: Option<&MessageStart<'_>>, out: &mut Vec<u8>) {
        if let Some(started) = started {
            started.id.0.as_ref().clone_into(&mut self.id);
            started.model.0.as_ref().clone_into(&mut self.model);
            self.usage.update(started.usage);
        }
        self.write(&json!({"role": "assistant", "content": ""}), None, out);
    }

    fn block(&mut self, index: u64, block: Option<AnswerBlock<'_>>, out: &mut Vec<u8>) {
        let Some(block) = block else { return };
        match (&*block.kind, block.text.as_deref()) {
            ("tool_use", _) => {
                let at = self.tool_blocks.len();
                let input = block.input.as_deref().unwrap_or_default();
                let arguments = if input == "{}" { "" } else { input };
                let has_arguments = !arguments.trim().is_empty();
                self.tool_blocks.push(ToolBlock { index, has_arguments });
                let name = block.name.as_deref().unwrap_or_default();
                let id = block.id.unwrap_or_else(|| missing_id(at).into());
                let function = json!({"name": name, "arguments": arguments});
                let call = json!({"index": at, "id": id, "type": "function", "function": function});
                self.write(&json!({"tool_calls": [call]}), None, out);
            }
            ("text", Some(text)) if !text.is_empty() => self.text(text, out),
            _ => {}
        }
    }

    fn delta(&mut self, event: &StreamEvent<'_>, out: &mut Vec<u8>) {
        let Some(delta) = &event.delta else { return };
        match (delta.text.as_deref(), delta.partial_json.as_deref()) {
            (Some(text), _) => self.text(text, out),
            (None, Some(arguments)) if !arguments.is_empty() => {
                // Tools run by the provider have blocks of other types.
                if let Some(at) = self.last_block(event.index) {
                    self.arguments(at, arguments, out);
                }
            }
            _ => {}
        }
    }

    /// The position of the last tool call with a block of that index.
    fn last_block(&self, index: u64) -> Option<usize> {
        self.tool_blocks.iter().rposition(|block| block.index == index)
    }

    fn arguments(&mut self, index: usize, arguments: &str, out: &mut Vec<u8>) {
        if let Some(block) = self.tool_blocks.get_mut(index) {
            block.has_arguments = true;
        }
        let call = json!({"index": index, "function": {"arguments": arguments}});
        self.write(&json!({"tool_calls": [call]}), None, out);
    }

    /// Clients parse the arguments as JSON, so a call without any has `{}`.
    fn complete_arguments(&mut self, at: usize, out: &mut Vec<u8>) {
        if self.tool_blocks.get(at).is_some_and(|block| !block.has_arguments) {
            self.arguments(at, "{}", out);
        }
    }

    fn text(&self, text: &str, out: &mut Vec<u8>) {
        self.write(&TextDelta { content: text }, None, out);
    }

    fn message_delta(&mut self, event: &StreamEvent<'_>, out: &mut Vec<u8>) {
        if let Some(usage) = event.usage {
            self.usage.update(usage);
        }
        let reason = event.delta.as_ref().and_then(|delta| delta.stop_reason.as_deref());
        if let Some(reason) = reason {
            self.end_choice(reason, out);
        }
    }

    fn end_choice(&mut self, reason: &str, out: &mut Vec<u8>) {
        for at in 0..self.tool_blocks.len() {
            self.complete_arguments(at, out);
        }
        self.ended = true;
        let has_calls = !self.tool_blocks.is_empty();
        self.write(&json!({}), Some(finish_reason::to_openai(reason, has_calls)), out);
    }

    /// Ends an answer whose finish reason was written; the usage came with it.
    pub(super) fn end(&mut self, out: &mut Vec<u8>) -> Progress {
        if self.ended { self.stop(out) } else { Progress::Open }
    }

    fn stop(&mut self, out: &mut Vec<u8>) -> Progress {
        if !self.ended {
            self.end_choice("", out);
        }
        if self.settings.include_usage {
            self.write_chunk::<()>(&[], Some(json!(self.usage.to_openai())), out);
        }
        out.extend_from_slice(b"data: [DONE]\n\n");
        Progress::Finished
    }

    fn write<D: Serialize>(&self, delta: &D, finish_reason: Option<&str>, out: &mut Vec<u8>) {
        let choice = Choice { index: 0, delta, logprobs: None, finish_reason };
        self.write_chunk(&[choice], self.settings.include_usage.then_some(Value::Null), out);
    }

    /// Writes a chunk. If the caller asks for usage, it is null in every chunk but the last.
    fn write_chunk<D: Serialize>(
        &self,
        choices: &[Choice<'_, D>],
        usage: Option<Value>,
        out: &mut Vec<u8>,
    ) {
        let Self { settings, id, model, .. } = self;
        let object = "chat.completion.chunk";
        out.extend_from_slice(b"data: ");
        write_json(out, &Chunk { id, object, created: settings.created, model, choices, usage });
        out.extend_from_slice(b"\n\n");
    }
}

/// Appends an error event.
pub(super) fn write_error(error: &ErrorBody, out: &mut Vec<u8>) {
    out.extend_from_slice(b"data: ");
    error.write(Dialect::OpenAi, out);
    out.extend_from_slice(b"\n\n");
}

#[derive(Serialize)]
struct Chunk<'a, D> {
    id: &'a str,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: &'a [Choice<'a, D>],
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Value>,
}

#[derive(Serialize)]
struct Choice<'a, D> {
    index: u64,
    delta: &'a D,
    logprobs: Option<()>,
    finish_reason: Option<&'a str>,
}

#[derive(Serialize)]
struct TextDelta<'a> {
    content: &'a str,
}
