//! Anthropic's messages: streams and full responses.

use super::{Delta, StreamEncoder, WriteExt as _, put_escaped};
use crate::model_output::{ContentKind, FinishReason, ModelOutput, Section};

/// The signature of every reasoning block; clients return it unchanged.
const SIGNATURE: &str = "bW9jaw==";

/// Counts the content blocks of a stream.
#[derive(Debug, Default)]
pub(super) struct MessagesEncoder {
    block: u32,
}

/// Writes an event with its name, up to its variable members.
fn put_event<'a>(out: &'a mut Vec<u8>, name: &str) -> &'a mut Vec<u8> {
    out.put("event: ").put(name).put("\ndata: {\"type\":\"").put(name).put("\"")
}

const fn stop_reason(output: &ModelOutput, calls_tool: bool) -> &'static str {
    match output.finish_reason {
        FinishReason::Length => "max_tokens",
        FinishReason::Stop if calls_tool => "tool_use",
        FinishReason::Stop => "end_turn",
    }
}

/// Writes the message up to its content.
fn put_message(output: &ModelOutput, out: &mut Vec<u8>) {
    out.put(r#"{"id":"msg_"#).hex(output.rng.id());
    out.put(r#"","type":"message","role":"assistant","model":"#).put(&output.model);
    out.put(r#","content":["#);
}

fn put_tool(output: &ModelOutput, section: Section, input: &[u8], out: &mut Vec<u8>) {
    if let Some(call) = output.call(section) {
        out.put(r#"{"type":"tool_use","id":"toolu_"#).hex(call.id);
        out.put(r#"","name":"#).put(&call.name).put(r#","input":"#).put(input).put("}");
    }
}

fn put_empty_block(output: &ModelOutput, section: Section, out: &mut Vec<u8>) {
    match section.kind {
        ContentKind::Text => {
            out.put(r#"{"type":"text","text":""}"#);
        }
        ContentKind::Reasoning => {
            out.put(r#"{"type":"thinking","thinking":"","signature":""}"#);
        }
        ContentKind::ToolCall => put_tool(output, section, b"{}", out),
    }
}

impl StreamEncoder for MessagesEncoder {
    fn start_stream(&mut self, output: &ModelOutput, out: &mut Vec<u8>) {
        put_event(out, "message_start").put(r#","message":"#);
        put_message(output, out);
        out.put(r#"],"stop_reason":null,"stop_sequence":null"#);
        if output.usage {
            out.put(r#","usage":{"input_tokens":"#).number(output.prompt_tokens);
            out.put(r#","output_tokens":1}"#);
        }
        out.put("}}\n\n");
    }

    fn start_section(&mut self, output: &ModelOutput, section: Section, out: &mut Vec<u8>) {
        put_event(out, "content_block_start").put(r#","index":"#).number(self.block);
        out.put(r#","content_block":"#);
        put_empty_block(output, section, out);
        out.put("}\n\n");
        if self.block == 0 {
            put_event(out, "ping").put("}\n\n");
        }
    }

    fn delta(&mut self, _: &ModelOutput, delta: Delta<'_>, out: &mut Vec<u8>) {
        put_event(out, "content_block_delta").put(r#","index":"#).number(self.block);
        out.put(match delta.section.kind {
            ContentKind::Text => r#","delta":{"type":"text_delta","text":""#,
            ContentKind::Reasoning => r#","delta":{"type":"thinking_delta","thinking":""#,
            ContentKind::ToolCall => r#","delta":{"type":"input_json_delta","partial_json":""#,
        });
        match delta.section.kind {
            ContentKind::ToolCall => put_escaped(delta.text, out),
            ContentKind::Text | ContentKind::Reasoning => {
                out.put(delta.text);
            }
        }
        out.put("\"}}\n\n");
    }

    fn end_section(&mut self, _: &ModelOutput, section: Section, out: &mut Vec<u8>) {
        if section.kind == ContentKind::Reasoning {
            put_event(out, "content_block_delta").put(r#","index":"#).number(self.block);
            out.put(r#","delta":{"type":"signature_delta","signature":""#).put(SIGNATURE);
            out.put("\"}}\n\n");
        }
        put_event(out, "content_block_stop").put(r#","index":"#).number(self.block).put("}\n\n");
        self.block += 1;
    }

    fn end_stream(&mut self, output: &ModelOutput, out: &mut Vec<u8>) {
        let reason = stop_reason(output, output.calls_tool());
        put_event(out, "message_delta").put(r#","delta":{"stop_reason":""#).put(reason);
        out.put(r#"","stop_sequence":null}"#);
        if output.usage {
            out.put(r#","usage":{"output_tokens":"#).number(output.tokens()).put("}");
        }
        out.put("}\n\n");
        put_event(out, "message_stop").put("}\n\n");
    }

    fn error(&mut self, out: &mut Vec<u8>) {
        put_event(out, "error").put(r#","error":{"type":"overloaded_error","message":"#);
        out.put("\"The mock broke off this stream on purpose\"}}\n\n");
    }
}

pub(super) fn full_response(output: &ModelOutput) -> Vec<u8> {
    let mut out = Vec::with_capacity(512 + 4 * output.tokens() as usize);
    put_message(output, &mut out);
    for (index, (section, text)) in output.texts().enumerate() {
        out.put(if index > 0 { "," } else { "" });
        put_block(output, section, &text, &mut out);
    }
    let reason = stop_reason(output, output.calls_tool());
    out.put(r#"],"stop_reason":""#).put(reason).put(r#"","stop_sequence":null"#);
    if output.usage {
        out.put(r#","usage":{"input_tokens":"#).number(output.prompt_tokens);
        out.put(r#","output_tokens":"#).number(output.tokens()).put("}");
    }
    out.put("}");
    out
}

fn put_block(output: &ModelOutput, section: Section, text: &[u8], out: &mut Vec<u8>) {
    match section.kind {
        ContentKind::Text => {
            out.put(r#"{"type":"text","text":""#).put(text).put("\"}");
        }
        ContentKind::Reasoning => {
            out.put(r#"{"type":"thinking","thinking":""#).put(text);
            out.put(r#"","signature":""#).put(SIGNATURE).put("\"}");
        }
        // Arguments are an object here, so they need no escapes.
        ContentKind::ToolCall => put_tool(output, section, text, out),
    }
}
