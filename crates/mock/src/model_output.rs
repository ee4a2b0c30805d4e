//! The output of the model: the kinds and numbers of its tokens, and their words.

use std::ops::Range;

use crate::distribution::Distribution;
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
    /// For a tool call: its index among the calls.
    pub(crate) call: u32,
}

/// A tool call of the output.
#[derive(Clone, Debug)]
pub(crate) struct ToolCall {
    /// Identifies it in the response.
    pub(crate) id: u64,
    /// The tool's name as a JSON string, quotes included.
    pub(crate) name: String,
    /// The arguments as JSON; if `None`, an object with the section's words.
    pub(crate) arguments: Option<String>,
}

/// The tool of models without configured tools.
const LOOKUP: &str = "\"lookup\"";

impl ToolCall {
    /// The call of a model without a tool loop.
    pub(crate) fn lookup(rng: RequestRng) -> Self {
        Self { id: rng.id, name: LOOKUP.to_owned(), arguments: None }
    }
}

/// The reason for the end of the output.
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
    /// One for each section that is a tool call.
    pub(crate) calls: Vec<ToolCall>,
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

    /// The call of a section.
    pub(crate) fn call(&self, section: Section) -> Option<&ToolCall> {
        let calls = (section.kind == ContentKind::ToolCall).then_some(&self.calls)?;
        calls.get(section.call as usize)
    }

    /// The text of each section; the arguments as JSON for a tool call.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (Section, Vec<u8>)> {
        let mut words = Words::new(self.rng);
        self.sections.iter().map(move |section| {
            let mut text = Vec::with_capacity(section.tokens as usize * WORD_BYTES);
            self.write_text(*section, 0..section.tokens, &mut words, &mut text);
            (*section, text)
        })
    }

    /// Writes some tokens of a section. `words` must have written the tokens before them.
    pub(crate) fn write_text(
        &self,
        section: Section,
        tokens: Range<u32>,
        words: &mut Words,
        out: &mut Vec<u8>,
    ) {
        let Some(call) = self.call(section) else {
            return words.write(tokens.end - tokens.start, out);
        };
        if let Some(arguments) = &call.arguments {
            let end = if tokens.end == section.tokens { u32::MAX } else { tokens.end };
            out.extend_from_slice(&arguments.as_bytes()[bytes_of(arguments, tokens.start..end)]);
            return;
        }
        out.extend_from_slice(if tokens.start == 0 { ARGUMENTS_OPEN } else { b"" });
        words.write(tokens.end - tokens.start, out);
        out.extend_from_slice(if tokens.end == section.tokens { ARGUMENTS_CLOSE } else { b"" });
    }
}

/// The JSON around generated arguments.
const ARGUMENTS_OPEN: &[u8] = br#"{"query":""#;
const ARGUMENTS_CLOSE: &[u8] = br#""}"#;

/// The bytes of some tokens of a text: four each, on character boundaries.
fn bytes_of(text: &str, tokens: Range<u32>) -> Range<usize> {
    place_of(text, tokens.start)..place_of(text, tokens.end)
}

fn place_of(text: &str, token: u32) -> usize {
    let at = (token as usize).saturating_mul(WORD_BYTES).min(text.len());
    text.floor_char_boundary(at)
}

/// Splits `tokens` output tokens into sections: `reasoning` tokens of reasoning, then text or a
/// tool call. A tool call needs at least one token.
pub(crate) fn sections(tokens: u32, reasoning: u32, tool_call: bool) -> Vec<Section> {
    let reasoning = reasoning.min(tokens);
    let rest = tokens - reasoning;
    let kind = if tool_call && rest > 0 { ContentKind::ToolCall } else { ContentKind::Text };
    let mut sections = Vec::with_capacity(2);
    if reasoning > 0 {
        sections.push(Section { kind: ContentKind::Reasoning, tokens: reasoning, call: 0 });
    }
    if rest > 0 || reasoning == 0 {
        sections.push(Section { kind, tokens: rest, call: 0 });
    }
    sections
}

/// Sections for given tool calls, after `reasoning` tokens of reasoning.
pub(crate) fn call_sections(reasoning: u32, calls: &[ToolCall]) -> Vec<Section> {
    let reasoning = Section { kind: ContentKind::Reasoning, tokens: reasoning, call: 0 };
    let calls = calls.iter().zip(0..).map(|(call, index)| Section {
        kind: ContentKind::ToolCall,
        tokens: call_tokens(call),
        call: index,
    });
    (reasoning.tokens > 0).then_some(reasoning).into_iter().chain(calls).collect()
}

fn call_tokens(call: &ToolCall) -> u32 {
    let bytes = call.arguments.as_ref().map_or(0, String::len);
    u32::try_from(bytes.div_ceil(WORD_BYTES)).unwrap_or(u32::MAX)
}

/// Bytes of a word with its space. Equal to the prompt's bytes per token, so an output that is sent
/// back in the next prompt has the same number of tokens.
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

/// The largest result of a tool or an agent, in bytes.
const LARGEST_RESULT: u64 = 64 * 1024 * 1024;

/// The random size of a result.
pub(crate) fn result_bytes(sizes: &Distribution<u32>, rng: RequestRng) -> usize {
    let bytes = sizes.draw(rng, Purpose::OutputLength).min(LARGEST_RESULT);
    usize::try_from(bytes).unwrap_or(0)
}

/// Words with a length in bytes.
pub(crate) fn word_text(rng: RequestRng, bytes: usize) -> String {
    let mut out = Vec::with_capacity(bytes + WORD_BYTES);
    let count = u32::try_from(bytes.div_ceil(WORD_BYTES)).unwrap_or(u32::MAX);
    Words::new(rng).write(count, &mut out);
    out.truncate(bytes);
    // Words are ASCII.
    String::from_utf8(out).unwrap_or_default()
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
    fn pieces_of_arguments_are_whole_characters_and_join_to_the_arguments() {
        let rng = RequestRng::new(1, Some(b"id"), 0);
        for text in [r#"{"a":"é世界\n\"","b":[1,2]}"#, "{}", r#"{"a":""}"#] {
            let call = ToolCall { id: 1, name: String::new(), arguments: Some(text.to_owned()) };
            let calls = vec![call];
            let sections = call_sections(0, &calls);
            let section = sections[0];
            assert_eq!(section.tokens as usize, text.len().div_ceil(4));
            let output = ModelOutput {
                rng,
                model: String::new(),
                prompt_tokens: 0,
                sections,
                calls,
                finish_reason: FinishReason::Stop,
                usage: false,
                stream_usage: false,
                vectors: 0,
                dimensions: 0,
            };
            (1..4).for_each(|step| assert_eq!(joined(&output, section, step), text, "{step}"));
        }
    }

    /// A section, written `step` tokens at a time; each piece must be text.
    fn joined(output: &ModelOutput, section: Section, step: u32) -> String {
        let (mut words, mut joined, mut start) = (Words::new(output.rng), String::new(), 0);
        while start < section.tokens {
            let end = section.tokens.min(start + step);
            let mut piece = Vec::new();
            output.write_text(section, start..end, &mut words, &mut piece);
            joined.push_str(std::str::from_utf8(&piece).unwrap());
            start = end;
        }
        joined
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
