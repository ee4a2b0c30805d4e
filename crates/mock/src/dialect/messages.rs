//! Anthropic's messages.

use super::put::{Put as _, TOOL, arguments, put_fragment};
use super::{Piece, Voice};
use crate::answer::{Answer, Finish, Kind};

/// Stands for the signature of a reasoning block, which clients have to send back unread.
const SIGNATURE: &str = "bW9jaw==";

/// The stream counts its content blocks.
#[derive(Debug, Default)]
pub(super) struct Messages {
    block: u32,
}

/// An event with its name in both places where the dialect wants it, up to its further members.
fn put_event<'a>(out: &'a mut Vec<u8>, name: &str) -> &'a mut Vec<u8> {
    out.put("event: ").put(name).put("\ndata: {\"type\":\"").put(name).put("\"")
}

const fn stop_reason(answer: &Answer, calls_tool: bool) -> &'static str {
    match answer.finish {
        Finish::Length => "max_tokens",
        Finish::Stop if calls_tool => "tool_use",
        Finish::Stop => "end_turn",
    }
}

/// The message up to its content.
fn put_message(answer: &Answer, out: &mut Vec<u8>) {
    out.put(r#"{"id":"msg_"#).hex(answer.draws.id());
    out.put(r#"","type":"message","role":"assistant","model":"#).put(&answer.model);
    out.put(r#","content":["#);
}

fn put_tool(answer: &Answer, out: &mut Vec<u8>) {
    out.put(r#"{"type":"tool_use","id":"toolu_"#).hex(answer.draws.id());
    out.put(r#"","name":""#).put(TOOL).put(r#"","input":"#);
}

fn put_empty_block(answer: &Answer, kind: Kind, out: &mut Vec<u8>) {
    match kind {
        Kind::Text => {
            out.put(r#"{"type":"text","text":""}"#);
        }
        Kind::Reasoning => {
            out.put(r#"{"type":"thinking","thinking":"","signature":""}"#);
        }
        Kind::ToolCall => {
            put_tool(answer, out);
            out.put("{}}");
        }
    }
}

impl Voice for Messages {
    fn open(&mut self, answer: &Answer, out: &mut Vec<u8>) {
        put_event(out, "message_start").put(r#","message":"#);
        put_message(answer, out);
        out.put(r#"],"stop_reason":null,"stop_sequence":null"#);
        if answer.usage {
            out.put(r#","usage":{"input_tokens":"#).number(answer.prompt_tokens);
            out.put(r#","output_tokens":1}"#);
        }
        out.put("}}\n\n");
    }

    fn start(&mut self, answer: &Answer, kind: Kind, out: &mut Vec<u8>) {
        put_event(out, "content_block_start").put(r#","index":"#).number(self.block);
        out.put(r#","content_block":"#);
        put_empty_block(answer, kind, out);
        out.put("}\n\n");
        if self.block == 0 {
            put_event(out, "ping").put("}\n\n");
        }
    }

    fn piece(&mut self, _: &Answer, piece: Piece<'_>, out: &mut Vec<u8>) {
        put_event(out, "content_block_delta").put(r#","index":"#).number(self.block);
        out.put(match piece.kind {
            Kind::Text => r#","delta":{"type":"text_delta","text":""#,
            Kind::Reasoning => r#","delta":{"type":"thinking_delta","thinking":""#,
            Kind::ToolCall => r#","delta":{"type":"input_json_delta","partial_json":""#,
        });
        match piece.kind {
            Kind::ToolCall => put_fragment(piece, out),
            Kind::Text | Kind::Reasoning => {
                out.put(piece.text);
            }
        }
        out.put("\"}}\n\n");
    }

    fn stop(&mut self, _: &Answer, kind: Kind, out: &mut Vec<u8>) {
        if kind == Kind::Reasoning {
            put_event(out, "content_block_delta").put(r#","index":"#).number(self.block);
            out.put(r#","delta":{"type":"signature_delta","signature":""#).put(SIGNATURE);
            out.put("\"}}\n\n");
        }
        put_event(out, "content_block_stop").put(r#","index":"#).number(self.block).put("}\n\n");
        self.block += 1;
    }

    fn close(&mut self, answer: &Answer, out: &mut Vec<u8>) {
        let reason = stop_reason(answer, answer.calls_tool());
        put_event(out, "message_delta").put(r#","delta":{"stop_reason":""#).put(reason);
        out.put(r#"","stop_sequence":null}"#);
        if answer.usage {
            out.put(r#","usage":{"output_tokens":"#).number(answer.tokens()).put("}");
        }
        out.put("}\n\n");
        put_event(out, "message_stop").put("}\n\n");
    }

    fn error(&mut self, out: &mut Vec<u8>) {
        put_event(out, "error").put(r#","error":{"type":"overloaded_error","message":"#);
        out.put("\"The mock broke off this stream on purpose\"}}\n\n");
    }
}

pub(super) fn whole(answer: &Answer) -> Vec<u8> {
    let mut out = Vec::with_capacity(512 + 4 * answer.tokens() as usize);
    put_message(answer, &mut out);
    for (index, (kind, text)) in answer.texts().enumerate() {
        out.put(if index > 0 { "," } else { "" });
        put_block(answer, kind, &text, &mut out);
    }
    let reason = stop_reason(answer, answer.calls_tool());
    out.put(r#"],"stop_reason":""#).put(reason).put(r#"","stop_sequence":null"#);
    if answer.usage {
        out.put(r#","usage":{"input_tokens":"#).number(answer.prompt_tokens);
        out.put(r#","output_tokens":"#).number(answer.tokens()).put("}");
    }
    out.put("}");
    out
}

fn put_block(answer: &Answer, kind: Kind, text: &[u8], out: &mut Vec<u8>) {
    match kind {
        Kind::Text => {
            out.put(r#"{"type":"text","text":""#).put(text).put("\"}");
        }
        Kind::Reasoning => {
            out.put(r#"{"type":"thinking","thinking":""#).put(text);
            out.put(r#"","signature":""#).put(SIGNATURE).put("\"}");
        }
        Kind::ToolCall => {
            put_tool(answer, out);
            // Here the arguments are an object and not a text: the escapes fall away.
            out.extend(arguments(text).into_iter().filter(|byte| *byte != b'\\'));
            out.put("}");
        }
    }
}
