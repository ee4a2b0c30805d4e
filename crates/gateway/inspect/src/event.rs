//! One server-sent event: its texts, and the text of the stream that each continues.

use std::borrow::Cow;
use std::ops::Range;

use crate::error::Unreadable;
use crate::walk::{Kind, Leaf, Source, Step, Walk};

/// The texts of an event.
#[derive(Debug, Default)]
pub(crate) struct Event {
    pub(crate) texts: Vec<EventText>,
    pub(crate) ends: Ends,
}

/// The texts of the stream that an event ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ends {
    #[default]
    Nothing,
    /// The texts of one choice or block.
    Of(u64),
    All,
}

/// A text of an event.
#[derive(Clone, Debug)]
pub(crate) struct EventText {
    /// The byte range in the event; a JSON string includes its quotes.
    pub(crate) range: Range<usize>,
    pub(crate) form: Form,
    /// The text of the stream that it continues; `None` for a separate text.
    pub(crate) path: Option<u64>,
    /// The choice or block that it belongs to; 0 for neither.
    pub(crate) owner: u64,
    /// Whether the whole text is JSON: the arguments of a tool.
    pub(crate) json: bool,
    /// Other parts of the event with the same text, with their replacement if it is redacted.
    pub(crate) copies: Vec<(Range<usize>, &'static str)>,
}

/// The form of a text in an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// As a JSON string.
    String,
    /// As a JSON number.
    Number,
    /// Plain data.
    Plain,
}

/// The path of plain data.
const PLAIN: u64 = 1;

impl Event {
    /// Reads an event with its empty line.
    ///
    /// # Errors
    /// [`Unreadable::Json`] and others, if its data looks like JSON and its texts cannot be found.
    pub(crate) fn read(event: &str) -> Result<Self, Unreadable> {
        let mut read = Self::default();
        let data = Data::from_event(event, &mut read.texts);
        let trimmed = data.text.trim_ascii();
        match trimmed.as_bytes().first() {
            None => {}
            Some(b'[') if trimmed == "[DONE]" => read.ends = Ends::All,
            Some(b'{' | b'[' | b'"') => Reader::new(&data).read(&mut read)?,
            Some(_) => read.texts.extend(data.lines.iter().map(DataLine::plain)),
        }
        Ok(read)
    }
}

/// The data of an event: the values of its `data` lines, joined by line breaks.
struct Data<'a> {
    text: Cow<'a, str>,
    lines: Vec<DataLine>,
}

/// A line of data: its start in the joined data, and its place in the event.
struct DataLine {
    start: usize,
    place: Range<usize>,
}

impl DataLine {
    fn plain(&self) -> EventText {
        let (path, copies) = (Some(PLAIN), Vec::new());
        EventText {
            range: self.place.clone(),
            form: Form::Plain,
            path,
            owner: 0,
            json: false,
            copies,
        }
    }
}

impl<'a> Data<'a> {
    /// Lines other than `data` are separate texts.
    fn from_event(event: &'a str, others: &mut Vec<EventText>) -> Self {
        let mut data = Self { text: Cow::Borrowed(""), lines: Vec::new() };
        let mut at = 0;
        for line in event.split_inclusive('\n') {
            let start = at;
            at += line.len();
            let line = line.strip_suffix('\n').unwrap_or(line);
            let line = line.strip_suffix('\r').unwrap_or(line);
            match value(line) {
                Some(value) => {
                    let from = start + line.len() - value.len();
                    data.add(value, from);
                }
                None if may_be_personal(line) => {
                    let line = DataLine { start: 0, place: start..start + line.len() };
                    others.push(EventText { path: None, ..line.plain() });
                }
                None => {}
            }
        }
        data
    }

    fn add(&mut self, value: &'a str, from: usize) {
        let start = if self.lines.is_empty() {
            self.text = Cow::Borrowed(value);
            0
        } else {
            let text = self.text.to_mut();
            text.push('\n');
            text.push_str(value);
            text.len() - value.len()
        };
        self.lines.push(DataLine { start, place: from..from + value.len() });
    }

