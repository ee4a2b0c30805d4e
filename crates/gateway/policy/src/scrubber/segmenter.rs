//! Splits a stream into segments that are scanned separately: a state machine over bytes,
//! independent of chunks.

/// The maximum number of bytes that are held back.
const MAX_HELD: usize = 256;

/// The maximum number of consecutive separators inside a number.
const WIDEST_GAP: usize = 3;

/// The effect of a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// No segment ends.
    Continue,
    /// A segment is complete.
    EndSegment {
        /// The length of the segment.
        length: usize,
        /// The number of bytes between its end and the end of this byte.
        distance: usize,
        /// Whether it may contain personal data.
        may_match: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SegmenterState {
    /// No segment is open.
    Idle,
    /// In a word.
    Word,
    /// In separators after a word that may continue after them.
    Gap,
    /// In a word that is too long for personal data: it passes.
    Overlong,
    /// In an escape, with the number of its bytes that are missing; None after the backslash.
    Escape(Option<u8>),
    /// In a non-ASCII character, with the number of its bytes that are missing.
    MultiByte(u8),
}

/// Splits a stream into segments.
#[derive(Clone, Debug)]
pub(super) struct Segmenter {
    state: SegmenterState,
    json: bool,
    /// The length of the open segment, including its gap.
    open: usize,
    gap: usize,
    word: Word,
    digits: usize,
    /// Whether there is an `@`, or a `%` that may stand for one.
    sign: bool,
}

/// The current word.
#[derive(Clone, Copy, Debug, Default)]
struct Word {
    length: usize,
    digits: usize,
    capitals: usize,
    at_sign: bool,
    /// As of the segment.
    sign: bool,
}

impl Word {
    /// Whether it may be part of a number with separators: a group of digits or capitals.
    const fn may_continue(self) -> bool {
        let letters = self.length <= 4 && self.capitals == self.length;
        !self.at_sign && (self.digits > 0 || letters)
    }
}

const fn in_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'%' | b'+' | b'-' | b'@')
}

const fn in_gap(byte: u8) -> bool {
    matches!(byte, b' ' | b'(' | b')' | b'/')
}

impl Segmenter {
    pub(super) const fn new(json: bool) -> Self {
        let word = Word { length: 0, digits: 0, capitals: 0, at_sign: false, sign: false };
        Self { state: SegmenterState::Idle, json, open: 0, gap: 0, word, digits: 0, sign: false }
    }

    /// The length of the open segment, which must be held back.
    pub(super) const fn open_length(&self) -> usize {
        self.open
    }

    pub(super) fn step(&mut self, byte: u8) -> Step {
        match self.state {
            SegmenterState::Word if in_word(byte) || self.in_domain(byte) => self.extend_word(byte),
            SegmenterState::Word if in_gap(byte) && self.word.may_continue() => self.extend_gap(),
            SegmenterState::Gap if in_word(byte) => {
                self.gap = 0;
                self.word = Word::default();
                self.state = SegmenterState::Word;
                self.extend_word(byte)
            }
            SegmenterState::Gap if in_gap(byte) => self.extend_gap(),
            SegmenterState::Word | SegmenterState::Gap => self.close(byte),
            SegmenterState::Overlong if in_word(byte) => Step::Continue,
            SegmenterState::Escape(left) => self.continue_escape(byte, left),
            SegmenterState::MultiByte(left) if byte & 0xc0 == 0x80 => self.continue_character(left),
            SegmenterState::MultiByte(_) => {
                self.open = 0;
                self.begin(byte)
            }
            SegmenterState::Idle | SegmenterState::Overlong => self.begin(byte),
        }
    }

    /// Whether a byte of a non-ASCII character continues the domain of an e-mail address. The first
    /// byte does only if there is room for the whole character.
    const fn in_domain(&self, byte: u8) -> bool {
        let has_room = byte < 0xc0 || self.open + 4 < MAX_HELD;
        self.word.at_sign && !byte.is_ascii() && has_room
    }

    /// Ends the stream. Returns whether the open segment may contain personal data.
    pub(super) fn finish(&mut self) -> bool {
        let may_match = self.may_match();
        *self = Self::new(self.json);
        may_match
    }

    /// An e-mail address has an `@`, or the escape of one; the shortest number of interest has four
    /// digits.
    const fn may_match(&self) -> bool {
        self.sign || self.digits >= 4
    }

