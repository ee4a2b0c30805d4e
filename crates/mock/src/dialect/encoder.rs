//! Writes the responses of a dialect from the templates in its text file.
//!
//! `== NAME` begins a template. `start`, `end`, `error` and, for each kind of section, `open`,
//! `delta` and `close` are the events of a stream, as they are on the wire; `full` is an unstreamed
//! response, and `item` its part for each section. `<name>` stands for a value, or for another
//! template. `<?name>...<?>` is written if a condition holds, `<!name>...<?>` if it does not.

use std::collections::{BTreeMap, HashMap};
use std::slice;
use std::sync::LazyLock;

use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error;

use super::Dialect;
use crate::model_output::{ContentKind, FinishReason, ModelOutput, Section};
use crate::rng::{Purpose, Rng};
use crate::websocket::put_text;

/// A part of a template.
#[derive(Clone, Debug)]
enum Part {
    Literal(Vec<u8>),
    Value(Value),
    If { condition: Condition, holds: bool, parts: Vec<Part> },
}

/// The values of templates.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Value {
    Id,
    Model,
    PromptTokens,
    OutputTokens,
    TotalTokens,
    ReasoningTokens,
    /// The items of all sections so far.
    Items,
    /// The vectors of embeddings.
    Vectors,
    /// The number of the event.
    Sequence,
    /// The number of the section.
    Index,
    CallIndex,
    CallId,
    /// The tool's name as a JSON string.
    CallName,
    /// The text of the delta, or of the whole section. Words need no escapes in JSON.
    Text,
    /// The same, escaped for a JSON string.
    Escaped,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Condition {
    /// Usage is reported.
    Usage,
    /// Usage is reported in streams.
    StreamUsage,
    /// The request's token limit cut the output.
    Length,
    /// The output has tool calls.
    Calls,
    /// The output has text.
    Text,
    /// The section has no text.
    Empty,
    /// It is the first section.
    First,
    /// It is the first tool call.
    FirstCall,
}

/// The templates of a dialect, by name.
type Templates = BTreeMap<&'static str, Vec<Part>>;

static TEMPLATES: LazyLock<HashMap<Dialect, Templates>> = LazyLock::new(|| {
    let files = [
        (Dialect::OpenaiChat, include_str!("chat.txt")),
        (Dialect::OpenaiCompletions, include_str!("completions.txt")),
        (Dialect::OpenaiResponses, include_str!("responses.txt")),
        (Dialect::OpenaiEmbeddings, include_str!("embeddings.txt")),
        (Dialect::AnthropicMessages, include_str!("messages.txt")),
        (Dialect::Websocket, include_str!("websocket.txt")),
    ];
    files.into_iter().map(|(dialect, text)| (dialect, templates(text))).collect()
});

/// Reads a file of templates.
fn templates(text: &'static str) -> Templates {
    let texts = text.split("\n== ").skip(1).filter_map(|template| template.split_once('\n'));
    let texts: BTreeMap<&str, &str> =
        texts.map(|(name, text)| (name, text.trim_end_matches('\n'))).collect();
    let parse_all = texts.iter().map(|(name, text)| {
        let mut parts = parse(&mut &**text, &texts);
        if text.starts_with("data:") || text.starts_with("event:") {
            parts.push(Part::Literal(b"\n\n".to_vec()));
        }
        (*name, parts)
    });
    parse_all.collect()
}

/// Reads a template up to the end of a condition.
fn parse(rest: &mut &str, texts: &BTreeMap<&str, &str>) -> Vec<Part> {
    let mut parts = Vec::new();
    while let Some((literal, (name, behind))) =
        rest.split_once('<').and_then(|(literal, tag)| Some((literal, tag.split_once('>')?)))
    {
        parts.push(Part::Literal(literal.into()));
        *rest = behind;
        if name == "?" {
            return parts;
        }
        if let Some(condition) = name.strip_prefix(['?', '!']).and_then(by_name) {
            let (holds, parts_if) = (name.starts_with('?'), parse(rest, texts));
            parts.push(Part::If { condition, holds, parts: parts_if });
        } else if let Some(value) = by_name(name) {
            parts.push(Part::Value(value));
        } else if let Some(mut text) = texts.get(name).copied() {
            parts.extend(parse(&mut text, texts));
        }
    }
    parts.push(Part::Literal((*rest).into()));
    parts
}

/// The value or condition of this name.
fn by_name<T: for<'de> Deserialize<'de>>(name: &str) -> Option<T> {
    T::deserialize(IntoDeserializer::<Error>::into_deserializer(name)).ok()
}

impl Part {
    /// Whether it differs between the deltas of a stream.
    fn varies(&self) -> bool {
        match self {
            Self::Literal(_) => false,
            Self::Value(value) => !matches!(value, Value::Id | Value::Model),
            Self::If { condition, parts, .. } => {
                !matches!(condition, Condition::StreamUsage) || parts.iter().any(Self::varies)
            }
        }
    }
}

