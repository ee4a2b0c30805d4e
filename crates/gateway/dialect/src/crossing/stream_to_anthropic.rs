//! Chat completion chunks, said as a stream of messages.

use serde::Serialize;

use super::reason;
use super::stream::{State, StreamSettings};
use crate::dialect::Dialect;
use crate::envelope::Envelope;
use crate::error::DialectError;
use crate::usage::Usage;
use crate::wire::openai::{Chunk, Delta, ToolDelta};
use crate::wire::{anthropic, read_answer, write_json};

/// What must be remembered between events.
#[derive(Debug)]
pub(super) struct ToAnthropic {
    usage: Usage,
    started: bool,
    /// The block that is open, and the index that the next one gets.
    open: Option<Open>,
    next_block: u64,
    /// Indices of tool calls whose block has been closed.
    closed_calls: Vec<u64>,
    reason: Option<&'static str>,
    /// `message_delta`, which says the reason and the usage, has been written.
    ended: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    Text,
    /// The tool call of that index.
    Call(u64),
}

impl ToAnthropic {
    pub(super) fn new(settings: StreamSettings) -> Self {
        Self {
            usage: Usage { prompt: settings.prompt_tokens, ..Usage::default() },
            started: false,
            open: None,
            next_block: 0,
            closed_calls: Vec::new(),
            reason: None,
            ended: false,
        }
    }

    pub(super) fn event(&mut self, data: &[u8], out: &mut Vec<u8>) -> Result<State, DialectError> {
        if data.trim_ascii() == b"[DONE]" {
            return self.done(out);
        }
        let chunk: Chunk<'_> = read_answer(data)?;
        if let Some(failure) = &chunk.error {
            out.extend_from_slice(b"event: error\ndata: ");
            Envelope::of_openai(failure, 500).write(Dialect::Anthropic, out);
            out.extend_from_slice(b"\n\n");
            return Ok(State::Failed);
        }
        if !self.started {
            self.start(&chunk.id, &chunk.model, out)?;
        }
        // Requests for several choices do not cross.
        for choice in chunk.choices.iter().filter(|choice| choice.index == 0) {
            self.delta(&choice.delta, out)?;
            if let Some(reason) = &choice.finish_reason {
                self.close(out)?;
                self.reason = Some(reason::to_anthropic(reason));
            }
        }
        if let Some(usage) = chunk.usage {
            self.usage = usage.into();
            if self.reason.is_some() {
                self.end(out)?;
            }
        }
        Ok(State::Open)
    }

    fn start(&mut self, id: &str, model: &str, out: &mut Vec<u8>) -> Result<(), DialectError> {
        self.started = true;
        let usage = self.usage.anthropic();
        let message = Started {
            id,
            kind: "message",
            role: "assistant",
            model,
            content: [],
            stop_reason: None,
            stop_sequence: None,
            usage,
        };
        write(out, "message_start", &Message { kind: "message_start", message })
    }

    fn delta(&mut self, delta: &Delta<'_>, out: &mut Vec<u8>) -> Result<(), DialectError> {
        for text in [&delta.content, &delta.refusal].into_iter().flatten() {
            if !text.is_empty() {
                self.text(text, out)?;
            }
        }
        delta.tool_calls.iter().flatten().try_for_each(|call| self.call(call, out))
    }

    fn text(&mut self, text: &str, out: &mut Vec<u8>) -> Result<(), DialectError> {
        if self.open != Some(Open::Text) {
            self.open(Open::Text, &NewBlock::Text { text: "" }, out)?;
        }
        self.write_delta(&Piece::TextDelta { text }, out)
    }

    fn call(&mut self, call: &ToolDelta<'_>, out: &mut Vec<u8>) -> Result<(), DialectError> {
        if self.closed_calls.contains(&call.index) {
            let problem = "it goes back to a tool call that another one had followed";
            return Err(DialectError::Answer(problem.to_owned()));
        }
        let function = call.function.as_ref();
        if self.open != Some(Open::Call(call.index)) {
            let name = function.and_then(|function| function.name.as_deref()).unwrap_or_default();
            let id = call.id.as_deref().unwrap_or_default();
            let block = NewBlock::ToolUse { id, name, input: Empty {} };
            self.open(Open::Call(call.index), &block, out)?;
        }
        match function.and_then(|function| function.arguments.as_deref()) {
            Some(partial_json) if !partial_json.is_empty() => {
                self.write_delta(&Piece::InputJsonDelta { partial_json }, out)
            }
            _ => Ok(()),
        }
    }

    fn open(
        &mut self,
        open: Open,
        content_block: &NewBlock<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), DialectError> {
        self.close(out)?;
        self.open = Some(open);
        let index = self.next_block;
        let kind = "content_block_start";
        write(out, kind, &BlockStart { kind, index, content_block })
    }

    fn close(&mut self, out: &mut Vec<u8>) -> Result<(), DialectError> {
        let Some(open) = self.open.take() else { return Ok(()) };
        if let Open::Call(index) = open {
            self.closed_calls.push(index);
        }
        let index = self.next_block;
        self.next_block += 1;
        write(out, "content_block_stop", &BlockStop { kind: "content_block_stop", index })
    }

    fn write_delta(&self, delta: &Piece<'_>, out: &mut Vec<u8>) -> Result<(), DialectError> {
        let kind = "content_block_delta";
        write(out, kind, &BlockDelta { kind, index: self.next_block, delta })
    }

    /// Says why the answer ended, and the usage: when the latter comes, or else at the very end.
    fn end(&mut self, out: &mut Vec<u8>) -> Result<(), DialectError> {
        if self.ended {
            return Ok(());
        }
        self.ended = true;
        let delta = Ending { stop_reason: self.reason.unwrap_or("end_turn"), stop_sequence: None };
        let kind = "message_delta";
        write(out, kind, &MessageDelta { kind, delta, usage: self.usage.anthropic() })
    }

    fn done(&mut self, out: &mut Vec<u8>) -> Result<State, DialectError> {
        if !self.started {
            self.start("", "", out)?;
        }
        self.close(out)?;
        self.end(out)?;
        write(out, "message_stop", &MessageStop { kind: "message_stop" })?;
        Ok(State::Finished)
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
struct Message<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    message: Started<'a>,
}

#[derive(Serialize)]
struct Started<'a> {
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
    delta: &'a Piece<'a>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Piece<'a> {
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
    delta: Ending<'a>,
    usage: anthropic::Usage,
}

#[derive(Serialize)]
struct Ending<'a> {
    stop_reason: &'a str,
    stop_sequence: Option<&'a str>,
}

#[derive(Serialize)]
struct MessageStop<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
}