    fn extend_word(&mut self, byte: u8) -> Step {
        self.open += 1;
        self.word.length += 1;
        self.word.digits += usize::from(byte.is_ascii_digit());
        self.word.capitals += usize::from(byte.is_ascii_uppercase());
        self.word.at_sign |= byte == b'@';
        self.digits += usize::from(byte.is_ascii_digit());
        self.word.sign |= matches!(byte, b'@' | b'%');
        self.sign |= self.word.sign;
        if self.open < MAX_HELD { Step::Continue } else { self.cut() }
    }

    fn extend_gap(&mut self) -> Step {
        self.state = SegmenterState::Gap;
        self.open += 1;
        self.gap += 1;
        if self.gap > WIDEST_GAP || self.open >= MAX_HELD { self.cut() } else { Step::Continue }
    }

    /// The segment is too long: it ends before the last word. A single word passes.
    fn cut(&mut self) -> Step {
        let may_match = self.may_match();
        let open = self.open;
        let word = self.word;
        let whole = self.gap > 0 || word.length >= open;
        let kept = if whole { 0 } else { word.length };
        let overlong = self.gap == 0 && whole;
        *self = Self::new(self.json);
        if kept > 0 {
            self.open = kept;
            self.word = word;
            self.digits = word.digits;
            self.sign = word.sign;
            self.state = SegmenterState::Word;
        } else if overlong {
            self.state = SegmenterState::Overlong;
        }
        Step::EndSegment { length: open - kept, distance: kept, may_match }
    }

    /// Handles a byte that ends the open segment.
    fn close(&mut self, byte: u8) -> Step {
        let may_match = self.may_match();
        let (open, gap) = (self.open, self.gap);
        *self = Self::new(self.json);
        self.begin(byte);
        Step::EndSegment { length: open - gap, distance: gap + 1, may_match }
    }

    /// Handles a byte outside a segment.
    fn begin(&mut self, byte: u8) -> Step {
        self.state = match byte {
            b'\\' if self.json => SegmenterState::Escape(None),
            b'(' => SegmenterState::Word,
            _ if in_word(byte) => SegmenterState::Word,
            0xc2..=0xdf => SegmenterState::MultiByte(1),
            0xe0..=0xef => SegmenterState::MultiByte(2),
            0xf0..=0xf4 => SegmenterState::MultiByte(3),
            _ => SegmenterState::Idle,
        };
        match self.state {
            SegmenterState::Word if byte == b'(' => {
                self.open = 1;
                Step::Continue
            }
            SegmenterState::Word => self.extend_word(byte),
            SegmenterState::MultiByte(_) => {
                self.open = 1;
                Step::Continue
            }
            _ => Step::Continue,
        }
    }

    fn continue_escape(&mut self, byte: u8, left: Option<u8>) -> Step {
        if !byte.is_ascii() {
            return self.begin(byte);
        }
        self.state = match (left, byte) {
            (None, b'u') => SegmenterState::Escape(Some(4)),
            (Some(left), _) if left > 1 => SegmenterState::Escape(Some(left - 1)),
            _ => SegmenterState::Idle,
        };
        Step::Continue
    }

    const fn continue_character(&mut self, left: u8) -> Step {
        self.open += 1;
        if left > 1 {
            self.state = SegmenterState::MultiByte(left - 1);
        } else {
            self.open = 0;
            self.state = SegmenterState::Idle;
        }
        Step::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The segments of a text that may match; the last one is the rest at the end.
    fn segments(text: &str, json: bool) -> Vec<&str> {
        let mut segmenter = Segmenter::new(json);
        let mut found = Vec::new();
        for (at, byte) in text.bytes().enumerate() {
            if let Step::EndSegment { length, distance, may_match: true } = segmenter.step(byte) {
                let end = at + 1 - distance;
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
            assert_eq!(segments(text, false), expected, "{text}");
        }
    }

    #[test]
    fn an_escape_is_not_part_of_a_word_in_json() {
        assert_eq!(segments(r"a\n12345", true), ["12345"]);
        assert_eq!(segments(r"\u00e912345", true), ["12345"]);
        assert_eq!(segments(r"\u00e9", false), Vec::<&str>::new());
    }

    #[test]
    fn at_most_256_bytes_are_held_back() {
        for text in ["x".repeat(1_000), "1 ".repeat(500), "AB12 ".repeat(200)] {
            let mut segmenter = Segmenter::new(false);
            for byte in text.bytes() {
                segmenter.step(byte);
                assert!(segmenter.open_length() < MAX_HELD);
            }
        }
    }
}
