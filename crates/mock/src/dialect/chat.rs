//! Writes OpenAI's chat completions: streams and full responses.

use super::{CREATED, Delta, StreamEncoder, WriteExt as _, put_escaped};
use crate::model_output::{ContentKind, FinishReason, ModelOutput, Section};

/// Writes a stream. Its chunks differ only in their delta, so the surrounding bytes are built once.
#[derive(Debug, Default)]
pub(super) struct ChatEncoder {
    before_delta: Vec<u8>,
    after_delta: Vec<u8>,
}

impl ChatEncoder {
    fn chunk(&self, out: &mut Vec<u8>, write_delta: impl FnOnce(&mut Vec<u8>)) {
        out.put(&self.before_delta);
        write_delta(out);
        out.put(&self.after_delta);
    }
}

/// Writes the beginning of a response or chunk, up to the members that differ.
fn put_head(output: &ModelOutput, object: &str, out: &mut Vec<u8>) {
    out.put(r#"{"id":"chatcmpl-"#).hex(output.rng.id()).put(r#"","object":""#).put(object);
    out.put(r#"","created":"#).put(CREATED).put(r#","model":"#).put(&output.model);
}

pub(super) fn put_usage(output: &ModelOutput, out: &mut Vec<u8>) {
    let tokens = output.tokens();
    out.put(r#"{"prompt_tokens":"#).number(output.prompt_tokens);
    out.put(r#","completion_tokens":"#).number(tokens);
    out.put(r#","total_tokens":"#).number(output.prompt_tokens + u64::from(tokens));
    out.put(r#","completion_tokens_details":{"reasoning_tokens":"#);
    out.number(output.tokens_of(ContentKind::Reasoning)).put("}}");
}

pub(super) fn finish_reason(output: &ModelOutput) -> &'static str {
    match output.finish_reason {
        FinishReason::Length => "length",
        FinishReason::Stop if output.calls_tool() => "tool_calls",
        FinishReason::Stop => "stop",
    }
}

const fn stream_usage(output: &ModelOutput) -> bool {
    output.usage && output.stream_usage
}

impl StreamEncoder for ChatEncoder {
    fn start_stream(&mut self, output: &ModelOutput, out: &mut Vec<u8>) {
        self.before_delta.put("data: ");
        put_head(output, "chat.completion.chunk", &mut self.before_delta);
        self.before_delta.put(r#","choices":[{"index":0,"delta":"#);
        let usage = if stream_usage(output) { r#","usage":null"# } else { "" };
        self.after_delta.put(r#","finish_reason":null}]"#).put(usage).put("}\n\n");
        self.chunk(out, |out| {
            out.put(r#"{"role":"assistant","content":""}"#);
        });
    }

    fn start_section(&mut self, output: &ModelOutput, section: Section, out: &mut Vec<u8>) {
        if let Some(call) = output.call(section) {
            self.chunk(out, |out| {
                out.put(r#"{"tool_calls":[{"index":"#).number(section.call);
                out.put(r#","id":"call_"#).hex(call.id);
                out.put(r#"","type":"function","function":{"name":"#).put(&call.name);
                out.put(r#","arguments":""}}]}"#);
            });
        }
    }

    fn delta(&mut self, _: &ModelOutput, delta: Delta<'_>, out: &mut Vec<u8>) {
        self.chunk(out, |out| match delta.section.kind {
            ContentKind::Text => {
                out.put(r#"{"content":""#).put(delta.text).put("\"}");
            }
            ContentKind::Reasoning => {
                out.put(r#"{"reasoning_content":""#).put(delta.text).put("\"}");
            }
            ContentKind::ToolCall => {
                out.put(r#"{"tool_calls":[{"index":"#).number(delta.section.call);
                out.put(r#","function":{"arguments":""#);
                put_escaped(delta.text, out);
                out.put(r#""}}]}"#);
            }
        });
    }

    fn end_stream(&mut self, output: &ModelOutput, out: &mut Vec<u8>) {
        let usage = if stream_usage(output) { r#","usage":null"# } else { "" };
        out.put(&self.before_delta).put(r#"{},"finish_reason":""#).put(finish_reason(output));
        out.put(r#""}]"#).put(usage).put("}\n\n");
        put_stream_end(output, out, |out| put_head(output, "chat.completion.chunk", out));
    }

    fn error(&mut self, out: &mut Vec<u8>) {
        put_error(out);
    }
}

/// A separate chunk with the usage, if requested, and the end mark.
pub(super) fn put_stream_end(
    output: &ModelOutput,
    out: &mut Vec<u8>,
    put_head: impl FnOnce(&mut Vec<u8>),
) {
    if stream_usage(output) {
        out.put("data: ");
        put_head(out);
        out.put(r#","choices":[],"usage":"#);
        put_usage(output, out);
        out.put("}\n\n");
    }
    out.put("data: [DONE]\n\n");
}

/// The event of an aborted stream.
pub(super) fn put_error(out: &mut Vec<u8>) {
    out.put(r#"data: {"error":{"message":"The mock broke off this stream on purpose","#);
    out.put(r#""type":"server_error","param":null,"code":"mock_fault"}}"#).put("\n\n");
}

/// The body of an unstreamed response.
pub(super) fn full_response(output: &ModelOutput) -> Vec<u8> {
    let mut out = Vec::with_capacity(512 + 4 * output.tokens() as usize);
    put_head(output, "chat.completion", &mut out);
    out.put(r#","choices":[{"index":0,"message":{"role":"assistant""#);
    if output.tokens_of(ContentKind::Text) == 0 {
        out.put(r#","content":null"#);
    }
    for (section, text) in output.texts() {
        put_section(output, section, &text, &mut out);
    }
    // Tool calls come last.
    out.put(if output.calls_tool() { "]" } else { "" });
    out.put(r#"},"finish_reason":""#).put(finish_reason(output)).put(r#""}]"#);
    if output.usage {
        out.put(r#","usage":"#);
        put_usage(output, &mut out);
    }
    out.put("}");
    out
}

/// Writes a section as a member of the message.
fn put_section(output: &ModelOutput, section: Section, text: &[u8], out: &mut Vec<u8>) {
    match section.kind {
        ContentKind::Text if text.is_empty() => {}
        ContentKind::Text => {
            out.put(r#","content":""#).put(text).put("\"");
        }
        ContentKind::Reasoning => {
            out.put(r#","reasoning_content":""#).put(text).put("\"");
        }
        ContentKind::ToolCall => {
            let Some(call) = output.call(section) else { return };
            out.put(if section.call == 0 { r#","tool_calls":["# } else { "," });
            out.put(r#"{"id":"call_"#).hex(call.id);
            out.put(r#"","type":"function","function":{"name":"#).put(&call.name);
            out.put(r#","arguments":""#);
            put_escaped(text, out);
            out.put(r#""}}"#);
        }
    }
}
