//! Translates a stream of OpenAI chat completion chunks to a stream of Anthropic message events.

use serde::Serialize;

use super::finish_reason;
use super::stream_settings::{Progress, StreamSettings};
use crate::dialect::Dialect;
use crate::error::DialectError;
use crate::error_body::ErrorBody;
use crate::usage::Usage;
use crate::wire::openai::{Chunk, ToolDelta};
use crate::wire::{anthropic, openai, parse_response, write_json};

/// The state of a translation between events.
#[derive(Debug)]
pub(super) struct ToAnthropic {
    usage: Usage,
    started: bool,
    /// The open content block.
    open_block: Option<OpenBlock>,
    /// The index of the open block, or else of the next one.
    block_index: u64,
    /// Indices of tool calls whose block has been closed.
    closed_calls: Vec<u64>,
    stop_reason: Option<&'static str>,
    /// Whether `message_delta`, with stop reason and usage, has been written.
    ended: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpenBlock {
    Text,
    /// The tool call of that index.
    ToolCall(u64),
}

impl ToAnthropic {
    pub(super) fn new(settings: StreamSettings) -> Self {
        Self {
            usage: Usage { prompt: settings.prompt_tokens, ..Usage::default() },
            started: false,
            open_block: None,
            block_index: 0,
            closed_calls: Vec::new(),
            stop_reason: None,
            ended: false,
        }
    }

