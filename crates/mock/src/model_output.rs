//! The output of the model: how many tokens of which kind, and their words.

use crate::rng::{Purpose, RequestRng, Rng};

/// The content of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentKind {
    Reasoning,
    Text,
    ToolCall,
}

/// A run of output tokens of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) kind: ContentKind,
    pub(crate) tokens: u32,
}

/// Why the output ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FinishReason {
    /// The output is complete.
    Stop,
    /// The request's token limit was reached.
    Length,
}

/// The output of the model, independent of the dialect.
#[derive(Debug)]
pub(crate) struct ModelOutput {
    pub(crate) rng: RequestRng,
    /// The model's name as a JSON string, quotes included.
    pub(crate) model: String,
    pub(crate) prompt_tokens: u64,
    /// Empty for embeddings.
    pub(crate) sections: Vec<Section>,
    pub(crate) finish_reason: FinishReason,
    /// Whether usage is reported.
    pub(crate) usage: bool,
    /// Chat completions: whether usage is reported in a stream.
    pub(crate) stream_usage: bool,
    /// Embeddings: number of vectors.
    pub(crate) vectors: u32,
    /// Embeddings: numbers in each vector.
    pub(crate) dimensions: u32,
}

impl ModelOutput {
    /// All output tokens.
    pub(crate) fn tokens(&self) -> u32 {
        self.sections.iter().map(|section| section.tokens).sum()
    }

    /// Output tokens of one kind.
    pub(crate) fn tokens_of(&self, kind: ContentKind) -> u32 {
        self.sections.iter().filter(|section| section.kind == kind).map(|one| one.tokens).sum()
    }

    pub(crate) fn calls_tool(&self) -> bool {
        self.sections.iter().any(|section| section.kind == ContentKind::ToolCall)
    }

    /// The text of each section.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (ContentKind, Vec<u8>)> {
        let mut words = Words::new(self.rng);
        self.sections.iter().map(move |section| {
            let mut text = Vec::with_capacity(section.tokens as usize * WORD_BYTES);
            words.write(section.tokens, &mut text);
            (section.kind, text)
        })
    }
}

/// Splits `tokens` output tokens into sections: first `reasoning` tokens of reasoning, then text or
/// a tool call. Without a token left for it, there is no tool call.
pub(crate) fn sections(tokens: u32, reasoning: u32, tool_call: bool) -> Vec<Section> {
    let reasoning = reasoning.min(tokens);
    let rest = tokens - reasoning;
    let kind = if tool_call && rest > 0 { ContentKind::ToolCall } else { ContentKind::Text };
    let mut sections = Vec::with_capacity(2);
    if reasoning > 0 {
        sections.push(Section { kind: ContentKind::Reasoning, tokens: reasoning });
    }
    if rest > 0 || reasoning == 0 {
        sections.push(Section { kind, tokens: rest });
    }
    sections
}

/// Bytes of a word with its blank. It is the prompt's bytes per token, so an output that is sent
/// back in the next prompt has the same number of tokens there.
pub(crate) const WORD_BYTES: usize = 4;

const WORDS: [&[u8; WORD_BYTES]; 16] = [
    b"sea ", b"oar ", b"bow ", b"fog ", b"net ", b"bay ", b"eel ", b"ray ", b"cod ", b"ebb ",
    b"fin ", b"tar ", b"jib ", b"rig ", b"log ", b"sun ",
];

/// Generates the words of an output, one for each token.
#[derive(Debug)]
pub(crate) struct Words {
    rng: Rng,
    /// Random bits, four for each word.
    bits: u64,
    left: u32,
}

impl Words {
    pub(crate) const fn new(rng: RequestRng) -> Self {
        Self { rng: rng.fork(Purpose::Words), bits: 0, left: 0 }
    }

    pub(crate) fn write(&mut self, count: u32, out: &mut Vec<u8>) {
        for _ in 0..count {
            if self.left == 0 {
                (self.bits, self.left) = (self.rng.next_u64(), 16);
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
        use ContentKind::{Reasoning, Text, ToolCall};
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
    fn words_have_four_bytes_and_do_not_depend_on_the_batch_size() {
        let rng = RequestRng::new(1, Some(b"id"), 0);
        let (mut one_by_one, mut at_once) = (Vec::new(), Vec::new());
        let mut words = Words::new(rng);
        (0..100).for_each(|_| words.write(1, &mut one_by_one));
        Words::new(rng).write(100, &mut at_once);
        assert_eq!((one_by_one.len(), &one_by_one), (400, &at_once));
        assert!(at_once.iter().all(|b| b.is_ascii_lowercase() || *b == b' '));
    }
}
