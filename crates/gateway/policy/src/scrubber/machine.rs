//! Where the parts of a stream end: a machine over bytes that knows nothing of chunks.

use super::LONGEST;

/// Separators which can stand inside of a number: at most so many at once.
const WIDEST_GAP: usize = 3;

/// What a byte does to the parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It belongs to the open part, or to none.
    Go,
    /// A part is complete.
    Release {
        /// Its length.
        part: usize,
        /// Its distance from the end of this byte.
        after: usize,
        /// Whether it can hold anything personal.
        interesting: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No part is open.
    Idle,
    /// In a word.
    Word,
    /// Behind a word that could go on after a separator.
    Gap,
    /// In a word too long to be anything personal: it passes.
    Overlong,
    /// Behind a backslash, with the number of bytes that belong to the escape; none known yet.
    Escape(Option<u8>),
    /// In a character outside of ASCII, with the number of bytes that are missing.
    Wide(u8),
}

/// The machine.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    state: State,
    json: bool,
    /// Bytes of the open part, with its gap.
    part: usize,
    gap: usize,
    word: Word,
    digits: usize,
    at_sign: bool,
}

/// The word that is being read.
#[derive(Clone, Copy, Debug, Default)]
struct Word {
    length: usize,
    digits: usize,
    capitals: usize,
    at_sign: bool,
}

impl Word {
    /// Whether a number, or a group of letters of one, which may go on after a separator.
    const fn goes_on(self) -> bool {
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

impl Machine {
    pub(super) const fn new(json: bool) -> Self {
        let word = Word { length: 0, digits: 0, capitals: 0, at_sign: false };
        Self { state: State::Idle, json, part: 0, gap: 0, word, digits: 0, at_sign: false }
    }

    /// The number of bytes that must be held back.
    pub(super) const fn length(&self) -> usize {
        self.part
    }

    pub(super) fn step(&mut self, byte: u8) -> Step {
        match self.state {
            State::Word if in_word(byte) => self.lengthen(byte),
            State::Word if in_gap(byte) && self.word.goes_on() => self.widen(),
            State::Gap if in_word(byte) => {
                self.gap = 0;
                self.word = Word::default();
                self.state = State::Word;
                self.lengthen(byte)
            }
            State::Gap if in_gap(byte) => self.widen(),
            State::Word | State::Gap => self.close(byte),
            State::Overlong if in_word(byte) => Step::Go,
            State::Escape(left) => self.escaped(byte, left),
            State::Wide(left) if byte & 0xc0 == 0x80 => self.widened(left),
            State::Wide(_) => {
                self.part = 0;
                self.begin(byte)
            }
            State::Idle | State::Overlong => self.begin(byte),
        }
    }

    /// Ends the stream: whether what is held back can hold anything personal.
    pub(super) fn finish(&mut self) -> bool {
        let interesting = self.interesting();
        *self = Self::new(self.json);
        interesting
    }

    /// An e-mail address has its sign; the shortest number that counts has four digits.
    const fn interesting(&self) -> bool {
        self.at_sign || self.digits >= 4
    }

    fn lengthen(&mut self, byte: u8) -> Step {
        self.part += 1;
        self.word.length += 1;
        self.word.digits += usize::from(byte.is_ascii_digit());
        self.word.capitals += usize::from(byte.is_ascii_uppercase());
        self.word.at_sign |= byte == b'@';
        self.digits += usize::from(byte.is_ascii_digit());
        self.at_sign |= byte == b'@';
        if self.part < LONGEST { Step::Go } else { self.cut() }
    }

    fn widen(&mut self) -> Step {
        self.state = State::Gap;
        self.part += 1;
        self.gap += 1;
        if self.gap > WIDEST_GAP || self.part >= LONGEST { self.cut() } else { Step::Go }
    }

    /// A part is too long: the words before the last one are complete. A single word passes.
    fn cut(&mut self) -> Step {
        let interesting = self.interesting();
        let part = self.part;
        let word = self.word;
        let whole = self.gap > 0 || word.length >= part;
        let kept = if whole { 0 } else { word.length };
        let overlong = self.gap == 0 && whole;
        *self = Self::new(self.json);
        if kept > 0 {
            self.part = kept;
            self.word = word;
            self.digits = word.digits;
            self.at_sign = word.at_sign;
            self.state = State::Word;
        } else if overlong {
            self.state = State::Overlong;
        }
        Step::Release { part: part - kept, after: kept, interesting }
    }

    /// A byte that cannot belong to the open part.
    fn close(&mut self, byte: u8) -> Step {
        let interesting = self.interesting();
        let (part, gap) = (self.part, self.gap);
        *self = Self::new(self.json);
        self.begin(byte);
        Step::Release { part: part - gap, after: gap + 1, interesting }
    }

    /// A byte where no part is open.
    fn begin(&mut self, byte: u8) -> Step {
        self.state = match byte {
            b'\\' if self.json => State::Escape(None),
            b'(' => State::Word,
            _ if in_word(byte) => State::Word,
            0xc2..=0xdf => State::Wide(1),
            0xe0..=0xef => State::Wide(2),
            0xf0..=0xf4 => State::Wide(3),
            _ => State::Idle,
        };
        match self.state {
            State::Word if byte == b'(' => {
                self.part = 1;
                Step::Go
            }
            State::Word => self.lengthen(byte),
            State::Wide(_) => {
                self.part = 1;
                Step::Go
            }
            _ => Step::Go,
        }
    }

    fn escaped(&mut self, byte: u8, left: Option<u8>) -> Step {
        if !byte.is_ascii() {
            return self.begin(byte);
        }
        self.state = match (left, byte) {
            (None, b'u') => State::Escape(Some(4)),
            (Some(left), _) if left > 1 => State::Escape(Some(left - 1)),
            _ => State::Idle,
        };
        Step::Go
    }

    const fn widened(&mut self, left: u8) -> Step {
        self.part += 1;
        if left > 1 {
            self.state = State::Wide(left - 1);
        } else {
            self.part = 0;
            self.state = State::Idle;
        }
        Step::Go
    }
}