    pub(super) fn translate_event(
        &mut self,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Progress, DialectError> {
        if data.trim_ascii() == b"[DONE]" {
            return self.message_stop(out);
        }
        let chunk: Chunk<'_> = parse_response(data)?;
        if let Some(error) = &chunk.error {
            out.extend_from_slice(b"event: error\ndata: ");
            ErrorBody::from_openai(error, 500).write(Dialect::Anthropic, out);
            out.extend_from_slice(b"\n\n");
            return Ok(Progress::Failed);
        }
        if !self.started {
            self.message_start(&chunk.id, &chunk.model, out)?;
        }
        // Requests for several choices are not translated.
        for choice in chunk.choices.iter().filter(|choice| choice.index == 0) {
            self.delta(&choice.delta, out)?;
            if let Some(reason) = &choice.finish_reason {
                self.stop_block(out)?;
                self.stop_reason = Some(finish_reason::to_anthropic(reason));
            }
        }
        if let Some(usage) = chunk.usage {
            self.usage = usage.into();
            if self.stop_reason.is_some() {
                self.message_delta(out)?;
            }
        }
        Ok(Progress::Open)
    }

    fn message_start(
        &mut self,
        id: &str,
        model: &str,
        out: &mut Vec<u8>,
    ) -> Result<(), DialectError> {
        self.started = true;
        let usage = self.usage.to_anthropic();
        let message = StartedMessage {
            id,
            kind: "message",
            role: "assistant",
            model,
            content: [],
            stop_reason: None,
            stop_sequence: None,
            usage,
        };
        write(out, "message_start", &MessageStart { kind: "message_start", message })
    }

    fn delta(&mut self, delta: &openai::Delta<'_>, out: &mut Vec<u8>) -> Result<(), DialectError> {
        for text in [&delta.content, &delta.refusal].into_iter().flatten() {
            if !text.is_empty() {
                self.text(text, out)?;
            }
        }
        delta.tool_calls.iter().flatten().try_for_each(|call| self.tool_call(call, out))
    }

    fn text(&mut self, text: &str, out: &mut Vec<u8>) -> Result<(), DialectError> {
        if self.open_block != Some(OpenBlock::Text) {
            self.start_block(OpenBlock::Text, &NewBlock::Text { text: "" }, out)?;
        }
        self.write_delta(&Delta::TextDelta { text }, out)
    }

    fn tool_call(&mut self, call: &ToolDelta<'_>, out: &mut Vec<u8>) -> Result<(), DialectError> {
        if self.closed_calls.contains(&call.index) {
            let problem = "it continues a tool call after another one has started";
            return Err(DialectError::InvalidResponse(problem.to_owned()));
        }
        let function = call.function.as_ref();
        if self.open_block != Some(OpenBlock::ToolCall(call.index)) {
            let name = function.and_then(|function| function.name.as_deref()).unwrap_or_default();
            let id = call.id.as_deref().unwrap_or_default();
            let block = NewBlock::ToolUse { id, name, input: Empty {} };
            self.start_block(OpenBlock::ToolCall(call.index), &block, out)?;
        }
        match function.and_then(|function| function.arguments.as_deref()) {
            Some(partial_json) if !partial_json.is_empty() => {
                self.write_delta(&Delta::InputJsonDelta { partial_json }, out)
            }
            _ => Ok(()),
        }
    }

    fn start_block(
        &mut self,
        block: OpenBlock,
        content_block: &NewBlock<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), DialectError> {
        self.stop_block(out)?;
        self.open_block = Some(block);
        let index = self.block_index;
        let kind = "content_block_start";
        write(out, kind, &BlockStart { kind, index, content_block })
    }

    fn stop_block(&mut self, out: &mut Vec<u8>) -> Result<(), DialectError> {
        let Some(open) = self.open_block.take() else { return Ok(()) };
        if let OpenBlock::ToolCall(index) = open {
            self.closed_calls.push(index);
        }
        let index = self.block_index;
        self.block_index += 1;
        write(out, "content_block_stop", &BlockStop { kind: "content_block_stop", index })
    }

    fn write_delta(&self, delta: &Delta<'_>, out: &mut Vec<u8>) -> Result<(), DialectError> {
        let kind = "content_block_delta";
        write(out, kind, &BlockDelta { kind, index: self.block_index, delta })
    }

    /// Writes the stop reason and the usage, as soon as the usage arrives or at the end.
    fn message_delta(&mut self, out: &mut Vec<u8>) -> Result<(), DialectError> {
        if self.ended {
            return Ok(());
        }
        self.ended = true;
        let delta =
            StopReason { stop_reason: self.stop_reason.unwrap_or("end_turn"), stop_sequence: None };
        let kind = "message_delta";
        write(out, kind, &MessageDelta { kind, delta, usage: self.usage.to_anthropic() })
    }

    fn message_stop(&mut self, out: &mut Vec<u8>) -> Result<Progress, DialectError> {
        if !self.started {
            self.message_start("", "", out)?;
        }
        self.stop_block(out)?;
        self.message_delta(out)?;
        write(out, "message_stop", &MessageStop { kind: "message_stop" })?;
        Ok(Progress::Finished)
    }
}

fn write<T: Serialize>(out: &mut Vec<u8>, name: &str, event: &T) -> Result<(), DialectError> {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\ndata: ");
    write_json(out, event)?;
    out.extend_from_slice(b"\n\n");
    Ok(())
}

#[derive(Serialize)]
struct MessageStart<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    message: StartedMessage<'a>,
}

#[derive(Serialize)]
struct StartedMessage<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    role: &'a str,
    model: &'a str,
    content: [(); 0],
    stop_reason: Option<&'a str>,
    stop_sequence: Option<&'a str>,
    usage: anthropic::Usage,
}

#[derive(Serialize)]
struct BlockStart<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    index: u64,
    content_block: &'a NewBlock<'a>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum NewBlock<'a> {
    Text { text: &'a str },
    ToolUse { id: &'a str, name: &'a str, input: Empty },
}

#[derive(Serialize)]
struct Empty {}

#[derive(Serialize)]
struct BlockDelta<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    index: u64,
    delta: &'a Delta<'a>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Delta<'a> {
    TextDelta { text: &'a str },
    InputJsonDelta { partial_json: &'a str },
}

#[derive(Serialize)]
struct BlockStop<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    index: u64,
}

#[derive(Serialize)]
struct MessageDelta<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    delta: StopReason<'a>,
    usage: anthropic::Usage,
}

#[derive(Serialize)]
struct StopReason<'a> {
    stop_reason: &'a str,
    stop_sequence: Option<&'a str>,
}

#[derive(Serialize)]
struct MessageStop<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
}