    /// The place in the event of a position in the data.
    fn place(&self, at: usize) -> usize {
        let after = self.lines.partition_point(|line| line.start <= at);
        let line = after.checked_sub(1).and_then(|line| self.lines.get(line));
        line.map_or(0, |line| (line.place.start + at - line.start).min(line.place.end))
    }

    fn range(&self, range: &Range<usize>) -> Range<usize> {
        self.place(range.start)..self.place(range.end.saturating_sub(1)) + 1
    }
}

/// The value of a `data` line.
fn value(line: &str) -> Option<&str> {
    let value = line.strip_prefix("data")?;
    match value.strip_prefix(':') {
        Some(value) => Some(value.strip_prefix(' ').unwrap_or(value)),
        None => value.is_empty().then_some(value),
    }
}

/// Whether a line could contain personal data: an `@` or four digits.
fn may_be_personal(line: &str) -> bool {
    line.contains('@') || line.bytes().filter(u8::is_ascii_digit).count() >= 4
}

/// The kind of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Container {
    #[default]
    Object,
    Array,
}

/// An object or an array of an event.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    parent: usize,
    name: u64,
    kind: Container,
    start: usize,
    /// The number of its objects and arrays so far.
    elements: u64,
    /// Its index in the surrounding array; 0 where the elements are parts of one text.
    place: u64,
    /// The members that number it: `index`, `output_index`.
    numbers: u64,
    /// The key of its path, without its numbers.
    skipped: bool,
    /// Whether a member marks its end.
    ends: bool,
    /// The parts that repeat one of its texts: `bytes` and `top_logprobs`.
    copies: [Option<(usize, usize)>; 2],
}

/// Reads the texts of an event that is JSON.
struct Reader<'a, 'd> {
    data: &'d Data<'a>,
    nodes: Vec<Node>,
    /// The innermost open node. Node 0 is outside the document.
    open: usize,
    kind: u64,
    ends_all: bool,
    /// Whether it is a message of JSON-RPC.
    rpc: bool,
}

impl<'a, 'd> Reader<'a, 'd> {
    fn new(data: &'d Data<'a>) -> Self {
        let mut nodes = Vec::with_capacity(8);
        nodes.push(Node { skipped: true, ..Node::default() });
        Self { data, nodes, open: 0, kind: 0, ends_all: false, rpc: false }
    }

