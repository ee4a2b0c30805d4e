//! Decodes responses that differ from an earlier one only in their values by comparison.
//!
//! Nearly all responses of a target have the same members in the same order, and most values
//! influence nothing but themselves: an id, the content, the token counts. A [`Shape`] is the text
//! of such a response with holes in place of these values, and the meaning of each hole. Another
//! text with the same bytes around its holes, and a JSON value of the right kind in each, decodes
//! to the same result with other values. Comparing it costs a fraction of parsing it.
//!
//! Everything else goes to the dialect's parser, which also determines the meaning of the holes: it
//! is given the text with a mark in each hole.

use std::cell::RefCell;
use std::mem;

use super::json_reader::{FreeValue, Reader, Str, ValueKind, free_values};
use super::response_state::{DecodeResult, ResponseState};
use super::sent::{Delta, DeltaKind, OnDelta};
use super::usage::{COUNTS, Counts};
use super::{anthropic, chat, responses};
use crate::Dialect;

/// Maximum length of a text that becomes a shape, in bytes, including its values.
const MAX_TEXT: usize = 16 * 1024;
/// Maximum number of shapes per thread.
const MAX_SHAPES: usize = 8;
/// Maximum number of used strings and of counts per shape.
const MAX_USED: usize = 6;
/// Number of attempts to learn a shape, for targets whose responses have none. Hits add more
/// attempts.
const MAX_ATTEMPTS: u32 = 32;
/// Number of hits that add one attempt.
const HITS_PER_ATTEMPT: u32 = 64;

/// The parser that would read the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind<'a> {
    pub(super) dialect: Dialect,
    /// Name of the event; `None` for a non-streamed response.
    pub(super) event: Option<&'a str>,
}

/// Decodes `text` with a known shape of this thread. Returns `false`, and changes nothing, if no
/// shape matches.
pub(super) fn read(
    kind: Kind<'_>,
    text: &str,
    state: &mut ResponseState,
    on_delta: OnDelta<'_>,
) -> bool {
    // Filled in place, because each return would copy it.
    let mut values = Values::default();
    let found =
        SHAPES.with_borrow_mut(|shapes| shapes.find(kind, text, state.keep_text, &mut values));
    let Some(meaning) = found else { return false };
    meaning.apply(&values, state, on_delta);
    true
}

/// Learns the shape of `text`, if it has one. The parser must have read it without an error.
pub(super) fn learn(
    kind: Kind<'_>,
    text: &str,
    parse: impl FnOnce(&str, &mut ResponseState, OnDelta<'_>) -> DecodeResult,
) {
    let may = text.len() <= MAX_TEXT && SHAPES.with_borrow_mut(Shapes::may_learn);
    if !may {
        return;
    }
    if let Some(shape) = kind.values(text).and_then(|free| Shape::new(kind, text, &free, parse)) {
        SHAPES.with_borrow_mut(|shapes| shapes.add(shape));
    }
}

impl Kind<'_> {
    /// The values of a text that do not influence how the rest is parsed; `None` if the dialect
    /// does not use shapes.
    fn values(self, text: &str) -> Option<Vec<FreeValue>> {
        match (self.dialect, self.event) {
            (Dialect::OpenaiChat | Dialect::OpenaiCompletions, Some(_)) => {
                free_values::<chat::Chunk<'_>>(text)
            }
            (Dialect::OpenaiChat | Dialect::OpenaiCompletions, None) => {
                free_values::<chat::Completion<'_>>(text)
            }
            (Dialect::OpenaiResponses, Some(_)) => free_values::<responses::StreamEvent<'_>>(text),
            (Dialect::AnthropicMessages, Some(_)) => {
                free_values::<anthropic::StreamEvent<'_>>(text)
            }
            (Dialect::AnthropicMessages, None) => free_values::<anthropic::Message<'_>>(text),
            _ => None,
        }
    }
}

thread_local! {
    /// A cache: its content affects only the speed of decoding.
    static SHAPES: RefCell<Shapes> = const { RefCell::new(Shapes::NONE) };
}