/// The templates of each kind of section, in the order of [`ContentKind`].
const OPEN: [&str; 3] = ["open.reasoning", "open.text", "open.call"];
const DELTA: [&str; 3] = ["delta.reasoning", "delta.text", "delta.call"];
const CLOSE: [&str; 3] = ["close.reasoning", "close.text", "close.call"];
const ITEM: [&str; 3] = ["item.reasoning", "item.text", "item.call"];

/// Input of a template: a section, and its text or a piece of it.
#[derive(Clone, Copy)]
struct Subject<'a> {
    output: &'a ModelOutput,
    section: Section,
    text: &'a [u8],
}

impl<'a> Subject<'a> {
    /// The whole output.
    const fn whole(output: &'a ModelOutput) -> Self {
        let section = Section { kind: ContentKind::Text, tokens: 0, call: 0 };
        Self { output, section, text: b"" }
    }
}

/// Writes one response: its events in order, or the whole.
#[derive(Debug, Default)]
pub(crate) struct Encoder {
    dialect: Option<Dialect>,
    /// The templates of deltas with the values of this response, once they are known.
    deltas: [Vec<Part>; 3],
    written: Written,
    /// The text of the section so far, if the dialect repeats it.
    text: Vec<u8>,
    /// The message of a frame.
    message: Vec<u8>,
}

/// The parts of a response that were written.
#[derive(Debug, Default)]
struct Written {
    events: u32,
    sections: u32,
    items: Vec<u8>,
}

impl Encoder {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self { dialect: Some(dialect), ..Self::default() }
    }

    /// Writes nothing, for plans of which only the times are needed.
    pub(crate) fn silent() -> Self {
        Self::default()
    }

    fn template(&self, name: &str) -> &'static [Part] {
        let templates = self.dialect.and_then(|dialect| TEMPLATES.get(&dialect));
        templates.and_then(|templates| templates.get(name)).map_or(&[], Vec::as_slice)
    }

    /// Whether the end of a stream repeats its content.
    fn repeats(&self) -> bool {
        self.dialect == Some(Dialect::OpenaiResponses)
    }

    /// Writes events; for a WebSocket as a frame.
    fn event(&mut self, name: &str, subject: Subject<'_>, out: &mut Vec<u8>) {
        let parts = self.template(name);
        if self.dialect == Some(Dialect::Websocket) && !parts.is_empty() {
            self.message.clear();
            self.written.write(parts, subject, &mut self.message);
            put_text(&self.message, out);
        } else {
            self.written.write(parts, subject, out);
        }
    }

    /// Writes the events before all content.
    pub(crate) fn start_stream(&mut self, output: &ModelOutput, out: &mut Vec<u8>) {
        self.event("start", Subject::whole(output), out);
    }

    /// Writes the events before a section.
    pub(crate) fn start_section(
        &mut self,
        output: &ModelOutput,
        section: Section,
        out: &mut Vec<u8>,
    ) {
        self.event(OPEN[section.kind as usize], Subject { output, section, text: b"" }, out);
    }

    /// Writes one content event. `text` has words, which are lower-case letters and blanks; of a
    /// tool call: a part of its arguments as JSON.
    pub(crate) fn delta(
        &mut self,
        output: &ModelOutput,
        section: Section,
        text: &[u8],
        out: &mut Vec<u8>,
    ) {
        let (kind, subject) = (section.kind as usize, Subject { output, section, text });
        if self.repeats() {
            self.text.extend_from_slice(text);
        }
        if self.dialect == Some(Dialect::Websocket) {
            return self.event(DELTA[kind], subject, out);
        }
        if self.deltas[kind].is_empty() {
            self.deltas[kind] = self.written.bind(self.template(DELTA[kind]), subject);
        }
        self.written.write(&self.deltas[kind], subject, out);
    }

    /// Writes the events after a section.
    pub(crate) fn end_section(
        &mut self,
        output: &ModelOutput,
        section: Section,
        out: &mut Vec<u8>,
    ) {
        let mut text = std::mem::take(&mut self.text);
        let subject = Subject { output, section, text: &text };
        self.event(CLOSE[section.kind as usize], subject, out);
        self.add_item(subject);
        text.clear();
        self.text = text;
    }

    /// Writes the events after all content.
    pub(crate) fn end_stream(&mut self, output: &ModelOutput, out: &mut Vec<u8>) {
        self.event("end", Subject::whole(output), out);
    }

    /// Writes an error event.
    pub(crate) fn error(&mut self, output: &ModelOutput, out: &mut Vec<u8>) {
        self.event("error", Subject::whole(output), out);
    }

    /// The body of a response that is not streamed.
    pub(super) fn full_response(mut self, output: &ModelOutput) -> Vec<u8> {
        for (section, text) in output.texts() {
            self.add_item(Subject { output, section, text: &text });
        }
        let mut out = Vec::with_capacity(512 + self.written.items.len());
        self.event("full", Subject::whole(output), &mut out);
        out
    }

    /// Adds a finished section to the items.
    fn add_item(&mut self, subject: Subject<'_>) {
        let mut items = std::mem::take(&mut self.written.items);
        let parts = self.template(ITEM[subject.section.kind as usize]);
        self.written.write(parts, subject, &mut items);
        self.written.items = items;
        self.written.sections += 1;
    }
}