    fn read(mut self, event: &mut Event) -> Result<(), Unreadable> {
        let mut walk = Walk::new(&self.data.text, Source::Protocol);
        let mut leaves: Vec<(Leaf<'_>, usize)> = Vec::new();
        while let Some(step) = walk.next()? {
            match step {
                Step::Open { name, object, at } => self.enter(name, object, at),
                Step::Close { end } => self.leave(end),
                Step::Text(leaf) => leaves.push((leaf, self.open)),
                Step::Other { name: Some(name), json } => self.note(name, json),
                Step::Other { .. } => {}
            }
        }
        event.texts.extend(leaves.iter().map(|(leaf, node)| self.text(leaf, *node)));
        event.ends = self.ends();
        Ok(())
    }

    fn node(&self, at: usize) -> Node {
        self.nodes.get(at).copied().unwrap_or_default()
    }

    fn enter(&mut self, name: Option<&str>, object: bool, start: usize) {
        let parent = self.node(self.open);
        let pieces =
            parent.kind == Container::Array && self.node(parent.parent).name == hash("logprobs");
        let place = if name.is_some() || pieces { 0 } else { parent.elements };
        if let Some(parent) = self.nodes.get_mut(self.open) {
            parent.elements += 1;
        }
        let skipped = matches!(name, Some("delta" | "content_block"));
        let name = name.map_or(0, hash);
        let kind = if object { Container::Object } else { Container::Array };
        let node = Node { parent: self.open, name, kind, start, place, skipped, ..Node::default() };
        self.nodes.push(node);
        self.open = self.nodes.len() - 1;
    }

    fn leave(&mut self, end: usize) {
        let node = self.node(self.open);
        let copy = match node.name {
            name if name == hash("bytes") => Some(0),
            name if name == hash("top_logprobs") => Some(1),
            _ => None,
        };
        if let (Some(copy), Some(parent)) = (copy, self.nodes.get_mut(node.parent)) {
            parent.copies[copy] = Some((node.start, end));
        }
        self.open = node.parent;
    }

    /// Notes a member other than a text that describes its object.
    fn note(&mut self, name: &str, json: &str) {
        let top = self.node(self.open).parent == 0;
        let Some(node) = self.nodes.get_mut(self.open) else { return };
        match name {
            "finish_reason" if json != "null" => node.ends = true,
            "lastChunk" if json == "true" => node.ends = true,
            "jsonrpc" if top => self.rpc = true,
            "type" if top => {
                self.kind = hash(json);
                node.ends |= json.ends_with("_stop");
                self.ends_all |= matches!(json.rsplit('.').next(), Some("done" | "completed"));
            }
            // Members may come in any order.
            _ if name == "index" || name.ends_with("_index") => {
                node.numbers = node.numbers.wrapping_add(mix(hash(name), hash(json)));
            }
            _ => {}
        }
    }

    fn text(&self, leaf: &Leaf<'_>, node: usize) -> EventText {
        let form = if leaf.kind == Kind::Number { Form::Number } else { Form::String };
        // In messages of agents and tool servers only the parts of an artifact continue a text.
        let goes_on = !self.rpc || self.around(node).any(|around| around.name == hash("artifact"));
        let continues = leaf.kind == Kind::String && goes_on;
        let copies = self.node(node).copies.into_iter().zip(["null", "[]"]);
        let copies = copies.filter_map(|(range, json)| {
            let (start, end) = range?;
            Some((self.data.range(&(start..end)), json))
        });
        EventText {
            range: self.data.range(&leaf.range),
            form,
            path: continues.then(|| self.path(leaf, node)),
            owner: self.owner(node),
            json: matches!(leaf.name, Some("arguments" | "partial_json" | "input")),
            copies: copies.collect(),
        }
    }

    /// The nodes around a node, the innermost first.
    fn around(&self, node: usize) -> impl Iterator<Item = Node> {
        let first = Some(node).filter(|node| *node > 0);
        std::iter::successors(first, |at: &usize| {
            Some(self.node(*at).parent).filter(|parent| *parent > 0)
        })
        .map(|at| self.node(at))
    }

    /// The key of a text of the stream, from the names and numbers around it.
    fn path(&self, leaf: &Leaf<'_>, node: usize) -> u64 {
        let name = leaf.name.unwrap_or_default();
        let mut path = mix(2, hash(name));
        if name == "delta" {
            path = mix(path, self.kind);
        }
        for node in self.around(node) {
            let place = if node.numbers > 0 { node.numbers } else { node.place };
            if !node.skipped {
                path = mix(path, node.name);
            }
            path = mix(path, place);
        }
        path
    }

    /// The choice or block: all numbers around a place; 0 without any.
    fn owner(&self, node: usize) -> u64 {
        let numbers = self.around(node).map(|node| node.numbers).filter(|numbers| *numbers > 0);
        // The innermost number distinguishes the tool calls of a choice.
        numbers.last().unwrap_or_default()
    }

    fn ends(&self) -> Ends {
        let mut ending = (1..self.nodes.len()).filter(|at| self.node(*at).ends);
        match (self.ends_all, ending.next(), ending.next()) {
            (true, ..) | (_, Some(_), Some(_)) => Ends::All,
            (false, None, _) => Ends::Nothing,
            (false, Some(at), None) => match self.owner(at) {
                0 => Ends::All,
                owner => Ends::Of(owner),
            },
        }
    }
}

/// FNV-1a, never 0. A collision only merges two texts.
pub(crate) const fn hash(text: &str) -> u64 {
    let bytes = text.as_bytes();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut at = 0;
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    hash | 1
}

/// Combines two hashes.
pub(crate) const fn mix(a: u64, b: u64) -> u64 {
    (a.rotate_left(5) ^ b).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
