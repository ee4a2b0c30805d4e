//! Responses that differ from an earlier one only in their values are decoded by comparison.
//!
//! Nearly all responses of a target have the same members in the same order, and of most values
//! nothing depends but themselves: an id, the content, the token counts. A [`Shape`] is the text of
//! such a response with holes in the place of these values, and what each hole means. Another text
//! with the same bytes around its holes, and a JSON value of the right kind in each, decodes to the
//! same with other values. That is compared instead of parsed, at a fraction of the cost.
//!
//! Everything else goes to the parser of the dialect, which also tells what the holes mean: it is
//! given the text with a mark in each hole.

use std::cell::RefCell;
use std::mem;

use super::delta::{Delta, DeltaKind, OnDelta};
use super::json_reader::{FreeValue, Reader, Str, ValueKind, free_values};
use super::response_state::{DecodeResult, ResponseState};
use super::usage::{COUNTS, Counts};
use super::{anthropic, chat, responses};
use crate::Dialect;

/// Longest text that becomes a shape, in bytes, its values included.
const MAX_TEXT: usize = 16 * 1024;
/// Most shapes of a thread.
const MAX_SHAPES: usize = 8;
/// Most strings of a shape that are more than skipped, and most counts.
const MAX_USED: usize = 6;
/// Attempts to make a shape of a text, for targets whose responses have none. Hits earn more.
const MAX_ATTEMPTS: u32 = 32;
/// Hits that earn one more attempt.
const HITS_PER_ATTEMPT: u32 = 64;

/// What is decoded: which parser would read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind<'a> {
    pub(super) dialect: Dialect,
    /// The name of the event; `None` for a response that is not streamed.
    pub(super) event: Option<&'a str>,
}

/// Decodes `text` by a shape that this thread knows. `false` if there is none: then nothing has
/// happened.
pub(super) fn read(
    kind: Kind<'_>,
    text: &str,
    state: &mut ResponseState,
    on_delta: OnDelta<'_>,
) -> bool {
    // Filled in where it is: it would be copied with each return.
    let mut values = Values::default();
    let found = SHAPES.with_borrow_mut(|shapes| shapes.find(kind, text, &mut values));
    let Some(meaning) = found else { return false };
    meaning.apply(&values, state, on_delta);
    true
}

/// Makes a shape of `text`, if it has one. The parser has read it without an error.
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
    /// The values of a text that do not decide how the rest of it is read; `None` where no shapes
    /// are made.
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
    /// A cache: what is in it changes how long decoding takes, and nothing else.
    static SHAPES: RefCell<Shapes> = const { RefCell::new(Shapes::NONE) };
}

/// The shapes that a thread knows, the latest hit first.
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
        values: &mut Values<'a>,
    ) -> Option<Meaning> {
        let at = self.known.iter().position(|shape| shape.read(kind, text, values).is_some())?;
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

/// A text with holes in the place of the values that are used.
#[derive(Debug)]
struct Shape {
    dialect: Dialect,
    event: Option<Box<str>>,
    /// What is before each hole.
    runs: Box<[(Run, Hole)]>,
    /// What is after the last.
    rest: Run,
    meaning: Meaning,
}

/// A value that is used, and which one it is.
#[derive(Clone, Copy, Debug)]
enum Hole {
    /// A string that is not empty.
    Text(usize),
    Count(usize),
}

/// A part of the text without a hole. The values in it may be others.
#[derive(Debug, Default)]
struct Run {
    learnt: Vec<u8>,
    /// The values in `learnt`, in order.
    skipped: Vec<FreeValue>,
}

impl Run {
    /// Skips this run, if it is next.
    #[inline]
    fn skip(&self, json: &mut Reader<'_>) -> Option<()> {
        // Within a stream all is mostly the same but the content.
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

/// The values that are used.
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

    /// Reads the values of `text`, if it has this shape. If not, some may have been read.
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

/// The next of at most [`MAX_USED`] values.
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

/// What the values of a text do.
#[derive(Clone, Copy, Debug, Default)]
struct Meaning {
    /// Of a stream: a delta.
    delta: Option<(DeltaKind, usize)>,
    /// Of a response that is not streamed: its text.
    text: Option<usize>,
    finish_reason: Option<usize>,
    /// Which count is which; `None` is not reported.
    usage: Option<[Option<u8>; COUNTS]>,
}

impl Meaning {
    /// Looks where the marks in `marked` come out. `None` if they do more than a meaning can say.
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
        // What a tool call, a pause and the end of a stream do depends on what came before. Shapes
        // do not count the reasoning of a whole answer.
        let reasons = !is_event && state.content().reasoning > 0;
        let is_content = state.sent().has_no_pause() && !state.is_over() && !reasons;
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
        let usage = state.counts().0.map(|count| count.map(which_count));
        // How the usage of an event changes the one before is not known here, nor which one of two
        // members for the same count is used.
        let known = usage.iter().flatten().count();
        if known != counts || (is_event && known > 0) || usage.contains(&Some(None)) {
            return None;
        }
        let usage = (known > 0).then(|| usage.map(Option::flatten));
        let finish_reason = match finish_reason {
            Some(which) => Some(which?),
            None => None,
        };
        Some(Self { delta, text, finish_reason, usage })
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

/// Which mark this is.
fn which_text(text: &str) -> Option<usize> {
    (0..MAX_USED).find(|&which| mark_of_text(which) == text)
}

/// Which of the [`MAX_USED`] marks this is. A sum of several is none.
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
        let odd = |n: usize| format!(r#"{{"choices":[{{"message":{{"m{n}":1}}}}]}}"#);
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