impl Written {
    /// A template in which the values that stay the same in all deltas are filled in.
    fn bind(&mut self, parts: &[Part], subject: Subject<'_>) -> Vec<Part> {
        let (mut bound, mut literal) = (Vec::new(), Vec::new());
        for part in parts {
            if part.varies() {
                bound.extend([Part::Literal(std::mem::take(&mut literal)), part.clone()]);
            } else {
                self.write(slice::from_ref(part), subject, &mut literal);
            }
        }
        bound.push(Part::Literal(literal));
        bound
    }

    fn write(&mut self, parts: &[Part], subject: Subject<'_>, out: &mut Vec<u8>) {
        for part in parts {
            match part {
                Part::Literal(literal) => out.extend_from_slice(literal),
                Part::Value(value) => self.write_value(*value, subject, out),
                Part::If { condition, holds, parts }
                    if self.holds(*condition, subject) == *holds =>
                {
                    self.write(parts, subject, out);
                }
                Part::If { .. } => {}
            }
        }
    }

    fn holds(&self, condition: Condition, Subject { output, section, text }: Subject<'_>) -> bool {
        match condition {
            Condition::Usage => output.usage,
            Condition::StreamUsage => output.usage && output.stream_usage,
            Condition::Length => output.finish_reason == FinishReason::Length,
            Condition::Calls => output.calls_tool(),
            Condition::Text => output.tokens_of(ContentKind::Text) > 0,
            Condition::Empty => text.is_empty(),
            Condition::First => self.sections == 0,
            Condition::FirstCall => section.call == 0,
        }
    }

    fn write_value(&mut self, value: Value, subject: Subject<'_>, out: &mut Vec<u8>) {
        let Subject { output, section, text } = subject;
        let call = output.call(section);
        match value {
            Value::Id => put_hex(output.rng.id, out),
            Value::Model => out.extend_from_slice(output.model.as_bytes()),
            Value::PromptTokens => put_number(output.prompt_tokens, out),
            Value::OutputTokens => put_number(output.tokens(), out),
            Value::TotalTokens => {
                put_number(output.prompt_tokens + u64::from(output.tokens()), out);
            }
            Value::ReasoningTokens => put_number(output.tokens_of(ContentKind::Reasoning), out),
            Value::Items => out.extend_from_slice(&self.items),
            Value::Vectors => put_vectors(output, out),
            Value::Sequence => {
                put_number(self.events, out);
                self.events += 1;
            }
            Value::Index => put_number(self.sections, out),
            Value::CallIndex => put_number(section.call, out),
            Value::CallId => put_hex(call.map_or(0, |call| call.id), out),
            Value::CallName => out.extend(call.iter().flat_map(|call| call.name.bytes())),
            Value::Text => out.extend_from_slice(text),
            Value::Escaped => put_escaped(text, out),
        }
    }
}

fn put_number(number: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends sixteen hexadecimal digits.
fn put_hex(number: u64, out: &mut Vec<u8>) {
    out.extend(
        (0..16).rev().map(|place| b"0123456789abcdef"[((number >> (4 * place)) & 15) as usize]),
    );
}

/// Writes JSON into a JSON string: its quotes and backslashes are escaped.
fn put_escaped(json: &[u8], out: &mut Vec<u8>) {
    for &byte in json {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
}

// The vectors of OpenAI's embeddings.

/// Writes the objects of all vectors, with commas between them.
fn put_vectors(output: &ModelOutput, out: &mut Vec<u8>) {
    let mut rng = output.rng.fork(Purpose::Vector);
    out.reserve(output.vectors as usize * (64 + 7 * output.dimensions as usize));
    for index in 0..output.vectors {
        let comma = if index > 0 { "," } else { "" };
        let head = format!(r#"{comma}{{"object":"embedding","index":{index},"embedding":["#);
        out.extend_from_slice(head.as_bytes());
        put_vector(&mut rng, output.dimensions, out);
        out.extend_from_slice(b"]}");
    }
}

/// Writes numbers of three decimals in (-1, 1).
fn put_vector(rng: &mut Rng, dimensions: u32, out: &mut Vec<u8>) {
    for index in 0..dimensions {
        let bits = rng.next_u64();
        out.extend_from_slice(if index > 0 { b"," } else { b"" });
        out.extend_from_slice(if bits & 1 == 0 { b"0." } else { b"-0." });
        // 1001 to 1999 without the first digit: always three decimals, and never "-0.000".
        out.extend_from_slice(
            &itoa::Buffer::new().format(1_001 + (bits >> 1) % 999).as_bytes()[1..],
        );
    }
}
