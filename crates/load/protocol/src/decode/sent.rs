//! The content of a stream, and the number of tokens that it can represent.
//!
//! Usage includes tokens that are not sent, such as hidden reasoning. A count is trusted only if
//! the content that it covers can represent so many tokens.

/// Tokens without a content event: end marks, parts of the model's template.
const WITHOUT_CONTENT: u64 = 3;
/// Mean size in bytes below which content events are about one token each.
const LARGE_EVENT: u64 = 10;

/// An activity of the target between two parts of the response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Pause {
    #[default]
    None,
    Thinking,
    ServerTool,
}

/// Content events of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct Events {
    count: u32,
    bytes: u64,
    /// The first read that has any, and their number and bytes in it.
    read: u32,
    first: (u32, u64),
}

impl Events {
    const fn add(&mut self, text: &str, read: u32) {
        if self.count == 0 {
            self.read = read;
        }
        self.count = self.count.saturating_add(1);
        self.bytes += text.len() as u64;
        if self.read == read {
            self.first = (self.count, self.bytes);
        }
    }

    /// Whether each event is one token.
    fn are(&self, tokens: u32) -> bool {
        (0..=WITHOUT_CONTENT).contains(&u64::from(tokens).wrapping_sub(self.count.into()))
    }

    /// Whether at most a few of these tokens are missing. A token of plain text has up to five
    /// bytes, and in any script at least two.
    fn can_be(&self, tokens: u32, is_trusted: bool) -> bool {
        let count = u64::from(self.count);
        let most = if is_trusted || self.bytes >= LARGE_EVENT * count {
            self.bytes / 2
        } else {
            count.max(self.bytes / 5) * 13 / 10 + WITHOUT_CONTENT
        };
        self.are(tokens) || u64::from(tokens) <= most
    }

    /// Whether this many tokens suffice: an event has at least one token, and few tokens have eight
    /// bytes.
    fn are_covered_by(&self, tokens: u32) -> bool {
        u64::from(self.count).max(self.bytes / 8) * 10 <= u64::from(tokens) * 13
    }

    /// Tokens after the first read, in proportion to its bytes: all tokens of a read have one time.
    fn after_first(&self, tokens: u32) -> u32 {
        let (count, bytes) = self.first;
        if self.are(tokens) {
            return self.count.saturating_sub(count);
        }
        let first = (u64::from(tokens) * bytes + self.bytes / 2) / self.bytes.max(1);
        tokens.saturating_sub(u32::try_from(first).unwrap_or(tokens).max(1))
    }
}

/// The content of a response so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent {
    all: Events,
    reasoning: Events,
    /// Texts and tool calls.
    answer: Events,
    /// Number of the current read.
    read: u32,
    /// Whether the target reports that the model is thinking.
    thinks: bool,
    /// Whether the last text is reasoning between tags.
    is_in_tags: bool,
    /// Pause since the last event of the answer.
    pause: Pause,
    /// Pause between two events of the answer.
    within: Pause,
}

impl Sent {
    /// Number of content events.
    pub(super) const fn events(&self) -> u32 {
        self.all.count
    }

    /// Content events after the first read.
    pub(super) fn events_after_first(&self) -> Option<u32> {
        (self.all.count > 0).then(|| self.all.after_first(self.all.count))
    }

    /// Begins a read: its bytes have a time of their own.
    pub(super) const fn next_read(&mut self) {
        self.read = self.read.wrapping_add(1);
    }

    /// The actual kind of a part sent as `kind`. Servers without a parser send reasoning as text,
    /// from a leading `<think>` to `</think>`.
    pub(super) fn kind_of(&mut self, kind: DeltaKind, text: &str) -> DeltaKind {
        let opens = || self.events() == 0 && text.trim_start().starts_with("<think>");
        if kind != DeltaKind::Text || !(self.is_in_tags || opens()) {
            return kind;
        }
        self.is_in_tags = !text.contains("</think>");
        DeltaKind::Reasoning
    }

    #[inline]
    pub(super) fn add(&mut self, kind: DeltaKind, text: &str) {
        self.all.add(text, self.read);
        if kind == DeltaKind::Reasoning {
            self.pause = self.pause.max(Pause::Thinking);
            self.reasoning.add(text, self.read);
        } else {
            if self.answer.count > 0 {
                self.within = self.within.max(self.pause);
            }
            self.pause = Pause::None;
            self.answer.add(text, self.read);
        }
    }

    /// Records an activity reported by the target.
    pub(super) fn pause(&mut self, pause: Pause) {
        self.thinks |= pause == Pause::Thinking;
        self.pause = self.pause.max(pause);
    }

    /// Whether the stream had content only.
    pub(super) fn has_no_pause(&self) -> bool {
        !self.thinks && self.pause < Pause::ServerTool
    }

    /// The number of `output` tokens, including `reasoning`, that came after the first read whose
    /// tokens are counted; see [`Usage::after_first`](plimsoll_measure::Usage::after_first).
    pub(super) fn tokens_after_first(
        &self,
        output: u32,
        reasoning: u32,
        is_anthropic: bool,
    ) -> Option<u32> {
        if self.within == Pause::ServerTool {
            return Some(0);
        }
        let (all, is_shown) = (&self.all, self.reasoning.count > 0);
        let rest = output.saturating_sub(reasoning);
        // If reasoning is among them, there are more than the rest, unless one read had both.
        let least = if reasoning > 0 && self.answer.read != all.read { rest } else { 0 };
        if reasoning == 0 || reasoning < self.reasoning.count {
            let is_known = if self.thinks {
                all.are(output)
            } else {
                all.can_be(output, is_anthropic) && all.are_covered_by(output)
            };
            return is_known.then(|| all.after_first(output).max(least));
        }
        // Some gateways estimate the reasoning, and the rest is small in comparison.
        let is_trusted = is_anthropic || reasoning <= rest;
        if !self.answer.can_be(rest, is_trusted) || !self.answer.are_covered_by(rest) {
            return None;
        }
        // Content with fewer tokens than counted is a summary.
        if is_shown && self.reasoning.can_be(reasoning, false) {
            return Some(all.after_first(output).max(least));
        }
        Some(if self.within == Pause::None { self.answer.after_first(rest) } else { 0 })
    }
}

// Parts of a stream that have content.

/// The kind of content in a [`Delta`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeltaKind {
    /// Text for the user, including refusals.
    Text,
    /// The model's reasoning.
    Reasoning,
    /// Name or arguments of a tool call.
    ToolCall,
}

/// A part of a stream that has content. It is never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delta<'a> {
    /// The kind of content.
    pub kind: DeltaKind,
    /// The part itself.
    pub text: &'a str,
}

/// Callback that receives the deltas of a stream in order.
pub(super) type OnDelta<'a> = &'a mut dyn FnMut(Delta<'_>);
