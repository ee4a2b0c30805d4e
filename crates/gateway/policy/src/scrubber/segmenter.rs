//! Splits a text into segments that are scanned separately: a state machine over characters,
//! independent of the parts in which the text comes.

/// The maximum number of bytes that are held back.
const MAX_HELD: usize = 256;

/// The maximum number of consecutive separators inside a number.
const WIDEST_GAP: usize = 3;

/// A complete segment that may contain personal data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// The length of the segment in bytes.
    pub(super) length: usize,
    /// The number of bytes between its end and the end of the character that ended it.
    pub(super) distance: usize,
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
    /// In a word that is too long for personal data: it passes.
    Overlong,
}

/// Splits a text into segments.
#[derive(Clone, Debug, Default)]
pub(super) struct Segmenter {
    state: SegmenterState,
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

const fn in_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '%' | '+' | '-' | '@')
}

const fn in_gap(letter: char) -> bool {
    matches!(letter, ' ' | '(' | ')' | '/')
}

impl Segmenter {
    /// The length of the open segment, which must be held back.
    pub(super) const fn open_length(&self) -> usize {
        self.open
    }

    /// Takes a character. Returns the segment that it ends, if that may contain personal data.
    pub(super) fn step(&mut self, letter: char) -> Option<Segment> {
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
    pub(super) fn finish(&mut self) -> bool {
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
