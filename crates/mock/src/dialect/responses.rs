//! OpenAI's responses: streams and full responses.

use super::{CREATED, Delta, StreamEncoder, WriteExt as _, put_escaped};
use crate::model_output::{ContentKind, FinishReason, ModelOutput, Section};

/// Numbers the events of a stream and collects its output, which the final events repeat.
#[derive(Debug, Default)]
pub(super) struct ResponsesEncoder {
    sequence: u32,
    /// The current section: its index in the output, and its text so far.
    index: u32,
    text: Vec<u8>,
    /// The finished output items, with commas between them.
    items: Vec<u8>,
}

/// The names of a kind of section in this dialect.
struct SectionNames {
    /// Prefix of its item's id.
    prefix: &'static str,
    /// Names of its events: start and end of the part (tool calls have none), deltas and end of the
    /// text.
    part_added: Option<&'static str>,
    delta: &'static str,
    done: &'static str,
    part_done: Option<&'static str>,
    /// The member that locates the text in its item.
    location: &'static str,
    /// Name of the member with the whole text in the final event.
    text: &'static str,
}

const TEXT: SectionNames = SectionNames {
    prefix: "msg_",
    part_added: Some("response.content_part.added"),
    delta: "response.output_text.delta",
    done: "response.output_text.done",
    part_done: Some("response.content_part.done"),
    location: r#","content_index":0"#,
    text: "text",
};

const REASONING: SectionNames = SectionNames {
    prefix: "rs_",
    part_added: Some("response.reasoning_summary_part.added"),
    delta: "response.reasoning_summary_text.delta",
    done: "response.reasoning_summary_text.done",
    part_done: Some("response.reasoning_summary_part.done"),
    location: r#","summary_index":0"#,
    text: "text",
};

const TOOL_CALL: SectionNames = SectionNames {
    prefix: "fc_",
    part_added: None,
    delta: "response.function_call_arguments.delta",
    done: "response.function_call_arguments.done",
    part_done: None,
    location: "",
    text: "arguments",
};

const fn names(kind: ContentKind) -> &'static SectionNames {
    match kind {
        ContentKind::Text => &TEXT,
        ContentKind::Reasoning => &REASONING,
        ContentKind::ToolCall => &TOOL_CALL,
    }
}