/// The shapes known to a thread, most recently used first.
#[derive(Debug)]
struct Shapes {
    known: Vec<Shape>,
    attempts: u32,
    hits: u32,
}

impl Shapes {
    const NONE: Self = Self { known: Vec::new(), attempts: MAX_ATTEMPTS, hits: 0 };

    #[inline]
    fn find<'a>(
        &mut self,
        kind: Kind<'_>,
        text: &'a str,
        keeps: bool,
        values: &mut Values<'a>,
    ) -> Option<Meaning> {
        let at = self.known.iter().position(|shape| {
            !(keeps && shape.meaning.is_kept) && shape.read(kind, text, values).is_some()
        })?;
        if at > 0 {
            self.known[..=at].rotate_right(1);
        }
        self.hits += 1;
        if self.hits == HITS_PER_ATTEMPT {
            self.hits = 0;
            self.attempts = MAX_ATTEMPTS.min(self.attempts + 1);
        }
        Some(self.known[0].meaning)
    }

    fn may_learn(&mut self) -> bool {
        let may = self.attempts > 0;
        self.attempts = self.attempts.saturating_sub(1);
        may
    }

    fn add(&mut self, shape: Shape) {
        self.known.truncate(MAX_SHAPES - 1);
        self.known.insert(0, shape);
    }
}

/// A text with holes in place of the used values.
#[derive(Debug)]
struct Shape {
    dialect: Dialect,
    event: Option<Box<str>>,
    /// The text before each hole.
    runs: Box<[(Run, Hole)]>,
    /// The text after the last hole.
    rest: Run,
    meaning: Meaning,
}

/// A used value, and its index.
#[derive(Clone, Copy, Debug)]
enum Hole {
    /// A nonempty string.
    Text(usize),
    Count(usize),
}

/// A part of the text without a hole, which may have other skipped values.
#[derive(Debug, Default)]
struct Run {
    learnt: Vec<u8>,
    /// The skipped values in `learnt`, in order.
    skipped: Vec<FreeValue>,
}

impl Run {
    /// Skips this run if it is next.
    #[inline]
    fn skip(&self, json: &mut Reader<'_>) -> Option<()> {
        // Within a stream, usually only the content changes.
        if json.skip_bytes(&self.learnt) { Some(()) } else { self.skip_with_others(json) }
    }

    fn skip_with_others(&self, json: &mut Reader<'_>) -> Option<()> {
        let mut end = 0;
        for value in &self.skipped {
            json.skip_bytes(&self.learnt[end..value.start]).then_some(())?;
            match value.kind {
                ValueKind::SkippedNumber => json.skip_number().ok()?,
                _ if json.skip_bytes(&self.learnt[value.start..value.end]) => {}
                _ => json.skip_string().ok()?,
            }
            end = value.end;
        }
        json.skip_bytes(&self.learnt[end..]).then_some(())
    }
}

/// The used values.
#[derive(Debug, Default)]
struct Values<'a> {
    texts: [Str<'a>; MAX_USED],
    counts: [u32; MAX_USED],
}

