//! Redacts personal data in a stream.
//!
//! A byte is held back only while it may still become part of a match: a word until its end,
//! because it may become an e-mail address; a number until the next word shows that it has ended.
//! White space after a word, quotes, colons, braces, line breaks and non-ASCII characters end a
//! word, and everything before them is released at once. So each frame of an SSE stream leaves with
//! the chunk that completes it.
//!
//! The bytes between two such ends are a segment, and the last one is open until its end is seen.
//! Where a segment ends depends only on the bytes, never on the chunks, and so does the output.

mod text_scanner;

use std::ops::Range;
use std::sync::Arc;

pub use text_scanner::{Redaction, TextScanner};

use crate::normalise::fold_character;
use crate::policy::Policy;

/// Redacts personal data in a stream of bytes, such as the body of a response.
///
/// Bytes that are not UTF-8 pass unchanged. The text is read as JSON, like in a [`TextScanner`]: a
/// backslash starts an escape, a bare JSON number becomes `0`, so that JSON stays valid, and other
/// matches become [`MASK`](crate::MASK).
///
/// # What is caught
/// Values within one JSON string or one frame that match a rule with `stream: true`.
///
/// Not caught: a value that is split over several frames (use a [`TextScanner`] for the texts
/// inside them); street addresses and dates with the month in words, because ordinary words would
/// have to be held back; a value whose name is more than 64 bytes before it; and a value across a
/// cut in a run of numbers of more than 256 bytes.
#[derive(Clone, Debug)]
pub struct Scrubber {
    scanner: TextScanner,
    /// The input that has not been passed on.
    held: Vec<u8>,
    /// The length of the input that has been passed on.
    passed: u64,
}

impl Scrubber {
    /// A scrubber at the start of a stream.
    pub fn new(policy: Arc<Policy>) -> Self {
        Self { scanner: TextScanner::new(policy, true), held: Vec::new(), passed: 0 }
    }

    /// Takes a chunk and returns the bytes to pass on.
    pub fn feed(&mut self, chunk: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(chunk);
        let mut found = Vec::new();
        let input = self.held.get(self.place(self.scanner.fed())..).unwrap_or_default();
        let last = input.utf8_chunks().last().map_or(&[][..], |part| part.invalid());
        let is_open = str::from_utf8(last).is_err_and(|error| error.error_len().is_none());
        self.scan(self.held.len() - if is_open { last.len() } else { 0 }, &mut found);
        self.pass(self.scanner.decided(), &found)
    }

    /// The bytes that are held back now.
    pub const fn buffered(&self) -> usize {
        self.held.len()
    }

    /// Ends the stream and returns the text held back.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut found = Vec::new();
        self.scan(self.held.len(), &mut found);
        self.scanner.finish(&mut found);
        self.pass(self.scanner.fed(), &found)
    }

    /// Scans what has not been scanned, up to a place in `held`. Bytes that are not UTF-8 count as
    /// control characters.
    fn scan(&mut self, end: usize, found: &mut Vec<Redaction>) {
        let from = self.place(self.scanner.fed());
        for part in self.held.get(from..end).unwrap_or_default().utf8_chunks() {
            self.scanner.feed(part.valid(), found);
            self.scanner.feed(&"\0".repeat(part.invalid().len()), found);
        }
    }

    /// The place in `held` of a position in the input.
    fn place(&self, at: u64) -> usize {
        usize::try_from(at - self.passed).unwrap_or(usize::MAX)
    }

    /// Passes on the input up to `end`, redacted.
    fn pass(&mut self, end: u64, found: &[Redaction]) -> Vec<u8> {
        let mut redacted = Vec::new();
        let mut copied = self.passed;
        for Redaction { range, mask } in found.iter().filter(|found| !found.range.is_empty()) {
            let before = self.place(copied)..self.place(range.start.max(copied));
            redacted.extend_from_slice(self.held.get(before).unwrap_or_default());
            redacted.extend_from_slice(mask.as_bytes());
            copied = copied.max(range.end);
        }
        let rest = self.place(copied)..self.place(end);
        redacted.extend_from_slice(self.held.get(rest).unwrap_or_default());
        self.held.drain(..self.place(end));
        self.passed = end;
        redacted
    }
}

/// The longest escape of a JSON string: two halves of one character.
const LONGEST_ESCAPE: usize = 12;