/// Writes a part of an item.
fn put_part(kind: ContentKind, text: &[u8], out: &mut Vec<u8>) {
    match kind {
        ContentKind::Text => {
            out.put(r#"{"type":"output_text","text":""#).put(text).put(r#"","annotations":[]}"#);
        }
        ContentKind::Reasoning => {
            out.put(r#"{"type":"summary_text","text":""#).put(text).put("\"}");
        }
        ContentKind::ToolCall => {}
    }
}

/// Writes an item's id.
fn put_id(output: &ModelOutput, section: Section, out: &mut Vec<u8>) {
    let id = output.call(section).map_or_else(|| output.rng.id(), |call| call.id);
    out.put(names(section.kind).prefix).hex(id);
}

/// Writes an output item; `text`, in which quotes are escaped, is `None` while it is in progress.
fn put_item(output: &ModelOutput, section: Section, text: Option<&[u8]>, out: &mut Vec<u8>) {
    let (kind, status) = (section.kind, if text.is_some() { "completed" } else { "in_progress" });
    out.put(r#"{"id":""#);
    put_id(output, section, out);
    match kind {
        ContentKind::Text => out.put(r#"","type":"message","status":""#).put(status),
        ContentKind::Reasoning => out.put(r#"","type":"reasoning"#),
        ContentKind::ToolCall => out.put(r#"","type":"function_call","status":""#).put(status),
    };
    if let Some(call) = output.call(section) {
        out.put(r#"","call_id":"call_"#).hex(call.id).put(r#"","name":"#).put(&call.name);
        out.put(r#","arguments":""#).put(text.unwrap_or_default()).put("\"}");
        return;
    }
    let member = if kind == ContentKind::Text {
        r#","role":"assistant","content":["#
    } else {
        r#","summary":["#
    };
    out.put("\"").put(member);
    text.inspect(|text| put_part(kind, text, out));
    out.put("]}");
}

fn put_usage(output: &ModelOutput, out: &mut Vec<u8>) {
    let tokens = output.tokens();
    out.put(r#"{"input_tokens":"#).number(output.prompt_tokens);
    out.put(r#","input_tokens_details":{"cached_tokens":0},"output_tokens":"#).number(tokens);
    out.put(r#","output_tokens_details":{"reasoning_tokens":"#);
    out.number(output.tokens_of(ContentKind::Reasoning)).put(r#"},"total_tokens":"#);
    out.number(output.prompt_tokens + u64::from(tokens)).put("}");
}

/// Writes the response object; `items` is `None` while it is in progress.
fn put_response(output: &ModelOutput, items: Option<&[u8]>, out: &mut Vec<u8>) {
    out.put(r#"{"id":"resp_"#).hex(output.rng.id()).put(r#"","object":"response","created_at":"#);
    out.put(CREATED).put(r#","status":""#).put(items.map_or("in_progress", |_| status(output)));
    out.put(r#"","error":null,"incomplete_details":"#);
    let incomplete = items.is_some() && output.finish_reason == FinishReason::Length;
    out.put(if incomplete { r#"{"reason":"max_output_tokens"}"# } else { "null" });
    out.put(r#","model":"#).put(&output.model).put(r#","output":["#);
    out.put(items.unwrap_or_default()).put(r#"],"usage":"#);
    if items.is_some() && output.usage {
        put_usage(output, out);
    } else {
        out.put("null");
    }
    out.put("}");
}

const fn status(output: &ModelOutput) -> &'static str {
    match output.finish_reason {
        FinishReason::Stop => "completed",
        FinishReason::Length => "incomplete",
    }
}

impl ResponsesEncoder {
    /// Writes an event up to its variable members.
    fn event<'a>(&mut self, name: &str, out: &'a mut Vec<u8>) -> &'a mut Vec<u8> {
        out.put("event: ").put(name).put("\ndata: {\"type\":\"").put(name);
        out.put(r#"","sequence_number":"#).number(self.sequence);
        self.sequence += 1;
        out
    }

    /// Writes an event about the current section, up to its variable members.
    fn section_event(
        &mut self,
        name: &str,
        output: &ModelOutput,
        section: Section,
        out: &mut Vec<u8>,
    ) {
        let index = self.index;
        self.event(name, out).put(r#","item_id":""#);
        put_id(output, section, out);
        out.put(r#"","output_index":"#).number(index).put(names(section.kind).location);
    }

    fn response_event(
        &mut self,
        name: &str,
        output: &ModelOutput,
        finished: bool,
        out: &mut Vec<u8>,
    ) {
        self.event(name, out).put(r#","response":"#);
        put_response(output, finished.then_some(&self.items), out);
        out.put("}\n\n");
    }

    fn item_event(
        &mut self,
        name: &str,
        output: &ModelOutput,
        section: Section,
        done: bool,
        out: &mut Vec<u8>,
    ) {
        let index = self.index;
        self.event(name, out).put(r#","output_index":"#).number(index).put(r#","item":"#);
        put_item(output, section, done.then_some(&self.text), out);
        out.put("}\n\n");
    }
}

impl StreamEncoder for ResponsesEncoder {
    fn start_stream(&mut self, output: &ModelOutput, out: &mut Vec<u8>) {
        self.response_event("response.created", output, false, out);
        self.response_event("response.in_progress", output, false, out);
    }

    fn start_section(&mut self, output: &ModelOutput, section: Section, out: &mut Vec<u8>) {
        self.item_event("response.output_item.added", output, section, false, out);
        if let Some(name) = names(section.kind).part_added {
            self.section_event(name, output, section, out);
            out.put(r#","part":"#);
            put_part(section.kind, b"", out);
            out.put("}\n\n");
        }
    }

    fn delta(&mut self, output: &ModelOutput, delta: Delta<'_>, out: &mut Vec<u8>) {
        self.section_event(names(delta.section.kind).delta, output, delta.section, out);
        out.put(r#","delta":""#);
        let begin = out.len();
        match delta.section.kind {
            ContentKind::ToolCall => put_escaped(delta.text, out),
            ContentKind::Text | ContentKind::Reasoning => {
                out.put(delta.text);
            }
        }
        self.text.put(&out[begin..]);
        out.put("\"}\n\n");
    }

    fn end_section(&mut self, output: &ModelOutput, section: Section, out: &mut Vec<u8>) {
        let names = names(section.kind);
        self.section_event(names.done, output, section, out);
        out.put(",\"").put(names.text).put("\":\"").put(&self.text).put("\"}\n\n");
        if let Some(name) = names.part_done {
            self.section_event(name, output, section, out);
            out.put(r#","part":"#);
            put_part(section.kind, &self.text, out);
            out.put("}\n\n");
        }
        self.item_event("response.output_item.done", output, section, true, out);
        self.items.put(if self.index > 0 { "," } else { "" });
        put_item(output, section, Some(&self.text), &mut self.items);
        self.text.clear();
        self.index += 1;
    }

    fn end_stream(&mut self, output: &ModelOutput, out: &mut Vec<u8>) {
        let name = match output.finish_reason {
            FinishReason::Stop => "response.completed",
            FinishReason::Length => "response.incomplete",
        };
        self.response_event(name, output, true, out);
    }

    fn error(&mut self, out: &mut Vec<u8>) {
        self.event("error", out).put(r#","code":"server_error","message":"#);
        out.put("\"The mock broke off this stream on purpose\",\"param\":null}\n\n");
    }
}

pub(super) fn full_response(output: &ModelOutput) -> Vec<u8> {
    let mut items = Vec::new();
    let mut escaped = Vec::new();
    for (index, (section, text)) in output.texts().enumerate() {
        escaped.clear();
        put_escaped(&text, &mut escaped);
        items.put(if index > 0 { "," } else { "" });
        put_item(output, section, Some(&escaped), &mut items);
    }
    let mut out = Vec::with_capacity(512 + items.len());
    put_response(output, Some(&items), &mut out);
    out
}