impl Shape {
    fn new(
        kind: Kind<'_>,
        text: &str,
        free: &[FreeValue],
        parse: impl FnOnce(&str, &mut ResponseState, OnDelta<'_>) -> DecodeResult,
    ) -> Option<Self> {
        let (mut runs, mut run, mut marked) = (Vec::new(), Run::default(), String::new());
        let (mut texts, mut counts, mut end) = (0, 0, 0);
        for value in free {
            run.learnt.extend_from_slice(&text.as_bytes()[end..value.start]);
            marked.push_str(&text[end..value.start]);
            end = value.end;
            let hole = match value.kind {
                ValueKind::Text => Hole::Text(next(&mut texts)?),
                ValueKind::Count => Hole::Count(next(&mut counts)?),
                ValueKind::SkippedString | ValueKind::SkippedNumber => {
                    let start = run.learnt.len();
                    run.learnt.extend_from_slice(&text.as_bytes()[value.start..value.end]);
                    run.skipped.push(FreeValue { start, end: run.learnt.len(), ..*value });
                    marked.push_str(&text[value.start..value.end]);
                    continue;
                }
            };
            match hole {
                Hole::Text(which) => marked.extend(["\"", &mark_of_text(which), "\""]),
                Hole::Count(which) => marked.push_str(&mark_of_count(which).to_string()),
            }
            runs.push((mem::take(&mut run), hole));
        }
        run.learnt.extend_from_slice(&text.as_bytes()[end..]);
        marked.push_str(&text[end..]);
        Some(Self {
            dialect: kind.dialect,
            event: kind.event.map(Box::from),
            runs: runs.into(),
            rest: run,
            meaning: Meaning::from_marked(&marked, counts, kind.event.is_some(), parse)?,
        })
    }

    /// Reads the values of `text` if it has this shape. Otherwise some values may have been set.
    fn read<'a>(&self, kind: Kind<'_>, text: &'a str, values: &mut Values<'a>) -> Option<()> {
        if (self.dialect, self.event.as_deref()) != (kind.dialect, kind.event) {
            return None;
        }
        let mut json = Reader::new(text);
        for (run, hole) in &self.runs {
            run.skip(&mut json)?;
            match *hole {
                Hole::Text(which) => {
                    let text = json.string().ok().filter(|text| !text.is_empty())?;
                    values.texts[which] = text.into();
                }
                Hole::Count(which) => values.counts[which] = json.short_count()?,
            }
        }
        self.rest.skip(&mut json)?;
        json.rest().is_empty().then_some(())
    }
}

/// The index of the next of at most [`MAX_USED`] values.
fn next(used: &mut usize) -> Option<usize> {
    let which = *used;
    *used += 1;
    (which < MAX_USED).then_some(which)
}

fn mark_of_text(which: usize) -> String {
    format!("the value {which}")
}

fn mark_of_count(which: usize) -> u32 {
    [700_001, 700_002, 700_004, 700_008, 700_016, 700_032][which]
}

/// The effect of a text's values.
#[derive(Clone, Copy, Debug, Default)]
struct Meaning {
    /// The delta of a stream.
    delta: Option<(DeltaKind, usize)>,
    /// The text of a non-streamed response.
    text: Option<usize>,
    finish_reason: Option<usize>,
    /// Index of each count; `None` if it is not reported.
    usage: Option<[Option<u8>; COUNTS]>,
    /// Whether the next request repeats other parts of the text, which the effect lacks.
    is_kept: bool,
}

