//! The walk over a document: which strings are texts, and which of them belong together.

use std::ops::Range;

use crate::error::Unreadable;
use crate::names::{DATA, GROUPS, Lists, is_identifier, is_protocol_name, lists_with};
use crate::tokens::{Token, Tokens};

/// Numbers with fewer digits are not personal data.
const SHORTEST_NUMBER: usize = 9;

/// The origin of a document's texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A request, an answer or an event of an LLM API: identifiers and protocol words are not
    /// texts.
    Protocol,
    /// The arguments or the result of a tool: every string is a text, and the strings of one member
    /// at the top are also judged together.
    Tool,
    /// Anything else: every string is a text.
    Data,
}

/// A step of the walk.
#[derive(Clone, Debug)]
pub(crate) enum Step<'a> {
    /// The start of an object or an array, and its member name.
    Open { name: Option<&'a str>, object: bool, at: usize },
    /// The end of an object or an array; the position after it.
    Close { end: usize },
    /// A text.
    Text(Leaf<'a>),
    /// A number, or a string other than a text: the name of the member, and its JSON.
    Other { name: Option<&'a str>, json: &'a str },
}

/// A text of a document.
#[derive(Clone, Debug)]
pub(crate) struct Leaf<'a> {
    pub(crate) kind: Kind,
    /// The bytes between the quotes, with escapes; the digits of a number.
    pub(crate) inside: &'a str,
    /// The position in the document, quotes included.
    pub(crate) range: Range<usize>,
    /// The name of its member, with escapes; `None` for an element of an array.
    pub(crate) name: Option<&'a str>,
    /// The group that it is a part of; `None` for a separate text.
    pub(crate) group: Option<u32>,
}

/// The kind of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The name of a member.
    Name,
    /// A string.
    String,
    /// A number.
    Number,
}

/// The walk over a document.
#[derive(Clone, Debug)]
pub(crate) struct Walk<'a> {
    tokens: Tokens<'a>,
    source: Source,
    /// The name of the member whose value comes next.
    name: Option<&'a str>,
    /// The lists with the last name.
    lists: Lists,
    /// The depth of the outermost object or array with data.
    data: Option<u32>,
    /// Whether each element of the member at the top is a group.
    list: bool,
    group: u32,
}

impl<'a> Walk<'a> {
    pub(crate) const fn new(document: &'a str, source: Source) -> Self {
        let tokens = Tokens::new(document);
        Self { tokens, source, name: None, lists: 0, data: None, list: false, group: 0 }
    }

    /// The next step; None at the end.
    ///
    /// # Errors
    /// Those of [`Tokens::next`].
    pub(crate) fn next(&mut self) -> Result<Option<Step<'a>>, Unreadable> {
        loop {
            let Some(token) = self.tokens.next()? else { return Ok(None) };
            let name = self.name.take();
            let step = match token {
                Token::Open { object, at } => self.open(name, object, at),
                Token::Close { end } => self.close(end),
                Token::Key(inside, range) => match self.key(inside, range) {
                    Some(step) => step,
                    None => continue,
                },
                Token::Text(inside, range) => self.text(name, inside, range),
                Token::Scalar(scalar, range) => self.scalar(name, scalar, range),
            };
            return Ok(Some(step));
        }
    }

    fn is_data(&self) -> bool {
        self.source != Source::Protocol || self.data.is_some()
    }

    fn open(&mut self, name: Option<&'a str>, object: bool, at: usize) -> Step<'a> {
        self.begin_element(1);
        let data = name.is_some_and(|name| self.lists & DATA != 0 && (object || name != "input"));
        if data && self.data.is_none() {
            self.data = Some(self.tokens.depth());
        }
        Step::Open { name, object, at }
    }

    fn close(&mut self, end: usize) -> Step<'a> {
        if self.data.is_some_and(|depth| depth > self.tokens.depth()) {
            self.data = None;
        }
        Step::Close { end }
    }

    /// A name is a step if it is a text.
    fn key(&mut self, inside: &'a str, range: Range<usize>) -> Option<Step<'a>> {
        self.name = Some(inside);
        self.lists = lists_with(inside);
        if self.tokens.depth() == 1 {
            self.group += 1;
            self.list = self.lists & GROUPS != 0;
        }
        let text = self.is_data() || !is_protocol_name(self.lists, inside);
        text.then_some(Step::Text(Leaf {
            kind: Kind::Name,
            inside,
            range,
            name: None,
            group: None,
        }))
    }

    fn text(&mut self, name: Option<&'a str>, inside: &'a str, range: Range<usize>) -> Step<'a> {
        self.begin_element(0);
        let data = self.is_data();
        if !data && name.is_some_and(|name| is_identifier(self.lists, name, inside)) {
            return Step::Other { name, json: inside };
        }
        let group = (!data || self.source == Source::Tool).then_some(self.group);
        Step::Text(Leaf { kind: Kind::String, inside, range, name, group })
    }

    fn scalar(&mut self, name: Option<&'a str>, scalar: &'a str, range: Range<usize>) -> Step<'a> {
        let long = scalar.len() >= SHORTEST_NUMBER
            && scalar.bytes().filter(u8::is_ascii_digit).count() >= SHORTEST_NUMBER;
        if !long
            || !self.is_data() && name.is_some_and(|name| is_identifier(self.lists, name, scalar))
        {
            return Step::Other { name, json: scalar };
        }
        Step::Text(Leaf { kind: Kind::Number, inside: scalar, range, name, group: None })
    }

    /// Begins a group for an element of a list at the top. `inner` is 1 if the element is an object
    /// or an array that was just opened, else 0.
    const fn begin_element(&mut self, inner: u32) {
        if self.list && self.tokens.depth() == 2 + inner && self.tokens.is_array(inner) {
            self.group += 1;
        }
    }
}
