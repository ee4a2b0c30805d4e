//! OpenAI's chat completions.

use super::put::{CREATED, Put as _, TOOL, arguments, put_fragment};
use super::{Piece, Voice};
use crate::answer::{Answer, Finish, Kind};

/// Chunks differ in their delta alone: what stands around it is made once.
#[derive(Debug, Default)]
pub(super) struct Chat {
    before: Vec<u8>,
    after: Vec<u8>,
}

impl Chat {
    fn delta(&self, out: &mut Vec<u8>, delta: impl FnOnce(&mut Vec<u8>)) {
        out.put(&self.before);
        delta(out);
        out.put(&self.after);
    }
}

/// `data: {...` up to the member that differs.
fn put_head(answer: &Answer, object: &str, out: &mut Vec<u8>) {
    out.put(r#"{"id":"chatcmpl-"#).hex(answer.draws.id()).put(r#"","object":""#).put(object);
    out.put(r#"","created":"#).put(CREATED).put(r#","model":"#).put(&answer.model);
}

fn put_usage(answer: &Answer, out: &mut Vec<u8>) {
    let output = answer.tokens();
    out.put(r#"{"prompt_tokens":"#).number(answer.prompt_tokens);
    out.put(r#","completion_tokens":"#).number(output);
    out.put(r#","total_tokens":"#).number(answer.prompt_tokens + u64::from(output));
    out.put(r#","completion_tokens_details":{"reasoning_tokens":"#);
    out.number(answer.tokens_of(Kind::Reasoning)).put("}}");
}

fn finish_reason(answer: &Answer) -> &'static str {
    match answer.finish {
        Finish::Length => "length",
        Finish::Stop if answer.calls_tool() => "tool_calls",
        Finish::Stop => "stop",
    }
}

const fn stream_usage(answer: &Answer) -> bool {
    answer.usage && answer.stream_usage
}

impl Voice for Chat {
    fn open(&mut self, answer: &Answer, out: &mut Vec<u8>) {
        self.before.put("data: ");
        put_head(answer, "chat.completion.chunk", &mut self.before);
        self.before.put(r#","choices":[{"index":0,"delta":"#);
        let usage = if stream_usage(answer) { r#","usage":null"# } else { "" };
        self.after.put(r#","finish_reason":null}]"#).put(usage).put("}\n\n");
        self.delta(out, |out| {
            out.put(r#"{"role":"assistant","content":""}"#);
        });
    }

    fn start(&mut self, answer: &Answer, kind: Kind, out: &mut Vec<u8>) {
        if kind == Kind::ToolCall {
            self.delta(out, |out| {
                out.put(r#"{"tool_calls":[{"index":0,"id":"call_"#).hex(answer.draws.id());
                out.put(r#"","type":"function","function":{"name":""#).put(TOOL);
                out.put(r#"","arguments":""}}]}"#);
            });
        }
    }

    fn piece(&mut self, _: &Answer, piece: Piece<'_>, out: &mut Vec<u8>) {
        self.delta(out, |out| match piece.kind {
            Kind::Text => {
                out.put(r#"{"content":""#).put(piece.text).put("\"}");
            }
            Kind::Reasoning => {
                out.put(r#"{"reasoning_content":""#).put(piece.text).put("\"}");
            }
            Kind::ToolCall => {
                out.put(r#"{"tool_calls":[{"index":0,"function":{"arguments":""#);
                put_fragment(piece, out);
                out.put(r#""}}]}"#);
            }
        });
    }

    fn stop(&mut self, _: &Answer, _: Kind, _: &mut Vec<u8>) {}

    fn close(&mut self, answer: &Answer, out: &mut Vec<u8>) {
        let usage = if stream_usage(answer) { r#","usage":null"# } else { "" };
        out.put(&self.before).put(r#"{},"finish_reason":""#).put(finish_reason(answer));
        out.put(r#""}]"#).put(usage).put("}\n\n");
        if stream_usage(answer) {
            out.put("data: ");
            put_head(answer, "chat.completion.chunk", out);
            out.put(r#","choices":[],"usage":"#);
            put_usage(answer, out);
            out.put("}\n\n");
        }
        out.put("data: [DONE]\n\n");
    }

    fn error(&mut self, out: &mut Vec<u8>) {
        out.put(r#"data: {"error":{"message":"The mock broke off this stream on purpose","#);
        out.put(r#""type":"server_error","param":null,"code":"mock_fault"}}"#).put("\n\n");
    }
}

pub(super) fn whole(answer: &Answer) -> Vec<u8> {
    let mut out = Vec::with_capacity(512 + 4 * answer.tokens() as usize);
    put_head(answer, "chat.completion", &mut out);
    out.put(r#","choices":[{"index":0,"message":{"role":"assistant""#);
    if answer.tokens_of(Kind::Text) == 0 {
        out.put(r#","content":null"#);
    }
    for (kind, text) in answer.texts() {
        put_section(answer, kind, &text, &mut out);
    }
    out.put(r#"},"finish_reason":""#).put(finish_reason(answer)).put(r#""}]"#);
    if answer.usage {
        out.put(r#","usage":"#);
        put_usage(answer, &mut out);
    }
    out.put("}");
    out
}

/// A member of the message.
fn put_section(answer: &Answer, kind: Kind, text: &[u8], out: &mut Vec<u8>) {
    match kind {
        Kind::Text if text.is_empty() => {}
        Kind::Text => {
            out.put(r#","content":""#).put(text).put("\"");
        }
        Kind::Reasoning => {
            out.put(r#","reasoning_content":""#).put(text).put("\"");
        }
        Kind::ToolCall => {
            out.put(r#","tool_calls":[{"id":"call_"#).hex(answer.draws.id());
            out.put(r#"","type":"function","function":{"name":""#).put(TOOL);
            out.put(r#"","arguments":""#).put(arguments(text)).put(r#""}}]"#);
        }
    }
}