impl Meaning {
    /// Finds where the marks in `marked` appear in the decoded state. `None` if they have effects
    /// that a meaning cannot express.
    fn from_marked(
        marked: &str,
        counts: usize,
        is_event: bool,
        parse: impl FnOnce(&str, &mut ResponseState, OnDelta<'_>) -> DecodeResult,
    ) -> Option<Self> {
        let mut state = ResponseState::new(true);
        let mut deltas = Vec::new();
        parse(marked, &mut state, &mut |Delta { kind, text }| {
            deltas.push((kind, which_text(text)));
        })
        .ok()?;
        // The effect of a tool call, a pause or the end of a stream depends on earlier events.
        // Shapes do not count the reasoning of a whole response.
        let reasons = !is_event && state.content().reasoning > 0;
        let is_content = state.sent.has_no_pause() && !state.is_over() && !reasons;
        if !is_content || !state.tool_calls().is_empty() || deltas.len() > 1 {
            return None;
        }
        let delta = match deltas.pop() {
            Some((DeltaKind::ToolCall, _)) => return None,
            Some((kind, which)) => Some((kind, which?)),
            None => None,
        };
        let text = match state.text() {
            "" => None,
            _ if is_event => None,
            text => Some(which_text(text)?),
        };
        let finish_reason = state.finish_reason().map(which_text);
        let usage = state.counts.0.map(|count| count.map(which_count));
        // The effect of an event's usage on an earlier one is unknown here, as is which of two
        // members for the same count applies.
        let known = usage.iter().flatten().count();
        if known != counts || (is_event && known > 0) || usage.contains(&Some(None)) {
            return None;
        }
        let usage = (known > 0).then(|| usage.map(Option::flatten));
        let finish_reason = match finish_reason {
            Some(which) => Some(which?),
            None => None,
        };
        Some(Self { delta, text, finish_reason, usage, is_kept: state.kept().is_some() })
    }

    fn apply(self, values: &Values<'_>, state: &mut ResponseState, on_delta: OnDelta<'_>) {
        if let Some((kind, which)) = self.delta {
            state.push_delta(kind, &values.texts[which], on_delta);
        }
        if let Some(which) = self.text {
            state.push_text(&values.texts[which]);
        }
        if let Some(which) = self.finish_reason {
            state.set_finish_reason(&values.texts[which]);
        }
        if let Some(usage) = self.usage {
            state.add_counts(Counts(
                usage.map(|which| which.map(|which| values.counts[usize::from(which)])),
            ));
        }
    }
}

/// Index of this mark.
fn which_text(text: &str) -> Option<usize> {
    (0..MAX_USED).find(|&which| mark_of_text(which) == text)
}

/// Index of this mark among the [`MAX_USED`] marks. A sum of several marks has no index.
fn which_count(count: u32) -> Option<u8> {
    (0..).take(MAX_USED).find(|&which| mark_of_count(which.into()) == count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::chat;

    const WHOLE: Kind<'_> = Kind { dialect: Dialect::OpenaiChat, event: None };

    fn body(id: &str, content: &str, tokens: u32) -> String {
        format!(
            r#"{{"id":"{id}","choices":[{{"message":{{"content":"{content}"}}}}],"usage":{{"completion_tokens":{tokens}}}}}"#
        )
    }

    fn learn_whole(body: &str) {
        learn(WHOLE, body, |body, state, _| chat::read_whole(state, body));
    }

    fn reads(kind: Kind<'_>, body: &str) -> Option<(String, Option<u32>)> {
        let mut state = ResponseState::new(true);
        let read = read(kind, body, &mut state, &mut |_| {});
        read.then(|| (state.text().to_owned(), state.usage().completion.known()))
    }

    #[test]
    fn one_response_is_enough_to_know_the_next() {
        assert_eq!(reads(WHOLE, &body("a", "b", 1)), None);
        learn_whole(&body("first", "one", 1));
        let second = reads(WHOLE, &body("the second", "line\\n two", 2));
        assert_eq!(second, Some(("line\n two".to_owned(), Some(2))));
    }

    #[test]
    fn other_kinds_and_other_members_are_left_to_the_parser() {
        learn_whole(&body("a", "b", 1));
        let event = Kind { event: Some(""), ..WHOLE };
        let other = Kind { dialect: Dialect::AnthropicMessages, event: None };
        for kind in [event, other] {
            assert_eq!(reads(kind, &body("a", "b", 1)), None);
        }
        for other in ["\"refusal\":\"no\"", "\"tool_calls\":[]"] {
            let body = body("a", "b", 1).replace("\"content\"", &format!("{other},\"content\""));
            assert_eq!(reads(WHOLE, &body), None);
        }
        assert_eq!(reads(WHOLE, &body("a", "", 1)), None, "empty content means that there is none");
        assert_eq!(reads(WHOLE, &(body("a", "b", 1) + " ")), None);
    }

    #[test]
    fn a_target_without_a_shape_is_not_tried_for_ever() {
        let odd = |n: usize| format!(r#"{{"choices":[{{"message":{{}},"m{n}":1}}]}}"#);
        for n in 0..100 {
            learn_whole(&odd(n));
        }
        let known = SHAPES.with_borrow(|shapes| (shapes.known.len(), shapes.attempts));
        assert_eq!(known, (MAX_SHAPES, 0));
        for _ in 0..HITS_PER_ATTEMPT {
            assert!(reads(WHOLE, &odd(MAX_ATTEMPTS as usize - 1)).is_some());
        }
        learn_whole(&body("a", "b", 1));
        assert!(reads(WHOLE, &body("a", "b", 1)).is_some());
    }
}
