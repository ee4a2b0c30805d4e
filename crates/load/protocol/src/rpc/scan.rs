//! An incremental JSON parser that keeps nothing but the values that are asked for.
//!
//! Every byte is checked (RFC 8259), wherever it stands; a text that is not asked for is passed
//! over. Memory: one frame for each open container, and the start of one text.

use std::borrow::Cow;

use super::MAX_KEPT;
use super::utf8::Utf8Check;
use crate::json_escape::unescaped_len;

/// Deepest nesting of objects and arrays.
const MAX_DEPTH: usize = 128;
/// Longest name of a member that is looked at; names that are asked for are shorter.
const MAX_NAME: usize = 64;

/// What was expected where something else was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScanError {
    pub(super) expected: &'static str,
    /// The position of the byte in the document.
    pub(super) at: u64,
}

type Result<T> = std::result::Result<T, ScanError>;

/// A value that was asked for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value<'a> {
    /// A text, and whether it is whole: of a long one only the start is kept.
    Text(Cow<'a, str>, bool),
    /// A number as it is written.
    Number(&'a str),
    /// `true` or `false`.
    Bool(bool),
    /// `null`.
    Null,
}

/// Says which values of a document are asked for, and takes them. A place is known by a node; the
/// default node is a place in which nothing is asked for, and nothing below it.
pub(super) trait Visitor {
    /// A place in the document.
    type Node: Copy + Default + PartialEq + std::fmt::Debug;

    /// The place of a member of an object.
    fn member(&self, object: Self::Node, name: &str) -> Self::Node;
    /// The place of the elements of an array.
    fn element(&self, array: Self::Node) -> Self::Node;
    /// An object (or else an array) begins.
    fn opened(&mut self, at: Self::Node, is_object: bool);
    /// A text, number or word.
    fn value(&mut self, at: Self::Node, value: Value<'_>);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A value must begin.
    Value,
    /// A value or the end of an array.
    ValueOrEnd,
    /// A name or the end of an object.
    NameOrEnd,
    /// A name.
    Name,
    /// The colon behind a name.
    Colon,
    /// A comma or the end of the container.
    Next,
    /// Within a text; a name is one, too.
    Text {
        is_name: bool,
    },
    /// Behind a backslash.
    Escape {
        is_name: bool,
    },
    /// Within the digits of `\u`.
    Hex {
        is_name: bool,
        left: u8,
    },
    Number(Digits),
    /// Within a word, of which this is left.
    Word(&'static [u8]),
    /// The document has ended.
    Done,
}

/// Where in a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Digits {
    Minus,
    Zero,
    Whole,
    Point,
    Fraction,
    Exponent,
    Sign,
    Power,
}

/// The parser of one document after another; nodes are those of a [`Visitor`].
#[derive(Debug)]
pub(super) struct Scanner<N> {
    state: State,
    /// Open containers: whether each is an object, and its place.
    open: Vec<(bool, N)>,
    /// The place of the value that is read, or comes next.
    node: N,
    root: N,
    held: Vec<u8>,
    /// How many bytes of the current token are kept at most.
    room: usize,
    /// Whether bytes of it were dropped.
    cut: bool,
    /// Of the current text: where it began, and whether it is UTF-8 so far.
    began: u64,
    utf8: Utf8Check,
    at: u64,
}

impl<N: Copy + Default + PartialEq + std::fmt::Debug> Scanner<N> {
    /// A parser of documents whose whole is at `root`.
    pub(super) const fn new(root: N) -> Self {
        Self {
            state: State::Value,
            open: Vec::new(),
            node: root,
            root,
            held: Vec::new(),
            room: 0,
            cut: false,
            began: 0,
            utf8: Utf8Check::new(),
            at: 0,
        }
    }

    /// Begins the next document.
    pub(super) fn reset(&mut self) {
        self.open.clear();
        self.held.clear();
        (self.state, self.node, self.cut, self.at) = (State::Value, self.root, false, 0);
    }

    /// Bytes that it holds.
    #[cfg(test)]
    pub(super) const fn kept(&self) -> usize {
        self.held.capacity() + self.open.capacity() * size_of::<(bool, N)>()
    }

    /// Whether anything but white space has been read.
    pub(super) fn has_begun(&self) -> bool {
        self.state != State::Value || !self.open.is_empty()
    }

    /// Reads more bytes.
    ///
    /// # Errors
    /// They cannot be a part of a JSON document at this point.
    pub(super) fn feed<V: Visitor<Node = N>>(
        &mut self,
        bytes: &[u8],
        visitor: &mut V,
    ) -> Result<()> {
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            let clean = self.clean_text(rest)?;
            if clean > 0 {
                rest = &rest[clean..];
            } else if self.step(byte, visitor)? {
                self.at += 1;
                rest = after;
            }
        }
        Ok(())
    }

    /// Within a text: reads the bytes before the next one that means anything else, and says how
    /// many they are.
    fn clean_text(&mut self, bytes: &[u8]) -> Result<usize> {
        if !matches!(self.state, State::Text { .. }) {
            return Ok(0);
        }
        let clean = &bytes[..unescaped_len(bytes)];
        if !self.utf8.feed(clean) {
            return self.no_utf8();
        }
        self.hold(clean);
        self.at += clean.len() as u64;
        Ok(clean.len())
    }

    /// Ends the document.
    ///
    /// # Errors
    /// It is not whole.
    pub(super) fn finish<V: Visitor<Node = N>>(&mut self, visitor: &mut V) -> Result<()> {
        if let State::Number(digits) = self.state {
            self.end_number(digits, visitor)?;
        }
        if self.state == State::Done { Ok(()) } else { self.expected("more: the JSON is cut off") }
    }

    /// However the bytes are split, the text is named in which they are.
    const fn no_utf8<T>(&self) -> Result<T> {
        Err(ScanError { expected: "UTF-8 in the text", at: self.began })
    }

    const fn expected<T>(&self, expected: &'static str) -> Result<T> {
        Err(ScanError { expected, at: self.at })
    }

    /// Reads a byte; `false` if it is to be read again, because it only ended a number.
    fn step<V: Visitor<Node = N>>(&mut self, byte: u8, visitor: &mut V) -> Result<bool> {
        match self.state {
            State::Text { is_name } => self.in_text(byte, is_name, visitor)?,
            State::Escape { is_name } => self.escape(byte, is_name)?,
            State::Hex { is_name, left } => {
                if !byte.is_ascii_hexdigit() {
                    return self.expected("a hexadecimal digit");
                }
                self.hold(&[byte]);
                self.state = match left {
                    1 => State::Text { is_name },
                    _ => State::Hex { is_name, left: left - 1 },
                };
            }
            State::Number(digits) => return self.in_number(byte, digits, visitor),
            State::Word(left) => self.in_word(byte, left, visitor)?,
            _ if matches!(byte, b' ' | b'\n' | b'\r' | b'\t') => {}
            State::ValueOrEnd if byte == b']' => self.close(),
            State::Value | State::ValueOrEnd => self.begin(byte, visitor)?,
            State::NameOrEnd if byte == b'}' => self.close(),
            State::NameOrEnd | State::Name => self.begin_name(byte)?,
            State::Colon if byte == b':' => self.state = State::Value,
            State::Colon => return self.expected("`:`"),
            State::Next => self.next(byte, visitor)?,
            State::Done => return self.expected("the end"),
        }
        Ok(true)
    }

    fn begin<V: Visitor<Node = N>>(&mut self, byte: u8, visitor: &mut V) -> Result<()> {
        // Nothing is asked for at the default node.
        self.keep(if self.node == N::default() { 0 } else { MAX_KEPT });
        self.state = match byte {
            b'"' => State::Text { is_name: false },
            b'{' | b'[' => return self.open(byte == b'{', visitor),
            b'-' => State::Number(Digits::Minus),
            b'0' => State::Number(Digits::Zero),
            b'1'..=b'9' => State::Number(Digits::Whole),
            b't' => State::Word(b"rue"),
            b'f' => State::Word(b"alse"),
            b'n' => State::Word(b"ull"),
            _ => return self.expected("a value"),
        };
        if byte != b'"' {
            self.hold(&[byte]);
        }
        Ok(())
    }

    fn open<V: Visitor<Node = N>>(&mut self, is_object: bool, visitor: &mut V) -> Result<()> {
        if self.open.len() == MAX_DEPTH {
            return self.expected("less nesting");
        }
        visitor.opened(self.node, is_object);
        self.open.push((is_object, self.node));
        if is_object {
            self.state = State::NameOrEnd;
        } else {
            self.state = State::ValueOrEnd;
            self.node = visitor.element(self.node);
        }
        Ok(())
    }

    fn close(&mut self) {
        self.open.pop();
        self.end_value();
    }

    fn end_value(&mut self) {
        self.state = if self.open.is_empty() { State::Done } else { State::Next };
    }

    fn next<V: Visitor<Node = N>>(&mut self, byte: u8, visitor: &V) -> Result<()> {
        let Some(&(is_object, node)) = self.open.last() else { return self.expected("the end") };
        match (byte, is_object) {
            (b',', true) => self.state = State::Name,
            (b',', false) => {
                self.state = State::Value;
                self.node = visitor.element(node);
            }
            (b'}', true) | (b']', false) => self.close(),
            _ => return self.expected("`,` or the end of the list"),
        }
        Ok(())
    }

    fn begin_name(&mut self, byte: u8) -> Result<()> {
        if byte != b'"' {
            return self.expected("a name");
        }
        let looked_at = self.open.last().is_some_and(|(_, object)| *object != N::default());
        self.keep(if looked_at { MAX_NAME } else { 0 });
        self.state = State::Text { is_name: true };
        Ok(())
    }

    /// Begins a token of which so many bytes are kept.
    fn keep(&mut self, room: usize) {
        self.held.clear();
        (self.room, self.cut) = (room, false);
        (self.began, self.utf8) = (self.at, Utf8Check::new());
    }

    fn hold(&mut self, bytes: &[u8]) {
        let room = self.room.saturating_sub(self.held.len());
        self.cut |= bytes.len() > room;
        self.held.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn in_text<V: Visitor<Node = N>>(
        &mut self,
        byte: u8,
        is_name: bool,
        visitor: &mut V,
    ) -> Result<()> {
        if !self.utf8.is_whole() {
            return self.no_utf8();
        }
        match byte {
            b'\\' => {
                self.hold(b"\\");
                self.state = State::Escape { is_name };
            }
            b'"' if is_name => {
                let object = self.open.last().map(|(_, object)| *object).unwrap_or_default();
                self.node = if self.cut || object == N::default() {
                    N::default()
                } else {
                    visitor.member(object, &text(&self.held))
                };
                self.state = State::Colon;
            }
            b'"' => {
                if self.node != N::default() {
                    visitor.value(self.node, Value::Text(text(&self.held), !self.cut));
                }
                self.end_value();
            }
            _ => return self.expected("the end of the text"),
        }
        Ok(())
    }

    fn escape(&mut self, byte: u8, is_name: bool) -> Result<()> {
        self.state = match byte {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => State::Text { is_name },
            b'u' => State::Hex { is_name, left: 4 },
            _ => return self.expected("an escape"),
        };
        self.hold(&[byte]);
        Ok(())
    }

    fn in_word<V: Visitor<Node = N>>(
        &mut self,
        byte: u8,
        left: &'static [u8],
        visitor: &mut V,
    ) -> Result<()> {
        let rest = match left.split_first() {
            Some((&wanted, rest)) if wanted == byte => rest,
            _ => return self.expected("a value"),
        };
        self.state = State::Word(rest);
        if !rest.is_empty() {
            return Ok(());
        }
        let value = match self.held.first() {
            Some(b't') => Value::Bool(true),
            Some(b'f') => Value::Bool(false),
            _ => Value::Null,
        };
        if self.node != N::default() {
            visitor.value(self.node, value);
        }
        self.end_value();
        Ok(())
    }

    fn in_number<V: Visitor<Node = N>>(
        &mut self,
        byte: u8,
        digits: Digits,
        visitor: &mut V,
    ) -> Result<bool> {
        use Digits::{Exponent, Fraction, Minus, Point, Power, Sign, Whole, Zero};
        let next = match (digits, byte) {
            (Minus, b'0') => Zero,
            (Minus | Whole, b'0'..=b'9') => Whole,
            (Zero | Whole, b'.') => Point,
            (Zero | Whole | Fraction, b'e' | b'E') => Exponent,
            (Point | Fraction, b'0'..=b'9') => Fraction,
            (Exponent, b'+' | b'-') => Sign,
            (Exponent | Sign | Power, b'0'..=b'9') => Power,
            _ => {
                self.end_number(digits, visitor)?;
                return Ok(false);
            }
        };
        self.hold(&[byte]);
        self.state = State::Number(next);
        Ok(true)
    }

    fn end_number<V: Visitor<Node = N>>(&mut self, digits: Digits, visitor: &mut V) -> Result<()> {
        if !matches!(digits, Digits::Zero | Digits::Whole | Digits::Fraction | Digits::Power) {
            return self.expected("a digit");
        }
        if self.node != N::default() {
            visitor.value(self.node, Value::Number(&text(&self.held)));
        }
        self.end_value();
        Ok(())
    }
}

/// The text that is written like this; of a part that ends within a character or an escape, what
/// can be read.
fn text(written: &[u8]) -> Cow<'_, str> {
    let valid = written.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let Some(last) = valid.rfind('\\') else { return Cow::Borrowed(valid) };
    let read = unescape(valid).or_else(|| unescape(valid[..last].trim_end_matches('\\')));
    read.map_or(Cow::Borrowed(valid), Cow::Owned)
}

fn unescape(text: &str) -> Option<String> {
    serde_json::from_str(&format!("\"{text}\"")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Asks for everything, and writes down what it gets with its path.
    #[derive(Default)]
    struct All(Vec<String>);

    impl Visitor for All {
        /// The depth.
        type Node = u8;

        fn member(&self, object: u8, _: &str) -> u8 {
            object + 1
        }

        fn element(&self, array: u8) -> u8 {
            array + 1
        }

        fn opened(&mut self, at: u8, is_object: bool) {
            self.0.push(format!("{at}{}", if is_object { '{' } else { '[' }));
        }

        fn value(&mut self, at: u8, value: Value<'_>) {
            self.0.push(format!("{at}{value:?}"));
        }
    }

    fn scan(pieces: &[&[u8]]) -> Result<Vec<String>> {
        let (mut scanner, mut all) = (Scanner::new(1), All::default());
        for piece in pieces {
            scanner.feed(piece, &mut all)?;
        }
        scanner.finish(&mut all)?;
        Ok(all.0)
    }

    #[test]
    fn values_are_given_with_their_place() {
        let text = br#" {"a": [1, -2.5e+3, {"b\u0041": "x\ny"}], "c": true, "d": null, "e": {}} "#;
        let expected = [
            "1{",
            "2[",
            "3Number(\"1\")",
            "3Number(\"-2.5e+3\")",
            "3{",
            "4Text(\"x\\ny\", true)",
            "2Bool(true)",
            "2Null",
            "2{",
        ];
        for at in 0..=text.len() {
            let (start, end) = text.split_at(at);
            assert_eq!(scan(&[start, end]).unwrap(), expected, "split at {at}");
        }
    }

    #[test]
    fn of_a_long_text_the_start_is_kept() {
        let long = format!("\"{}\"", "é".repeat(MAX_KEPT));
        let kept = format!("1Text({:?}, false)", "é".repeat(MAX_KEPT / 2));
        assert_eq!(scan(&[long.as_bytes()]).unwrap(), [kept]);
        // The cut lies within an escape.
        let escape = format!("\"{}\\u00e9x\"", "a".repeat(MAX_KEPT - 3));
        let kept = format!("1Text({:?}, false)", "a".repeat(MAX_KEPT - 3));
        assert_eq!(scan(&[escape.as_bytes()]).unwrap(), [kept]);
    }

    #[test]
    fn a_document_that_is_no_json_is_refused_where_it_breaks() {
        for (text, at) in [
            ("", 0),
            ("{", 1),
            ("{]", 1),
            ("[1,]", 3),
            ("{\"a\":1,}", 7),
            ("{\"a\" 1}", 5),
            ("01", 1),
            ("1.", 2),
            ("-", 1),
            ("1e+", 3),
            ("tru", 3),
            ("trux", 3),
            ("\"\\x\"", 2),
            ("\"\\u00g0\"", 5),
            ("\"a\nb\"", 2),
            ("{} {}", 3),
            ("nul", 3),
        ] {
            assert_eq!(scan(&[text.as_bytes()]).unwrap_err().at, at, "{text}");
        }
        for bytes in [&b"[\"\xff\"]"[..], b"[\"\xc3\"]", b"[\"\xc3\\n\"]"] {
            for cut in 0..bytes.len() {
                let (start, end) = bytes.split_at(cut);
                assert_eq!(scan(&[start, end]).unwrap_err().expected, "UTF-8 in the text");
            }
        }
        let deep = "[".repeat(MAX_DEPTH + 1);
        assert_eq!(scan(&[deep.as_bytes()]).unwrap_err().expected, "less nesting");
    }

    proptest! {
        /// Another parser is the oracle; both refuse or both accept, however the text is split.
        #[test]
        fn it_accepts_what_json_is(
            text in r#"(\{|\}|\[|\]|,|:|"a"|"\\n"|"|1|0|-|\.|e|true|null| |\\){0,12}"#,
            at in 0usize..40,
        ) {
            let (start, end) = text.as_bytes().split_at(at.min(text.len()));
            let known = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
            prop_assert_eq!(scan(&[start, end]).is_ok(), known, "{}", text);
        }
    }
}
