//! OpenAI's responses.

use super::put::{CREATED, Put as _, TOOL, arguments, put_fragment};
use super::{Piece, Voice};
use crate::answer::{Answer, Finish, Kind};

/// The stream numbers its events, and repeats at the end what it said in pieces.
#[derive(Debug, Default)]
pub(super) struct Responses {
    sequence: u32,
    /// The section that is being said: its place in the output, and its text so far.
    index: u32,
    text: Vec<u8>,
    /// The finished output items, with commas between them.
    items: Vec<u8>,
}

/// How a kind of section is called in this dialect.
struct Terms {
    /// Before the id of its item.
    prefix: &'static str,
    /// Names of the events around its pieces: the part's beginning and end (a tool call has none), and
    /// the text's pieces and end.
    part_added: Option<&'static str>,
    delta: &'static str,
    done: &'static str,
    part_done: Option<&'static str>,
    /// The members that say where in the item the text belongs.
    place: &'static str,
    /// Name of the member that holds the whole text at the end.
    text: &'static str,
}

const TEXT: Terms = Terms {
    prefix: "msg_",
    part_added: Some("response.content_part.added"),
    delta: "response.output_text.delta",
    done: "response.output_text.done",
    part_done: Some("response.content_part.done"),
    place: r#","content_index":0"#,
    text: "text",
};

const REASONING: Terms = Terms {
    prefix: "rs_",
    part_added: Some("response.reasoning_summary_part.added"),
    delta: "response.reasoning_summary_text.delta",
    done: "response.reasoning_summary_text.done",
    part_done: Some("response.reasoning_summary_part.done"),
    place: r#","summary_index":0"#,
    text: "text",
};

const TOOL_CALL: Terms = Terms {
    prefix: "fc_",
    part_added: None,
    delta: "response.function_call_arguments.delta",
    done: "response.function_call_arguments.done",
    part_done: None,
    place: "",
    text: "arguments",
};

const fn terms(kind: Kind) -> &'static Terms {
    match kind {
        Kind::Text => &TEXT,
        Kind::Reasoning => &REASONING,
        Kind::ToolCall => &TOOL_CALL,
    }
}