/// Decodes parts of a text to plain letters for the rules.
///
/// It removes JSON escapes and invisible characters, and replaces characters that resemble an ASCII
/// one.
#[derive(Clone, Debug)]
struct Plain {
    json: bool,
    /// The start of an incomplete escape.
    escape: String,
    /// The bytes of all parts so far.
    fed: u64,
}

impl Plain {
    /// `json` selects JSON escapes.
    const fn new(json: bool) -> Self {
        Self { json, escape: String::new(), fed: 0 }
    }

    /// The length of the text so far.
    const fn fed(&self) -> u64 {
        self.fed
    }

    /// The length of the text whose letters have all been returned.
    const fn given(&self) -> u64 {
        self.fed - self.escape.len() as u64
    }

    /// Takes a part. Calls `each` with every letter and its byte range in the text.
    fn feed(&mut self, part: &str, mut each: impl FnMut(char, Range<u64>)) {
        for letter in part.chars() {
            let start = self.fed;
            self.fed += letter.len_utf8() as u64;
            if letter.is_ascii() && letter != '\\' && self.escape.is_empty() {
                each(letter, start..self.fed);
                continue;
            }
            self.letter(letter, start, &mut each);
        }
    }

    /// Ends the text: an incomplete escape is passed on literally.
    fn finish(&mut self, mut each: impl FnMut(char, Range<u64>)) {
        self.give_escape(&mut each);
    }

    fn letter(&mut self, letter: char, start: u64, each: &mut impl FnMut(char, Range<u64>)) {
        if self.escape.is_empty() && (letter != '\\' || !self.json) {
            fold_character(letter, |plain| each(plain, start..self.fed));
            return;
        }
        self.escape.push(letter);
        match decode(&self.escape) {
            Escape::Open if self.escape.len() < LONGEST_ESCAPE => {}
            Escape::Letter(decoded) => {
                let from = self.given();
                self.escape.clear();
                fold_character(decoded, |plain| each(plain, from..self.fed));
            }
            Escape::Open | Escape::None => self.give_escape(each),
        }
    }

    /// Passes on literally a backslash that did not start an escape.
    fn give_escape(&mut self, each: &mut impl FnMut(char, Range<u64>)) {
        let mut at = self.given();
        for letter in std::mem::take(&mut self.escape).chars() {
            let next = at + letter.len_utf8() as u64;
            fold_character(letter, |plain| each(plain, at..next));
            at = next;
        }
    }
}

/// Kind of an escape by the characters after its backslash.
enum Escape {
    /// An incomplete escape.
    Open,
    Letter(char),
    None,
}

fn decode(escape: &str) -> Escape {
    let Some(kind) = escape.chars().nth(1) else { return Escape::Open };
    match kind {
        'n' => Escape::Letter('\n'),
        'r' => Escape::Letter('\r'),
        't' => Escape::Letter('\t'),
        'b' | 'f' => Escape::Letter(' '),
        '"' | '\\' | '/' => Escape::Letter(kind),
        'u' => decode_number(&escape[2..]),
        _ => Escape::None,
    }
}

/// `XXXX`, or `XXXX\uXXXX` for two halves of one character.
fn decode_number(digits: &str) -> Escape {
    let unit = |digits: Option<&str>| {
        let digits = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        digits.and_then(|digits| u16::from_str_radix(digits, 16).ok())
    };
    if digits.len() < 4 {
        let is_number = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        return if is_number { Escape::Open } else { Escape::None };
    }
    let Some(first) = unit(digits.get(..4)) else { return Escape::None };
    if let Some(letter) = char::from_u32(first.into()) {
        return Escape::Letter(letter);
    }
    let second = &digits[4..];
    if second.len() < 6 {
        let open = "\\u".starts_with(second) || second.starts_with("\\u");
        return if open { Escape::Open } else { Escape::None };
    }
    let units = [Some(first), unit(second.get(2..6))].into_iter().flatten();
    match char::decode_utf16(units).next() {
        Some(Ok(letter)) => Escape::Letter(letter),
        _ => Escape::None,
    }
}

/// The maximum number of bytes that are held back.
const MAX_HELD: usize = 256;

/// The maximum number of consecutive separators inside a number.
const WIDEST_GAP: usize = 3;

