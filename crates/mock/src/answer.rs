//! What the mock says: how many tokens of which kind, and the words.

use crate::draw::{Draws, Numbers, Purpose};

/// What a section of an answer consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Reasoning,
    Text,
    ToolCall,
}

/// A run of output tokens of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) kind: Kind,
    pub(crate) tokens: u32,
}

/// Why the answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    /// The model had said all.
    Stop,
    /// The request allowed no more.
    Length,
}

/// An answer, before it is put into the bytes of a dialect.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) draws: Draws,
    /// The model's name as a JSON string, quotes included.
    pub(crate) model: String,
    pub(crate) prompt_tokens: u64,
    /// None where vectors are asked for.
    pub(crate) sections: Vec<Section>,
    pub(crate) finish: Finish,
    /// Is usage reported?
    pub(crate) usage: bool,
    /// Chat completions: is usage reported in a stream?
    pub(crate) stream_usage: bool,
    /// Embeddings: how many vectors.
    pub(crate) vectors: u32,
    /// Embeddings: numbers in a vector.
    pub(crate) dimensions: u32,
}

impl Answer {
    /// All output tokens.
    pub(crate) fn tokens(&self) -> u32 {
        self.sections.iter().map(|section| section.tokens).sum()
    }

    /// Output tokens of one kind.
    pub(crate) fn tokens_of(&self, kind: Kind) -> u32 {
        self.sections.iter().filter(|section| section.kind == kind).map(|one| one.tokens).sum()
    }

    pub(crate) fn calls_tool(&self) -> bool {
        self.sections.iter().any(|section| section.kind == Kind::ToolCall)
    }

    /// The text of each section.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (Kind, Vec<u8>)> {
        let mut words = Words::new(self.draws);
        self.sections.iter().map(move |section| {
            let mut text = Vec::with_capacity(section.tokens as usize * WORD_BYTES);
            words.write(section.tokens, &mut text);
            (section.kind, text)
        })
    }
}

/// Sections of `tokens` output tokens, the first `reasoning` of them reasoning. A tool call needs at
/// least one token of its own.
pub(crate) fn sections(tokens: u32, reasoning: u32, tool_call: bool) -> Vec<Section> {
    let reasoning = reasoning.min(tokens);
    let rest = tokens - reasoning;
    let kind = if tool_call && rest > 0 { Kind::ToolCall } else { Kind::Text };
    let mut sections = Vec::with_capacity(2);
    if reasoning > 0 {
        sections.push(Section { kind: Kind::Reasoning, tokens: reasoning });
    }
    if rest > 0 || reasoning == 0 {
        sections.push(Section { kind, tokens: rest });
    }
    sections
}

/// Bytes of a word with its blank: what a token is on average, so that an answer that is sent back as
/// part of the next prompt counts as many tokens there as it did here.
pub(crate) const WORD_BYTES: usize = 4;

const WORDS: [&[u8; WORD_BYTES]; 16] = [
    b"sea ", b"oar ", b"bow ", b"fog ", b"net ", b"bay ", b"eel ", b"ray ", b"cod ", b"ebb ",
    b"fin ", b"tar ", b"jib ", b"rig ", b"log ", b"sun ",
];

/// The words of an answer, one for each output token.
#[derive(Debug)]
pub(crate) struct Words {
    numbers: Numbers,
    /// Random bits, four for each word.
    bits: u64,
    left: u32,
}

impl Words {
    pub(crate) const fn new(draws: Draws) -> Self {
        Self { numbers: draws.numbers(Purpose::Words), bits: 0, left: 0 }
    }

    pub(crate) fn write(&mut self, count: u32, out: &mut Vec<u8>) {
        for _ in 0..count {
            if self.left == 0 {
                (self.bits, self.left) = (self.numbers.bits(), 16);
            }
            out.extend_from_slice(WORDS[(self.bits & 15) as usize]);
            (self.bits, self.left) = (self.bits >> 4, self.left - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasoning_comes_first_and_the_rest_is_text_or_a_tool_call() {
        use Kind::{Reasoning, Text, ToolCall};
        for (tokens, reasoning, tool, expected) in [
            (10, 0, false, vec![(Text, 10)]),
            (10, 4, false, vec![(Reasoning, 4), (Text, 6)]),
            (10, 4, true, vec![(Reasoning, 4), (ToolCall, 6)]),
            (10, 99, true, vec![(Reasoning, 10)]),
            (0, 0, true, vec![(Text, 0)]),
        ] {
            let found: Vec<_> =
                sections(tokens, reasoning, tool).iter().map(|s| (s.kind, s.tokens)).collect();
            assert_eq!(found, expected, "{tokens} {reasoning} {tool}");
        }
    }

    #[test]
    fn words_have_four_bytes_and_do_not_depend_on_how_many_are_taken_at_once() {
        let draws = Draws::new(1, Some(b"id"), 0);
        let (mut one_by_one, mut at_once) = (Vec::new(), Vec::new());
        let mut words = Words::new(draws);
        (0..100).for_each(|_| words.write(1, &mut one_by_one));
        Words::new(draws).write(100, &mut at_once);
        assert_eq!((one_by_one.len(), &one_by_one), (400, &at_once));
        assert!(at_once.iter().all(|b| b.is_ascii_lowercase() || *b == b' '));
    }
}
