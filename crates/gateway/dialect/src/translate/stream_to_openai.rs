//! Translates a stream of messages to a stream of chat completion chunks.

use serde::Serialize;
use serde_with::skip_serializing_none;

use super::stream_settings::{Progress, StreamSettings};
use super::{finish_reason, missing_id};
use crate::dialect::Dialect;
use crate::error::DialectError;
use crate::error_body::{ErrorBody, ErrorKind};
use crate::usage::Usage;
use crate::wire::anthropic::{AnswerBlock, MessageStart, StreamEvent};
use crate::wire::{openai, parse_response, write_json};

/// The state between events.
#[derive(Debug)]
pub(super) struct ToOpenAi {
    settings: StreamSettings,
    id: String,
    model: String,
    usage: Usage,
    /// The blocks of tool calls; the position is the index of the call.
    tool_blocks: Vec<ToolBlock>,
    /// Whether the reason of the end has been written.
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
        let (id, model) = (String::new(), String::new());
        Self { settings, id, model, usage: Usage::default(), tool_blocks: Vec::new(), ended: false }
    }

    pub(super) fn translate_event(
        &mut self,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Progress, DialectError> {
        let event: StreamEvent<'_> = parse_response(data)?;
        match &*event.kind {
            "message_start" => self.start(event.message.as_ref(), out)?,
            "content_block_start" => self.block(event.index, event.content_block, out)?,
            "content_block_delta" => self.delta(&event, out)?,
            "content_block_stop" => {
                if let Some(at) = self.last_block(event.index) {
                    self.complete_arguments(at, out)?;
                }
            }
            "message_delta" => self.message_delta(&event, out)?,
            "message_stop" => return self.stop(out),
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

    fn start(
        &mut self,
        started: Option<&MessageStart<'_>>,
        out: &mut Vec<u8>,
    ) -> Result<(), DialectError> {
        if let Some(started) = started {
            started.id.0.as_ref().clone_into(&mut self.id);
            started.model.0.as_ref().clone_into(&mut self.model);
            self.usage.update(started.usage);
        }
        let delta = Delta { role: Some("assistant"), content: Some(""), ..Delta::default() };
        self.write(delta, None, out)
    }

    fn block(
        &mut self,
        index: u64,
        block: Option<AnswerBlock<'_>>,
        out: &mut Vec<u8>,
    ) -> Result<(), DialectError> {
        let Some(block) = block else { return Ok(()) };
        match (&*block.kind, block.text.as_deref()) {
            ("tool_use", _) => {
                let at = self.tool_blocks.len();
                let input = block.input.as_deref().unwrap_or_default();
                let arguments = if input == "{}" { "" } else { input };
                let has_arguments = !arguments.trim().is_empty();
                self.tool_blocks.push(ToolBlock { index, has_arguments });
                let name = Some(block.name.as_deref().unwrap_or_default());
                let id = block.id.unwrap_or_else(|| missing_id(at).into());
                let call = ToolDelta {
                    index: at,
                    id: Some(&id),
                    kind: Some("function"),
                    function: FunctionCallDelta { name, arguments },
                };
                self.write(Delta { tool_calls: Some([call]), ..Delta::default() }, None, out)
            }
            ("text", Some(text)) if !text.is_empty() => self.text(text, out),
            _ => Ok(()),
        }
    }

    fn delta(&mut self, event: &StreamEvent<'_>, out: &mut Vec<u8>) -> Result<(), DialectError> {
        let Some(delta) = &event.delta else { return Ok(()) };
        match (delta.text.as_deref(), delta.partial_json.as_deref()) {
            (Some(text), _) => self.text(text, out),
            (None, Some(arguments)) if !arguments.is_empty() => {
                // Tools that run at the provider have blocks of other types.
                let Some(at) = self.last_block(event.index) else { return Ok(()) };
                self.arguments(at, arguments, out)
            }
            _ => Ok(()),
        }
    }

    /// The position of the last tool call with a block of that index.
    fn last_block(&self, index: u64) -> Option<usize> {
        self.tool_blocks.iter().rposition(|block| block.index == index)
    }

    fn arguments(
        &mut self,
        index: usize,
        arguments: &str,
        out: &mut Vec<u8>,
    ) -> Result<(), DialectError> {
        if let Some(block) = self.tool_blocks.get_mut(index) {
            block.has_arguments = true;
        }
        let function = FunctionCallDelta { name: None, arguments };
        let call = ToolDelta { index, id: None, kind: None, function };
        self.write(Delta { tool_calls: Some([call]), ..Delta::default() }, None, out)
    }

    /// Clients parse the arguments as JSON, so a call without any has `{}`.
    fn complete_arguments(&mut self, at: usize, out: &mut Vec<u8>) -> Result<(), DialectError> {
        match self.tool_blocks.get(at) {
            Some(block) if !block.has_arguments => self.arguments(at, "{}", out),
            _ => Ok(()),
        }
    }

    fn text(&self, text: &str, out: &mut Vec<u8>) -> Result<(), DialectError> {
        self.write(Delta { content: Some(text), ..Delta::default() }, None, out)
    }

    fn message_delta(
        &mut self,
        event: &StreamEvent<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), DialectError> {
        if let Some(usage) = event.usage {
            self.usage.update(usage);
        }
        let reason = event.delta.as_ref().and_then(|delta| delta.stop_reason.as_deref());
        let Some(reason) = reason else { return Ok(()) };
        self.end_choice(reason, out)
    }

    fn end_choice(&mut self, reason: &str, out: &mut Vec<u8>) -> Result<(), DialectError> {
        for at in 0..self.tool_blocks.len() {
            self.complete_arguments(at, out)?;
        }
        self.ended = true;
        let has_calls = !self.tool_blocks.is_empty();
        self.write(Delta::default(), Some(finish_reason::to_openai(reason, has_calls)), out)
    }

    /// Ends an answer whose reason was written; its usage came with it.
    pub(super) fn end(&mut self, out: &mut Vec<u8>) -> Result<Progress, DialectError> {
        if self.ended { self.stop(out) } else { Ok(Progress::Open) }
    }

    fn stop(&mut self, out: &mut Vec<u8>) -> Result<Progress, DialectError> {
        if !self.ended {
            self.end_choice("", out)?;
        }
        if self.settings.include_usage {
            let usage = UsageMember::Reported(self.usage.to_openai());
            self.write_chunk(Vec::new(), usage, out)?;
        }
        out.extend_from_slice(b"data: [DONE]\n\n");
        Ok(Progress::Finished)
    }

    fn write(
        &self,
        delta: Delta<'_>,
        finish_reason: Option<&str>,
        out: &mut Vec<u8>,
    ) -> Result<(), DialectError> {
        let choice = Choice { index: 0, delta, logprobs: None, finish_reason };
        let wanted = self.settings.include_usage;
        let usage = if wanted { UsageMember::Null } else { UsageMember::Absent };
        self.write_chunk(vec![choice], usage, out)
    }

    fn write_chunk(
        &self,
        choices: Vec<Choice<'_>>,
        usage: UsageMember,
        out: &mut Vec<u8>,
    ) -> Result<(), DialectError> {
        let Self { settings, id, model, .. } = self;
        let object = "chat.completion.chunk";
        out.extend_from_slice(b"data: ");
        write_json(out, &Chunk { id, object, created: settings.created, model, choices, usage })?;
        out.extend_from_slice(b"\n\n");
        Ok(())
    }
}

/// Appends an error event.
pub(super) fn write_error(error: &ErrorBody, out: &mut Vec<u8>) {
    out.extend_from_slice(b"data: ");
    error.write(Dialect::OpenAi, out);
    out.extend_from_slice(b"\n\n");
}

#[derive(Serialize)]
struct Chunk<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: Vec<Choice<'a>>,
    #[serde(skip_serializing_if = "UsageMember::is_absent")]
    usage: UsageMember,
}

/// `usage` of a chunk. If the caller asks for usage, it is null in every chunk but the last.
#[derive(Serialize)]
#[serde(untagged)]
enum UsageMember {
    Absent,
    Null,
    Reported(openai::Usage),
}

impl UsageMember {
    const fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}

#[derive(Serialize)]
struct Choice<'a> {
    index: u64,
    delta: Delta<'a>,
    logprobs: Option<()>,
    finish_reason: Option<&'a str>,
}

#[skip_serializing_none]
#[derive(Default, Serialize)]
struct Delta<'a> {
    role: Option<&'a str>,
    content: Option<&'a str>,
    tool_calls: Option<[ToolDelta<'a>; 1]>,
}

#[skip_serializing_none]
#[derive(Serialize)]
struct ToolDelta<'a> {
    index: usize,
    id: Option<&'a str>,
    #[serde(rename = "type")]
    kind: Option<&'a str>,
    function: FunctionCallDelta<'a>,
}

#[derive(Serialize)]
struct FunctionCallDelta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    arguments: &'a str,
}