/// A complete segment that may contain personal data.
///
/// A state machine over characters: the segments do not depend on the parts in which the text
/// arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    /// The length of the segment in bytes.
    length: usize,
    /// The number of bytes between its end and the end of the character that ended it.
    distance: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SegmenterState {
    /// No segment is open.
    #[default]
    Idle,
    /// In a word.
    Word,
    /// In separators after a word that may continue after them.
    Gap,
    /// In a word that is too long for personal data and passes.
    Overlong,
}

/// Splits a text into segments.
#[derive(Clone, Debug, Default)]
struct Segmenter {
    state: SegmenterState,
    /// The length of the open segment, including its gap.
    open: usize,
    gap: usize,
    word: Word,
    digits: usize,
    /// Whether the word has an `@`, or a `%` that may encode one.
    sign: bool,
}

/// The current word.
#[derive(Clone, Copy, Debug, Default)]
struct Word {
    length: usize,
    digits: usize,
    capitals: usize,
    at_sign: bool,
    /// Whether the segment has an `@`, or a `%` that may encode one.
    sign: bool,
}

impl Word {
    /// Whether it may be part of a number with separators: a group of digits or capitals.
    const fn may_continue(self) -> bool {
        let letters = self.length <= 4 && self.capitals == self.length;
        !self.at_sign && (self.digits > 0 || letters)
    }
}

const fn in_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '%' | '+' | '-' | '@')
}

const fn in_gap(letter: char) -> bool {
    matches!(letter, ' ' | '(' | ')' | '/')
}

impl Segmenter {
    /// The length of the open segment, which must be held back.
    const fn open_length(&self) -> usize {
        self.open
    }

    /// Takes a character. Returns the segment that it ends, if that may contain personal data.
    fn step(&mut self, letter: char) -> Option<Segment> {
        match self.state {
            SegmenterState::Word if in_word(letter) || self.in_domain(letter) => {
                self.extend_word(letter)
            }
            SegmenterState::Word if in_gap(letter) && self.word.may_continue() => self.extend_gap(),
            SegmenterState::Gap if in_word(letter) => {
                self.gap = 0;
                self.word = Word::default();
                self.state = SegmenterState::Word;
                self.extend_word(letter)
            }
            SegmenterState::Gap if in_gap(letter) => self.extend_gap(),
            SegmenterState::Word | SegmenterState::Gap => self.close(letter),
            SegmenterState::Overlong if in_word(letter) => None,
            SegmenterState::Idle | SegmenterState::Overlong => self.begin(letter),
        }
    }

    /// Whether a non-ASCII character continues the domain of an e-mail address.
    const fn in_domain(&self, letter: char) -> bool {
        self.word.at_sign && !letter.is_ascii() && self.open + char::MAX_LEN_UTF8 < MAX_HELD
    }

    /// Ends the text. Returns whether the open segment may contain personal data.
    fn finish(&mut self) -> bool {
        let may_match = self.may_match();
        *self = Self::default();
        may_match
    }

    /// An e-mail address has an `@`, or the escape of one; the shortest number of interest has four
    /// digits.
    const fn may_match(&self) -> bool {
        self.sign || self.digits >= 4
    }

    fn extend_word(&mut self, letter: char) -> Option<Segment> {
        self.open += letter.len_utf8();
        self.word.length += letter.len_utf8();
        self.word.digits += usize::from(letter.is_ascii_digit());
        self.word.capitals += usize::from(letter.is_ascii_uppercase());
        self.word.at_sign |= letter == '@';
        self.digits += usize::from(letter.is_ascii_digit());
        self.word.sign |= matches!(letter, '@' | '%');
        self.sign |= self.word.sign;
        if self.open < MAX_HELD { None } else { self.cut() }
    }

    fn extend_gap(&mut self) -> Option<Segment> {
        self.state = SegmenterState::Gap;
        self.open += 1;
        self.gap += 1;
        if self.gap > WIDEST_GAP || self.open >= MAX_HELD { self.cut() } else { None }
    }

    /// The segment is too long: it ends before the last word. A single word passes.
    fn cut(&mut self) -> Option<Segment> {
        let Self { open, gap, word, .. } = *self;
        let whole = gap > 0 || word.length >= open;
        let kept = if whole { 0 } else { word.length };
        let may_match = self.finish();
        if kept > 0 {
            let (digits, sign) = (word.digits, word.sign);
            *self = Self { state: SegmenterState::Word, open: kept, gap: 0, word, digits, sign };
        } else if gap == 0 {
            self.state = SegmenterState::Overlong;
        }
        may_match.then_some(Segment { length: open - kept, distance: kept })
    }