/// A part of an item.
fn put_part(kind: Kind, text: &[u8], out: &mut Vec<u8>) {
    match kind {
        Kind::Text => {
            out.put(r#"{"type":"output_text","text":""#).put(text).put(r#"","annotations":[]}"#);
        }
        Kind::Reasoning => {
            out.put(r#"{"type":"summary_text","text":""#).put(text).put("\"}");
        }
        Kind::ToolCall => {}
    }
}

/// An output item; `text` is `None` while it is being said.
fn put_item(answer: &Answer, kind: Kind, text: Option<&[u8]>, out: &mut Vec<u8>) {
    let status = if text.is_some() { "completed" } else { "in_progress" };
    out.put(r#"{"id":""#).put(terms(kind).prefix).hex(answer.draws.id());
    match kind {
        Kind::Text => out.put(r#"","type":"message","status":""#).put(status),
        Kind::Reasoning => out.put(r#"","type":"reasoning"#),
        Kind::ToolCall => out.put(r#"","type":"function_call","status":""#).put(status),
    };
    if kind == Kind::ToolCall {
        out.put(r#"","call_id":"call_"#).hex(answer.draws.id()).put(r#"","name":""#).put(TOOL);
        out.put(r#"","arguments":""#).put(text.unwrap_or_default()).put("\"}");
        return;
    }
    let member =
        if kind == Kind::Text { r#","role":"assistant","content":["# } else { r#","summary":["# };
    out.put("\"").put(member);
    text.inspect(|text| put_part(kind, text, out));
    out.put("]}");
}

fn put_usage(answer: &Answer, out: &mut Vec<u8>) {
    let output = answer.tokens();
    out.put(r#"{"input_tokens":"#).number(answer.prompt_tokens);
    out.put(r#","input_tokens_details":{"cached_tokens":0},"output_tokens":"#).number(output);
    out.put(r#","output_tokens_details":{"reasoning_tokens":"#);
    out.number(answer.tokens_of(Kind::Reasoning)).put(r#"},"total_tokens":"#);
    out.number(answer.prompt_tokens + u64::from(output)).put("}");
}

/// The response object; `items` is `None` while it is being said.
fn put_response(answer: &Answer, items: Option<&[u8]>, out: &mut Vec<u8>) {
    out.put(r#"{"id":"resp_"#).hex(answer.draws.id()).put(r#"","object":"response","created_at":"#);
    out.put(CREATED).put(r#","status":""#).put(items.map_or("in_progress", |_| status(answer)));
    out.put(r#"","error":null,"incomplete_details":"#);
    let cut_short = items.is_some() && answer.finish == Finish::Length;
    out.put(if cut_short { r#"{"reason":"max_output_tokens"}"# } else { "null" });
    out.put(r#","model":"#).put(&answer.model).put(r#","output":["#);
    out.put(items.unwrap_or_default()).put(r#"],"usage":"#);
    if items.is_some() && answer.usage {
        put_usage(answer, out);
    } else {
        out.put("null");
    }
    out.put("}");
}

const fn status(answer: &Answer) -> &'static str {
    match answer.finish {
        Finish::Stop => "completed",
        Finish::Length => "incomplete",
    }
}

impl Responses {
    /// An event up to its further members.
    fn event<'a>(&mut self, name: &str, out: &'a mut Vec<u8>) -> &'a mut Vec<u8> {
        out.put("event: ").put(name).put("\ndata: {\"type\":\"").put(name);
        out.put(r#"","sequence_number":"#).number(self.sequence);
        self.sequence += 1;
        out
    }

    /// An event about the section that is being said, up to its further members.
    fn about(&mut self, name: &str, answer: &Answer, kind: Kind, out: &mut Vec<u8>) {
        let index = self.index;
        self.event(name, out).put(r#","item_id":""#).put(terms(kind).prefix).hex(answer.draws.id());
        out.put(r#"","output_index":"#).number(index).put(terms(kind).place);
    }

    fn whole_response(&mut self, name: &str, answer: &Answer, finished: bool, out: &mut Vec<u8>) {
        self.event(name, out).put(r#","response":"#);
        put_response(answer, finished.then_some(&self.items), out);
        out.put("}\n\n");
    }

    fn item(&mut self, name: &str, answer: &Answer, (kind, done): (Kind, bool), out: &mut Vec<u8>) {
        let index = self.index;
        self.event(name, out).put(r#","output_index":"#).number(index).put(r#","item":"#);
        put_item(answer, kind, done.then_some(&self.text), out);
        out.put("}\n\n");
    }
}

impl Voice for Responses {
    fn open(&mut self, answer: &Answer, out: &mut Vec<u8>) {
        self.whole_response("response.created", answer, false, out);
        self.whole_response("response.in_progress", answer, false, out);
    }

    fn start(&mut self, answer: &Answer, kind: Kind, out: &mut Vec<u8>) {
        self.item("response.output_item.added", answer, (kind, false), out);
        if let Some(name) = terms(kind).part_added {
            self.about(name, answer, kind, out);
            out.put(r#","part":"#);
            put_part(kind, b"", out);
            out.put("}\n\n");
        }
    }

    fn piece(&mut self, answer: &Answer, piece: Piece<'_>, out: &mut Vec<u8>) {
        self.about(terms(piece.kind).delta, answer, piece.kind, out);
        out.put(r#","delta":""#);
        let begin = out.len();
        match piece.kind {
            Kind::ToolCall => put_fragment(piece, out),
            Kind::Text | Kind::Reasoning => {
                out.put(piece.text);
            }
        }
        self.text.put(&out[begin..]);
        out.put("\"}\n\n");
    }

    fn stop(&mut self, answer: &Answer, kind: Kind, out: &mut Vec<u8>) {
        let terms = terms(kind);
        self.about(terms.done, answer, kind, out);
        out.put(",\"").put(terms.text).put("\":\"").put(&self.text).put("\"}\n\n");
        if let Some(name) = terms.part_done {
            self.about(name, answer, kind, out);
            out.put(r#","part":"#);
            put_part(kind, &self.text, out);
            out.put("}\n\n");
        }
        self.item("response.output_item.done", answer, (kind, true), out);
        self.items.put(if self.index > 0 { "," } else { "" });
        put_item(answer, kind, Some(&self.text), &mut self.items);
        self.text.clear();
        self.index += 1;
    }

    fn close(&mut self, answer: &Answer, out: &mut Vec<u8>) {
        let name = match answer.finish {
            Finish::Stop => "response.completed",
            Finish::Length => "response.incomplete",
        };
        self.whole_response(name, answer, true, out);
    }

    fn error(&mut self, out: &mut Vec<u8>) {
        self.event("error", out).put(r#","code":"server_error","message":"#);
        out.put("\"The mock broke off this stream on purpose\",\"param\":null}\n\n");
    }
}

pub(super) fn whole(answer: &Answer) -> Vec<u8> {
    let mut items = Vec::new();
    for (index, (kind, text)) in answer.texts().enumerate() {
        let text = if kind == Kind::ToolCall { arguments(&text) } else { text };
        items.put(if index > 0 { "," } else { "" });
        put_item(answer, kind, Some(&text), &mut items);
    }
    let mut out = Vec::with_capacity(512 + items.len());
    put_response(answer, Some(&items), &mut out);
    out
}