    /// Handles a character that ends the open segment.
    fn close(&mut self, letter: char) -> Option<Segment> {
        let Self { open, gap, .. } = *self;
        let may_match = self.finish();
        self.begin(letter);
        may_match.then_some(Segment { length: open - gap, distance: gap + letter.len_utf8() })
    }

    /// Handles a character outside a segment.
    fn begin(&mut self, letter: char) -> Option<Segment> {
        self.state = SegmenterState::Idle;
        if in_word(letter) {
            self.state = SegmenterState::Word;
            return self.extend_word(letter);
        }
        if letter == '(' {
            self.state = SegmenterState::Word;
            self.open = 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(parts: &[&str], json: bool) -> (String, Vec<Range<u64>>) {
        let mut plain = Plain::new(json);
        let (mut text, mut from) = (String::new(), Vec::new());
        let mut each = |letter: char, range: Range<u64>| {
            text.push(letter);
            from.push(range);
        };
        for part in parts {
            plain.feed(part, &mut each);
        }
        plain.finish(&mut each);
        (text, from)
    }

    #[test]
    fn letters_are_those_that_rules_know() {
        for (text, json, expected) in [
            ("ann@b.de", false, "ann@b.de"),
            ("ann\u{ff20}b.de \u{ff14}\u{ff11}", false, "ann@b.de 41"),
            ("41\u{200b}11\u{a0}12\u{2011}3", false, "4111 12-3"),
            ("m\u{fc}ller", false, "m\u{fc}ller"),
            (r#"ann\u0040b.de\n\"x\""#, false, r#"ann\u0040b.de\n\"x\""#),
            (r#"ann\u0040b.de\n\"x\"\/"#, true, "ann@b.de\n\"x\"/"),
            (
                r"\ud83d\ude00 \ud83dx \ud83d\u0041 \q \u00zz",
                true,
                "\u{1f600} \\ud83dx \\ud83d\\u0041 \\q \\u00zz",
            ),
            (r"open \u00", true, r"open \u00"),
            ("\u{e9} \\", true, "\u{e9} \\"),
        ] {
            assert_eq!(plain(&[text], json).0, expected, "{text}");
            let letters: Vec<String> = text.chars().map(String::from).collect();
            let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
            assert_eq!(plain(&letters, json), plain(&[text], json), "{text}, letter by letter");
        }
    }

    #[test]
    fn a_letter_knows_the_bytes_behind_it() {
        let (text, from) = plain(&["a\\u0040\u{200b}b"], true);
        assert_eq!((text.as_str(), from), ("a@b", vec![0..1, 1..7, 10..11]));
    }

    /// The segments of a text that may match; the last one is the rest at the end.
    fn segments(text: &str) -> Vec<&str> {
        let mut segmenter = Segmenter::default();
        let mut found = Vec::new();
        for (at, letter) in text.char_indices() {
            if let Some(Segment { length, distance }) = segmenter.step(letter) {
                let end = at + letter.len_utf8() - distance;
                found.push(&text[end - length..end]);
            }
        }
        let open = segmenter.open_length();
        if segmenter.finish() {
            found.push(&text[text.len() - open..]);
        }
        found
    }

    #[test]
    fn numbers_continue_over_separators_and_words_do_not() {
        let rows: [(&str, &[&str]); 7] = [
            ("only words", &[]),
            ("call 123", &[]),
            ("write ann@b.de now", &["ann@b.de"]),
            ("card 4111 1111 1111 1111, ok", &["4111 1111 1111 1111"]),
            ("+49 (30) 901820, ok", &["+49 (30) 901820"]),
            // The next word is part of the segment: it shows that the number has ended.
            ("IBAN DE89 3704 please wait", &["IBAN DE89 3704 please"]),
            ("12345", &["12345"]),
        ];
        for (text, expected) in rows {
            assert_eq!(segments(text), expected, "{text}");
        }
    }

    #[test]
    fn at_most_256_bytes_are_held_back() {
        for text in ["x".repeat(1_000), "1 ".repeat(500), "AB12 ".repeat(200)] {
            let mut segmenter = Segmenter::default();
            for letter in text.chars() {
                segmenter.step(letter);
                assert!(segmenter.open_length() < MAX_HELD);
            }
        }
    }
}
